package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// forksVariable names the descriptor at which the program of a container asks for forks of a template (Kind.Forks).
//
// A template is a process that has imported what is slow to import. The programs of containers describe it by its
// arguments and its environment; containers with the same description share one. The memory that forks share with it is
// part of those containers' limits, so the pool does not count it again. A template without containers counts, and
// ends when the memory is needed or after the time of idle containers.
//
// A fork belongs to its container: it joins the process group and the control group before it runs.
const forksVariable = "__DISDEL_FORKS"

// forksDescriptor is the first descriptor that exec.Cmd gives to an extra file.
const forksDescriptor = 3

// forkRequest is what a container's program asks for. With it come the descriptors of the fork and, last, a socket for
// the answer.
type forkRequest struct {
	Args  []string        `json:"args"`  // of the template
	Env   []string        `json:"env"`   // of the template
	Local []string        `json:"local"` // more variables, which may differ between containers that share a template
	Start json.RawMessage `json:"start"` // what the template does in the fork

	files []int
}

// Bounds of a request and of an answer.
const (
	maxForkRequest = 64 << 10
	maxForkFiles   = 16
)

// Bounds of the time that a template takes: it imports gigabytes of libraries from disks, but forks at once.
const (
	templateWait = 3 * time.Minute
	forkWait     = 20 * time.Second
)

// pathRoom is the length of the paths in a template's environment. Forks write shorter ones over them, because the
// kernel shows the environment that a process started with, and processes are found by it.
const pathRoom = 512

// template is a process that others are forked from.
type template struct {
	process *container // with its own folder, limit and streams; nil if it did not start
	conn    *net.UnixConn
	err     error      // why it did not start; set before ready is closed, like the fields above
	ready   *closeOnce // closed once it started or failed
	turn    sync.Mutex // one fork at a time

	users map[*container]bool // guarded by the mutex of templates

	memory disdel.Bytes // that the pool counts; guarded by the pool's lock, like the field below
	since  time.Time    // when it lost its last container
}

// templates are those of a platform, by description.
type templates struct {
	mu    sync.Mutex
	byKey map[string]*template
	work  sync.WaitGroup
}

// openForks gives a container the socket at which its program asks for forks.
func (p *Platform) openForks(c *container) error {
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return err
	}
	c.forks = conn.(*net.UnixConn) //nolint:forcetypeassert // it is a unix socket
	c.cmd.ExtraFiles = append(c.cmd.ExtraFiles, theirs)
	c.cmd.Env = append(c.cmd.Env, fmt.Sprintf("%s=%d", forksVariable, forksDescriptor))
	return nil
}

// serveForks answers a container's requests until its program has ended.
func (p *Platform) serveForks(c *container) {
	defer c.watched.Done()
	for {
		r, err := readForkRequest(c.forks)
		if err != nil {
			return
		}
		if err := p.fork(c, r); err != nil {
			p.cfg.Logger.WithError(err).WithField("template", r.Args).Warn("a process could not be forked from its template")
			r.refuse(err)
		}
		closeAll(r.files)
	}
}

// readForkRequest waits for a request. It returns an error once the other end is closed.
func readForkRequest(from *net.UnixConn) (r forkRequest, err error) {
	data, rights := make([]byte, maxForkRequest), make([]byte, unix.CmsgSpace(4*maxForkFiles))
	n, n2, _, _, err := from.ReadMsgUnix(data, rights)
	if err != nil || n == 0 {
		return r, errors.Join(err, net.ErrClosed)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n2])
	if err != nil {
		return r, err
	}
	for i := range messages {
		if files, err := unix.ParseUnixRights(&messages[i]); err == nil {
			r.files = append(r.files, files...)
		}
	}
	for _, fd := range r.files {
		unix.CloseOnExec(fd)
	}
	if err = json.Unmarshal(data[:n], &r); err == nil && (len(r.files) == 0 || len(r.Args) == 0) {
		err = errors.New("the request has no command or no files")
	}
	if err != nil {
		closeAll(r.files)
	}
	return r, err
}

// refuse answers that there is no fork.
func (r *forkRequest) refuse(err error) {
	text, _ := json.Marshal(forkReply{Error: err.Error()}) // strings always have JSON
	unix.Write(r.files[len(r.files)-1], text)              //nolint:errcheck // it may be gone
}

func closeAll(files []int) {
	for _, fd := range files {
		unix.Close(fd) //nolint:errcheck // they were only passed on
	}
}

// fork starts a fork in a container.
func (p *Platform) fork(c *container, r forkRequest) error {
	t := p.templates.get(p, c, &r)
	select {
	case <-t.ready.c:
	case <-c.exited.c:
		return errDied
	}
	if t.err != nil {
		return t.err
	}
	t.turn.Lock()
	defer t.turn.Unlock()
	err := t.fork(c, &r)
	if err != nil {
		t.process.killGroup() // it may be in any state; the next request starts another one
	}
	return err
}

// get returns a container's template, which may still be starting.
func (ts *templates) get(p *Platform, c *container, r *forkRequest) *template {
	key := strings.Join(append(slices.Clone(r.Args), r.Env...), "\x00")
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.byKey[key]
	if t != nil && t.ended() {
		ts.end(t)
		t = nil
	}
	if t == nil {
		t = &template{ready: newOnce(), users: map[*container]bool{}}
		if ts.byKey == nil {
			ts.byKey = map[string]*template{}
		}
		ts.byKey[key] = t
		request := *r
		ts.work.Go(func() {
			t.err = t.start(p, &request)
			t.ready.close()
		})
	}
	p.pool.takeTemplate(t)
	t.users[c] = true
	return t
}

// started tells whether the template has started, or failed to.
func (t *template) started() bool {
	select {
	case <-t.ready.c:
		return true
	default:
		return false
	}
}

// failed tells whether the template could not start. It stays known: it would fail again, after seconds of imports.
func (t *template) failed() bool { return t.started() && t.err != nil }

// ended tells whether the template has started and is gone again.
func (t *template) ended() bool { return t.started() && t.err == nil && !t.process.alive() }

// release leaves the templates that no other container uses to the pool, or ends them.
func (ts *templates) release(p *Platform, c *container) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for key, t := range ts.byKey {
		if !t.users[c] {
			continue
		}
		delete(t.users, c)
		if len(t.users) == 0 && !t.failed() && (!t.started() || t.ended() || !p.pool.keepTemplate(t)) {
			delete(ts.byKey, key)
			ts.end(t)
		}
	}
}

// drop ends a template, unless a container has asked for it meanwhile.
func (ts *templates) drop(t *template) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for key, known := range ts.byKey {
		if known == t && len(t.users) == 0 {
			delete(ts.byKey, key)
			ts.end(t)
		}
	}
}

// end kills a template. Its forks are dead already, or end with it.
func (ts *templates) end(t *template) {
	ts.work.Go(func() {
		<-t.ready.c
		if t.conn != nil {
			t.conn.Close()
		}
		if t.process != nil {
			t.process.kill()
		}
	})
}

// close waits for the end of all templates. The containers are gone.
func (ts *templates) close() {
	ts.mu.Lock()
	for _, t := range ts.byKey {
		ts.end(t)
	}
	ts.byKey = nil
	ts.mu.Unlock()
	ts.work.Wait()
}

// start starts the process and waits until it can fork.
func (t *template) start(p *Platform, r *forkRequest) error {
	c, err := p.newContainer(size{memory: p.cfg.Limits.Memory.Max})
	if err != nil {
		return err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		c.cleanUp()
		return err
	}
	defer ours.Close()
	c.setCommand(r.Args)
	prefix := c.dir + strings.Repeat("/", max(0, pathRoom-len(c.dir)))
	c.cmd.Env = slices.Concat([]string{"HOME=" + prefix, "TMPDIR=" + prefix, "PATH=" + os.Getenv("PATH")}, r.Env, r.Local)
	c.cmd.ExtraFiles = []*os.File{theirs}
	if err := p.startProcess(c, 0); err != nil {
		return err
	}
	conn, err := net.FileConn(ours)
	if err == nil {
		t.conn = conn.(*net.UnixConn) //nolint:forcetypeassert // it is a unix socket
		_, err = t.receive(templateWait)
	}
	if err != nil {
		c.kill()
		return err
	}
	t.process = c
	return nil
}

// forkReply is what a template answers.
type forkReply struct {
	PID   int    `json:"pid"`
	Error string `json:"error"`
}

func (t *template) receive(limit time.Duration) (reply forkReply, err error) {
	if err := t.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return reply, err
	}
	data := make([]byte, maxForkRequest)
	n, err := t.conn.Read(data)
	if err == nil {
		err = json.Unmarshal(data[:n], &reply)
	}
	switch {
	case reply.Error != "":
		err = &disdel.Error{Kind: disdel.Unavailable, Op: "start template", Msg: reply.Error}
	case err != nil:
		err = &disdel.Error{Kind: disdel.Unavailable, Op: "start template", Msg: "it ended or does not answer", Err: err}
	}
	return reply, err
}

// fork has the template fork, moves the fork into the container's control group, and lets it run.
func (t *template) fork(c *container, r *forkRequest) error {
	wait, run, err := os.Pipe()
	if err != nil {
		return err
	}
	defer wait.Close()
	defer run.Close()
	order, err := json.Marshal(map[string]any{"group": c.cmd.Process.Pid, "start": r.Start})
	if err != nil {
		return err
	}
	rights := unix.UnixRights(append(slices.Clone(r.files), int(wait.Fd()))...)
	if _, _, err := t.conn.WriteMsgUnix(order, rights, nil); err != nil {
		return err
	}
	reply, err := t.receive(forkWait)
	if err != nil {
		return err
	}
	onFreshThread(func() { c.limit.started(reply.PID) })
	_, err = run.Write([]byte{1})
	return err
}
