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

// talk is a connection to a container's program. OpenWhisk's invoker makes one for each request. Here one whose program
// says that it keeps it serves the next request too: a new one costs either side several system calls, and there is no
// other that would want its place.
type talk struct {
	conn   net.Conn
	reader *bufio.Reader
	last   time.Time   // that it was used
	forget func() bool // takes it from those that end with the platform
}

const (
	// keptTalks bounds the connections of a container that nobody uses.
	keptTalks = 4
	// keptFor is for how long an unused one is trusted. Programs close theirs after seconds (Node.js: 5), and one that
	// is closed just as a request goes out would be taken for the program's death.
	keptFor = time.Second
)

// reply is a container's answer. Of a body that is longer than any that counts, the rest is left unread.
type reply struct {
	status int
	body   []byte
	length int64 // that the header announced
}

var errDied = errors.New("the container's process went away")

// ask sends a request to the container. The error is context.DeadlineExceeded after limit, errDied when the process
// ended or answered nothing. While it does not listen yet, the connection is tried again until the limit.
func (c *container) ask(ctx context.Context, path string, data []byte, limit time.Duration) (reply, error) {
	begin := time.Now()
	end := begin.Add(limit)
	for {
		got, err := c.try(ctx, path, data, end)
		var refused *net.OpError
		if err == nil {
			return got, nil
		}
		if !errors.As(err, &refused) || refused.Op != "dial" {
			return reply{}, ended(ctx, end)
		}
		select {
		case <-ctx.Done():
			return reply{}, ended(ctx, end)
		case <-c.exited.c:
			return reply{}, errDied
		case <-time.After(between(time.Since(begin))):
		}
		if !time.Now().Before(end) {
			return reply{}, context.DeadlineExceeded
		}
	}
}

// between is how long after so long a wait a program that does not listen yet is asked again: soon enough to lose a
// sixteenth of its start at most, seldom enough to leave it the processor.
func between(waited time.Duration) time.Duration {
	const share, least, most = 16, 200 * time.Microsecond, 5 * time.Millisecond
	return min(max(waited/share, least), most)
}

// ended tells a request that ran out of time from one whose process went away, or whose platform ends.
func ended(ctx context.Context, end time.Time) error {
	if ctx.Err() == nil && !time.Now().Before(end) {
		return context.DeadlineExceeded
	}
	return errDied
}

// try sends a request in this goroutine: an http.Client would wake three others.
func (c *container) try(ctx context.Context, path string, data []byte, end time.Time) (reply, error) {
	t, err := c.connect(ctx, end)
	if err != nil {
		return reply{}, err
	}
	if err := t.conn.SetDeadline(end); err != nil {
		t.close()
		return reply{}, err
	}
	if ctx.Err() != nil { // the deadline that its end has set may just have been written over
		t.close()
		return reply{}, ctx.Err()
	}
	got, keeps, err := t.exchange(path, data, c.most)
	if !keeps || !c.keep(t) {
		t.close()
	}
	return got, err
}

// connect takes a kept connection, or makes one.
func (c *container) connect(ctx context.Context, end time.Time) (*talk, error) {
	if t := c.kept(); t != nil {
		return t, nil
	}
	d := net.Dialer{Deadline: end}
	conn, err := d.DialContext(ctx, "unix", c.door.dial)
	if err != nil {
		return nil, err
	}
	t := &talk{conn: conn, reader: bufio.NewReader(conn)}
	t.forget = context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) // what is waited for fails then
	return t, nil
}

func (t *talk) close() {
	t.forget()
	t.conn.Close()
}

// exchange sends a request as one write and reads the answer, which may come before the program has read all of it.
// keeps tells whether the program says that it takes another request.
func (t *talk) exchange(path string, data []byte, most int64) (got reply, keeps bool, err error) {
	head := make([]byte, 0, 160)
	head = append(head, "POST "+path+" HTTP/1.1\r\nHost: container\r\nContent-Type: application/json\r\n"+
		"Content-Length: "...)
	head = strconv.AppendInt(head, int64(len(data)), 10)
	head = append(head, "\r\n\r\n"...)
	request := net.Buffers{head, data}
	_, sent := request.WriteTo(t.conn)
	res, err := http.ReadResponse(t.reader, nil)
	if err != nil {
		return reply{}, false, errors.Join(sent, err)
	}
	defer res.Body.Close()
	if res.ContentLength < 0 { // ApacheBlockingContainerClient takes an unknown length for no response
		return reply{}, false, errDied
	}
	got = reply{status: res.StatusCode, length: res.ContentLength, body: make([]byte, min(res.ContentLength, most))}
	if _, err := io.ReadFull(res.Body, got.body); err != nil {
		return reply{}, false, err
	}
	keeps = sent == nil && !res.Close && strings.EqualFold(res.Header.Get("Connection"), "keep-alive") &&
		got.length <= most && t.reader.Buffered() == 0
	return got, keeps, nil
}

// kept takes a connection that is still to be trusted; nil where there is none.
func (c *container) kept() *talk {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.talks)
	if n == 0 {
		return nil
	}
	t := c.talks[n-1]
	if time.Since(t.last) > keptFor { // and so are those before it
		c.hangUp()
		return nil
	}
	c.talks = c.talks[:n-1]
	return t
}

// keep is false where a connection is not wanted any more.
func (c *container) keep(t *talk) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.talks) >= keptTalks || !c.alive() {
		return false
	}
	t.last = time.Now()
	c.talks = append(c.talks, t)
	return true
}

// hangUp closes the connections that nobody uses; the caller holds the lock.
func (c *container) hangUp() {
	for _, t := range c.talks {
		t.close()
	}
	c.talks = nil
}

// forgetTalks closes the connections of a container that nobody uses.
func (c *container) forgetTalks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hangUp()
}

// initBody is the body of /init. Where several activations may share the container, it says how many, and it asks the
// program to print no sentinels: OpenWhisk does neither, and no runtime of its own minds.
func (p *Platform) initBody(run *running, room int) any {
	a := run.action
	value := map[string]any{
		"name": a.Name, "main": mainOf(a), "binary": a.Exec.Binary, "env": p.initEnv(run), "sentinels": false,
	}
	if a.Exec.Code != "" { // an image may bring its own
		value["code"] = a.Exec.Code
	}
	if room > 1 {
		value["concurrency"] = room
	}
	return map[string]any{"value": value}
}

// endsSilently tells whether a program's answer to /init says that it prints no sentinels. What it has printed when its
// answer to /run comes is then an activation's log, and two lines less are written and read for each.
func endsSilently(answer []byte) bool {
	var said struct{ Sentinels *bool }
	return json.Unmarshal(answer, &said) == nil && said.Sentinels != nil && !*said.Sentinels
}

// initEnv is the environment that /init hands over, as the invoker fills it.
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

// environmentText is a parameter's value in the environment: a string as it is, anything else as JSON.
func environmentText(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}

// wantsKey tells whether the action asked for the namespace's key by its annotation: any JSON that is not false, null,
// zero or empty.
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

// runBody is the body of /run. Parameters, which are JSON, are put into it as they are.
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

// appendField appends a field of an object that has others before it.
func appendField(to []byte, name, value string) []byte {
	text, _ := json.Marshal(value) // a text
	to = append(append(append(to, `,"`...), name...), `":`...)
	return append(to, text...)
}

// deadlineText is epoch milliseconds as a string: what the invoker sends, whatever the documents say.
func deadlineText(limit time.Duration) string {
	return strconv.FormatInt(time.Now().Add(limit).UnixMilli(), 10)
}
