package platform

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// gauge is a small file of the kernel's that is read again and again: it is opened once, and a look is one system call.
type gauge struct {
	file *os.File // nil: there is none
	raw  syscall.RawConn
}

// gaugeRoom holds any of the files that are read so.
const gaugeRoom = 512

func openGauge(path string) gauge {
	f, err := os.Open(path)
	if err != nil {
		return gauge{}
	}
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return gauge{}
	}
	return gauge{f, raw}
}

// read appends what the file says now, nothing where it is gone.
func (g gauge) read(to []byte) []byte {
	if g.file == nil {
		return to
	}
	room := to[len(to):cap(to)]
	g.raw.Control(func(fd uintptr) { //nolint:errcheck // closed: it says nothing
		for {
			n, err := unix.Pread(int(fd), room, 0)
			if err == unix.EINTR {
				continue
			}
			to = to[:len(to)+max(0, n)]
			return
		}
	})
	return to
}

// number is that which the file holds, 0 where it holds none.
func (g gauge) number() int {
	n, _ := strconv.Atoi(string(bytes.TrimSpace(g.read(make([]byte, 0, gaugeRoom)))))
	return n
}

// counts tells whether the file has a line of a name with another number than 0.
func (g gauge) counts(name string) bool {
	for line := range bytes.Lines(g.read(make([]byte, 0, gaugeRoom))) {
		if said, n, ok := bytes.Cut(bytes.TrimSpace(line), []byte{' '}); ok && string(said) == name && string(n) != "0" {
			return true
		}
	}
	return false
}

func (g gauge) close() {
	if g.file != nil {
		g.file.Close()
	}
}
