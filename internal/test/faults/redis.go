package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// downtime is the longest time that a killed Redis stays away.
const downtime = 300 * time.Millisecond

// RestartRedis kills the redis-server of running jobs and starts it again on its append-only file.
func (r *Rig) RestartRedis(restarts int) (Tally, error) {
	s := &server{dir: filepath.Join(r.Dir, "redis")}
	if err := s.start(); err != nil {
		return Tally{}, err
	}
	defer s.kill()
	return r.disturb(restarts, func(*process) (int, error) {
		s.kill()
		time.Sleep(r.random(downtime))
		return 1, s.start()
	}, "--redis", s.url())
}

// FlushRedis takes from running jobs all that their Redis holds.
func (r *Rig) FlushRedis(flushes int) (Tally, error) {
	s := &server{dir: filepath.Join(r.Dir, "flushed")}
	if err := s.start(); err != nil {
		return Tally{}, err
	}
	defer s.kill()
	return r.disturb(flushes, func(*process) (int, error) { return 1, s.flush() }, "--redis", s.url())
}

// The ports of FreePort. Systems give higher ones to every connection and to servers that ask for any port.
const (
	leastPort = 20_000
	mostPort  = 32_000
)

// FreePort returns a loopback port on which nobody listens, for a server that another process starts soon. It is none
// of those that the system hands out meanwhile.
func FreePort() (int, error) {
	for {
		port := leastPort + rand.IntN(mostPort-leastPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return 0, err
		}
	}
}

// server is a redis-server whose every acknowledged write is on disk.
type server struct {
	dir  string
	port int
	cmd  *exec.Cmd
}

func (s *server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

func (s *server) url() string { return "redis://" + s.address() + "/0" }

func (s *server) start() error {
	if s.port == 0 {
		port, err := FreePort()
		if err != nil {
			return err
		}
		s.port = port
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	s.cmd = exec.Command("redis-server", "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--appendonly", "yes", "--appendfsync", "always", "--save", "")
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	return s.answers()
}

func (s *server) answers() error {
	for range 400 {
		c, err := net.Dial("tcp", s.address())
		if err == nil {
			return c.Close()
		}
		time.Sleep(25 * time.Millisecond)
	}
	return errors.New("redis-server does not answer")
}

func (s *server) flush() error {
	c, err := net.Dial("tcp", s.address())
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("FLUSHALL\r\n")); err != nil {
		return err
	}
	reply := make([]byte, 64)
	n, err := c.Read(reply)
	if err == nil && string(reply[:n]) != "+OK\r\n" {
		err = fmt.Errorf("FLUSHALL: %q", reply[:n])
	}
	return err
}

func (s *server) kill() {
	s.cmd.Process.Kill() //nolint:errcheck // it may have ended
	s.cmd.Wait()         //nolint:errcheck // killed
}
