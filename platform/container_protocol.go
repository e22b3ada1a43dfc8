package platform

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// runtimeConn is a connection to a container's program. OpenWhisk's invoker opens one for each request. Here a
// connection is reused if the program keeps it alive, which saves both sides several system calls.
type runtimeConn struct {
	conn     net.Conn
	reader   *bufio.Reader
	lastUsed time.Time   // when it was used last
	unwatch  func() bool // stops closing it when the platform ends
}

const (
	// maxIdleConns bounds the idle connections of a container.
	maxIdleConns = 4
	// idleConnLife is how long an idle connection may be reused. Programs close theirs after seconds (Node.js: 5), and a
	// connection that closes during a request looks like a dead process.
	idleConnLife = time.Second
)

// runtimeReply is a container's answer. A body that is too long is read only in part.
type runtimeReply struct {
	status int
	body   []byte
	length int64 // announced by the header
}

var errDied = errors.New("the container's process went away")

// request sends a request to the container. It retries until the limit while the program does not listen yet. It
// returns context.DeadlineExceeded after limit, and errDied if the process died or gave no answer.
func (c *container) request(ctx context.Context, path string, data []byte, limit time.Duration) (runtimeReply, error) {
	begin := time.Now()
	end := begin.Add(limit)
	for {
		got, err := c.tryRequest(ctx, path, data, end)
		var refused *net.OpError
		if err == nil {
			return got, nil
		}
		if !errors.As(err, &refused) || refused.Op != "dial" {
			return runtimeReply{}, requestError(ctx, end)
		}
		select {
		case <-ctx.Done():
			return runtimeReply{}, requestError(ctx, end)
		case <-c.exited.c:
			return runtimeReply{}, errDied
		case <-time.After(retryPause(time.Since(begin))):
		}
		if !time.Now().Before(end) {
			return runtimeReply{}, context.DeadlineExceeded
		}
	}
}

// retryPause is the pause before the next try, after waiting so long for a program to listen. It loses at most a
// sixteenth of the program's start, and leaves the processor to it.
func retryPause(waited time.Duration) time.Duration {
	const share, minimum, maximum = 16, 200 * time.Microsecond, 5 * time.Millisecond
	return min(max(waited/share, minimum), maximum)
}

// requestError distinguishes a request that ran out of time from one whose process died or whose platform ends.
func requestError(ctx context.Context, end time.Time) error {
	if ctx.Err() == nil && !time.Now().Before(end) {
		return context.DeadlineExceeded
	}
	return errDied
}

// tryRequest sends a request in this goroutine. An http.Client would wake three others.
func (c *container) tryRequest(ctx context.Context, path string, data []byte, end time.Time) (runtimeReply, error) {
	t, err := c.connect(ctx, end)
	if err != nil {
		return runtimeReply{}, err
	}
	if err := t.conn.SetDeadline(end); err != nil {
		t.close()
		return runtimeReply{}, err
	}
	if ctx.Err() != nil { // SetDeadline may have overwritten the deadline that the end of ctx set
		t.close()
		return runtimeReply{}, ctx.Err()
	}
	got, keeps, err := t.exchange(path, data, c.maxReply)
	if !keeps || !c.putIdleConn(t) {
		t.close()
	}
	return got, err
}

// connect reuses an idle connection or opens a new one.
func (c *container) connect(ctx context.Context, end time.Time) (*runtimeConn, error) {
	if t := c.takeIdleConn(); t != nil {
		return t, nil
	}
	d := net.Dialer{Deadline: end}
	conn, err := d.DialContext(ctx, "unix", c.socket.dial)
	if err != nil {
		return nil, err
	}
	t := &runtimeConn{conn: conn, reader: bufio.NewReader(conn)}
	t.unwatch = context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) // pending reads and writes fail then
	return t, nil
}

func (t *runtimeConn) close() {
	t.unwatch()
	t.conn.Close()
}

// exchange sends a request with one write and reads the answer, which may come before the program has read the whole
// request. keeps tells whether the connection can be reused.
func (t *runtimeConn) exchange(path string, data []byte, maximum int64) (got runtimeReply, keeps bool, err error) {
	head := make([]byte, 0, 160)
	head = append(head, "POST "+path+" HTTP/1.1\r\nHost: container\r\nContent-Type: application/json\r\n"+
		"Content-Length: "...)
	head = strconv.AppendInt(head, int64(len(data)), 10)
	head = append(head, "\r\n\r\n"...)
	request := net.Buffers{head, data}
	_, sent := request.WriteTo(t.conn)
	res, err := http.ReadResponse(t.reader, nil)
	if err != nil {
		return runtimeReply{}, false, errors.Join(sent, err)
	}
	defer res.Body.Close()
	if res.ContentLength < 0 { // ApacheBlockingContainerClient takes an unknown length for no response
		return runtimeReply{}, false, errDied
	}
	got = runtimeReply{
		status: res.StatusCode, length: res.ContentLength, body: make([]byte, min(res.ContentLength, maximum)),
	}
	if _, err := io.ReadFull(res.Body, got.body); err != nil {
		return runtimeReply{}, false, err
	}
	keeps = sent == nil && !res.Close && strings.EqualFold(res.Header.Get("Connection"), "keep-alive") &&
		got.length <= maximum && t.reader.Buffered() == 0
	return got, keeps, nil
}

// takeIdleConn returns an idle connection, or nil.
func (c *container) takeIdleConn() *runtimeConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.idleConns)
	if n == 0 {
		return nil
	}
	t := c.idleConns[n-1]
	if time.Since(t.lastUsed) > idleConnLife { // the others are older still
		c.closeIdleLocked()
		return nil
	}
	c.idleConns = c.idleConns[:n-1]
	return t
}

// putIdleConn keeps a connection for reuse. It returns false if the connection is not needed.
func (c *container) putIdleConn(t *runtimeConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idleConns) >= maxIdleConns || !c.alive() {
		return false
	}
	t.lastUsed = time.Now()
	c.idleConns = append(c.idleConns, t)
	return true
}

// closeIdleLocked closes all idle connections. The caller holds the lock.
func (c *container) closeIdleLocked() {
	for _, t := range c.idleConns {
		t.close()
	}
	c.idleConns = nil
}

// closeIdleConns closes all idle connections.
func (c *container) closeIdleConns() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeIdleLocked()
}

// initBody is the body of /init. Two fields are ours: concurrency, if several activations may share the container, and
// sentinels false, which asks the program to print none. Programs that do not know them ignore them.
func (p *Platform) initBody(run *running, slots int) any {
	a := run.action
	value := map[string]any{
		"name": a.Name, "main": mainOf(a), "binary": a.Exec.Binary, "env": p.initEnv(run), "sentinels": false,
	}
	if a.Exec.Code != "" { // an image may have its own code
		value["code"] = a.Exec.Code
	}
	if slots > 1 {
		value["concurrency"] = slots
	}
	return map[string]any{"value": value}
}

// printsNoSentinels tells whether a program's answer to /init says that it prints no sentinels. Its output before the
// answer to /run is then the activation's log, which saves two lines of log for each activation.
func printsNoSentinels(answer []byte) bool {
	var reply struct{ Sentinels *bool }
	return json.Unmarshal(answer, &reply) == nil && reply.Sentinels != nil && !*reply.Sentinels
}

// initEnv is the environment in the body of /init, as OpenWhisk's invoker fills it.
func (p *Platform) initEnv(run *running) map[string]string {
	a := run.action
	env := map[string]string{
		"__OW_NAMESPACE": run.user.Name, "__OW_ACTION_NAME": "/" + a.path(), "__OW_ACTION_VERSION": a.Version,
		"__OW_ACTIVATION_ID":  run.id,
		"__OW_TRANSACTION_ID": run.id, "__OW_DEADLINE": deadlineText(time.Duration(a.Limits.Timeout) * time.Millisecond),
	}
	for _, v := range a.Parameters {
		if v.Init {
			env[v.Key] = environmentText(v.Value)
		}
	}
	if wantsKey(a) {
		env["__OW_API_KEY"] = run.user.Key
	}
	return env
}

// environmentText is a parameter's value in the environment: a string as it is, other values as JSON.
func environmentText(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}

// wantsKey tells whether the action's annotation provide-api-key asks for the namespace's key.
func wantsKey(a *action) bool {
	for _, v := range a.Annotations {
		if v.Key == "provide-api-key" {
			return !slices.Contains([]string{"", "false", "null", "0", `""`}, string(v.Value))
		}
	}
	return false
}

func mainOf(a *action) string {
	if a.Exec.Main == "" {
		return "main"
	}
	return a.Exec.Main
}

// runBody is the body of /run. It copies the parameters, which are JSON already.
func (p *Platform) runBody(run *running, limit time.Duration) []byte {
	a := run.action
	out := make([]byte, 0, len(run.params)+512)
	out = append(append(out, `{"value":`...), run.params...)
	for _, field := range [...][2]string{
		{"namespace", run.user.Name},
		{"action_name", "/" + a.path()},
		{"action_version", a.Version},
		{"activation_id", run.id},
		{"transaction_id", run.id},
		{"deadline", deadlineText(limit)},
	} {
		out = appendField(out, field[0], field[1])
	}
	if wantsKey(a) {
		out = appendField(out, "api_key", run.user.Key)
	}
	return append(out, '}')
}

// appendField appends a field to an object that is not empty.
func appendField(to []byte, name, value string) []byte {
	text, _ := json.Marshal(value) // a text
	to = append(append(append(to, `,"`...), name...), `":`...)
	return append(to, text...)
}

// deadlineText is the deadline in epoch milliseconds as a string. OpenWhisk's invoker sends that, although its
// documents say otherwise.
func deadlineText(limit time.Duration) string {
	return strconv.FormatInt(time.Now().Add(limit).UnixMilli(), 10)
}
