package platform

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pump reads one of a container's two streams. A goroutine of its own waits for what is printed. Whoever needs the log
// whole, which an activation's end does, reads what is there by himself: he would else wait for that goroutine's turn.
type pump struct {
	in   *os.File // that the process writes to; the platform's own is closed once it has started
	out  *os.File // that is read
	raw  syscall.RawConn
	to   *lineWriter
	done chan struct{}

	mu   sync.Mutex // around a read and what becomes of it, so that lines stay in order
	room []byte
}

// pumpRoom is how much is read at once.
const pumpRoom = 16 << 10

// attach gives a command that is to be started its two streams.
func (l *logs) attach(cmd *exec.Cmd) error {
	for _, stream := range []struct {
		name string
		of   func(*os.File)
	}{
		{"stdout", func(f *os.File) { cmd.Stdout = f }},
		{"stderr", func(f *os.File) { cmd.Stderr = f }},
	} {
		out, in, err := os.Pipe()
		if err != nil {
			return err
		}
		p := &pump{in: in, out: out, to: l.writer(stream.name), done: make(chan struct{}), room: make([]byte, pumpRoom)}
		l.pumps = append(l.pumps, p)
		if p.raw, err = out.SyscallConn(); err != nil {
			return err
		}
		stream.of(in)
	}
	return nil
}

// detach closes the streams of a command that was not started.
func (l *logs) detach() {
	for _, p := range l.pumps {
		p.in.Close()
		p.out.Close()
	}
}

// read reads the streams of a command that was started, until close.
func (l *logs) read() {
	for _, p := range l.pumps {
		p.in.Close()
		go p.work()
	}
}

// close ends reading: once the streams have ended, or after a while, where others than the process hold them.
func (l *logs) close(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for _, p := range l.pumps {
		select {
		case <-p.done:
		case <-timer.C:
			timer.Reset(0) // nor are the others waited for
		}
		p.raw.Control(func(fd uintptr) { p.take(fd, true) }) //nolint:errcheck // as in drain
		p.out.Close()
		<-p.done
	}
}

// drain takes in what was printed until now.
func (l *logs) drain() {
	for _, p := range l.pumps {
		p.raw.Control(func(fd uintptr) { p.take(fd, false) }) //nolint:errcheck // closed: it was read to its end
	}
}

// work reads until the stream's end.
func (p *pump) work() {
	defer close(p.done)
	p.raw.Read(func(fd uintptr) bool { return p.take(fd, true) }) //nolint:errcheck // closed: nobody reads on
}

// take hands on what there is and tells whether the stream has ended. all looks again after the last of it: only who
// saw that there is nothing left may wait to be told of more.
func (p *pump) take(fd uintptr, all bool) (ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		n, err := unix.Read(int(fd), p.room)
		switch {
		case n > 0:
			p.to.Write(p.room[:n]) //nolint:errcheck // it takes everything
			if !all && n < len(p.room) {
				return false
			}
		case err == unix.EINTR:
		default:
			return err != unix.EAGAIN
		}
	}
}
