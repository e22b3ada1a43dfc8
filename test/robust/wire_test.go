package robust

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// wire passes connections to a Redis server on. It knows which process each connection belongs to and what that process
// does, so that a test can hit one action: cut it off from Redis, or kill it before or after one of its calls.
type wire struct {
	target   string
	listener net.Listener
	wait     sync.WaitGroup

	// before and after are called around what a client sends: before it reaches Redis, and when Redis has answered but
	// the client has not heard it. They may be nil. Several connections call them at once.
	before, after func(c *client)

	mu      sync.Mutex
	thawed  *sync.Cond       // that a client is not cut off any more
	cut     map[int]bool     // guarded by mu: processes that are cut off
	clients map[int]*client  // guarded by mu: by process
	open    map[net.Conn]int // guarded by mu
	closed  bool             // guarded by mu
}

// client is a process that has connections to Redis.
type client struct {
	pid int

	mu         sync.Mutex
	calls      int             // guarded by mu: what it has sent, in pieces; a pipeline is one piece
	aggregates bool            // guarded by mu: it has claimed work above the workers' level
	works      map[string]bool // guarded by mu: keys of the work of the workers' level that it has claimed
}

// A claim's key ends with round, level and member (aggregator/keys.go).
var (
	claimsAggregate = regexp.MustCompile(`\}:work:\d+:[1-9]\d*:\d+`)
	claimsTraining  = regexp.MustCompile(`\}:work:\d+:0:\d+`)
)

// sent notes what the client sends.
func (c *client) sent(piece []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.aggregates = c.aggregates || claimsAggregate.Match(piece)
	for _, key := range claimsTraining.FindAllString(string(piece), -1) {
		if c.works == nil {
			c.works = map[string]bool{}
		}
		c.works[key] = true
	}
}

// state returns how many pieces the client has sent, whether it aggregates, and how much training it has claimed.
func (c *client) state() (calls int, aggregates bool, works int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls, c.aggregates, len(c.works)
}

// kill ends the client's process. Only disdel's actions are clients with a process of their own. A process that was not
// found has the id 0, which kill(2) takes for the whole process group of the caller: that one is left alone.
func (c *client) kill() bool {
	return c.pid > 0 && syscall.Kill(c.pid, syscall.SIGKILL) == nil
}

// wireTo returns a wire in front of a server, and the address to dial.
func wireTo(t *testing.T, target string) (*wire, string) {
	t.Helper()
	w := &wire{
		target: target, listener: listen(t),
		cut: map[int]bool{}, clients: map[int]*client{}, open: map[net.Conn]int{},
	}
	w.thawed = sync.NewCond(&w.mu)
	return w, w.listener.Addr().String()
}

// start begins to pass connections on, until the test ends.
func (w *wire) start(t *testing.T) {
	w.wait.Go(w.serve)
	t.Cleanup(w.close)
}

func (w *wire) serve() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.wait.Go(func() { w.connect(near) })
	}
}

func (w *wire) connect(near net.Conn) {
	defer near.Close()
	c := w.owner(near)
	if !w.passable(c.pid) {
		return
	}
	far, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer far.Close()
	w.mu.Lock()
	w.open[near], w.open[far] = c.pid, c.pid
	w.mu.Unlock()
	w.wait.Go(func() { w.pass(far, near, c, w.after, nil) })
	w.pass(near, far, c, w.before, c.sent)
}

// pass copies what comes from one side to the other. It ends both where one ends.
func (w *wire) pass(from, to net.Conn, c *client, hook func(*client), note func([]byte)) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 256<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if note != nil {
				note(buffer[:n])
			}
			if hook != nil {
				hook(c)
			}
			if !w.passable(c.pid) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// passable waits while a process is cut off. It returns false once the wire is closed.
func (w *wire) passable(pid int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.cut[pid] && !w.closed {
		w.thawed.Wait()
	}
	return !w.closed
}

// cutOff holds back all that a process sends and all that it is sent, until joined.
func (w *wire) cutOff(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[pid] = true
}

func (w *wire) join(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.cut, pid)
	w.thawed.Broadcast()
}

func (w *wire) close() {
	w.listener.Close()
	w.mu.Lock()
	w.closed = true
	w.thawed.Broadcast()
	for c := range w.open {
		c.Close()
	}
	w.mu.Unlock()
	w.wait.Wait()
}

// lookUps is how often the process of a connection is looked for: a process that starts or ends while /proc is read can
// be missed once.
const lookUps = 5

// owner returns the client on the other side of a connection from this machine. Its pid is 0 if no look-up finds it;
// such clients share nothing: each connection has its own.
func (w *wire) owner(c net.Conn) *client {
	pid := 0
	if address, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		for n := 0; n < lookUps && pid == 0; n++ {
			if inode := inodeOf(address.Port); inode != "" {
				pid = holderOf(inode)
			}
		}
	}
	if pid == 0 {
		return &client{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clients[pid] == nil {
		w.clients[pid] = &client{pid: pid}
	}
	return w.clients[pid]
}

// inodeOf is the inode of the socket with a local port, as proc(5)'s net/tcp has it.
func inodeOf(port int) string {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) > 9 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) && fields[9] != "0" {
				return fields[9]
			}
		}
	}
	return ""
}

// holderOf is the process that has a socket open.
func holderOf(inode string) int {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") //nolint:errcheck // the pattern is right
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == "socket:["+inode+"]" {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2]) //nolint:errcheck // 0: not found
			return pid
		}
	}
	return 0
}

// redisServer runs a server of Debian's until the test ends, and returns its address.
func redisServer(t *testing.T, env ...string) string {
	t.Helper()
	address := net.JoinHostPort("127.0.0.1", freePort(t))
	_, port, _ := net.SplitHostPort(address) //nolint:errcheck // as joined above
	serverWith(t, env, dials(address), "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "")
	return address
}
