package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// actions kills action processes until there were enough kills.
func (h *harness) actions(o options) error {
	lost, changed, jobs := 0, 0, 0
	for kills := 0; kills < o.kills; jobs++ {
		home, job, err := h.home()
		if err != nil {
			return err
		}
		p := h.started(home, "submit", job)
		for p.running(h.rng, 300*time.Millisecond) {
			victims := actionsOf(p.cmd.Process.Pid)
			if len(victims) == 0 || kills == o.kills {
				continue
			}
			if syscall.Kill(victims[h.rng.IntN(len(victims))], syscall.SIGKILL) == nil {
				kills++
			}
		}
		r, err := p.wait()
		l, c := h.judge(home, r, err)
		lost, changed = lost+l, changed+c
	}
	figure("killed_actions", float64(o.kills), "kills")
	figure("killed_jobs", float64(jobs), "jobs")
	figure("lost_jobs", float64(lost), "jobs")
	figure("changed_bits", float64(changed), "jobs")
	return nil
}

// actionsOf is the action processes that a process and its children started.
func actionsOf(pid int) []int {
	var out []int
	for _, child := range childrenOf(pid) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
		if args := bytes.Split(line, []byte{0}); err == nil && len(args) > 1 && string(args[1]) == "runtime" {
			out = append(out, child)
		}
		out = append(out, actionsOf(child)...)
	}
	return out
}

func childrenOf(pid int) []int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var out []int
	for _, file := range tasks {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// redis restarts the store under running jobs.
func (h *harness) redis(o options) error {
	s := &server{dir: filepath.Join(h.dir, "redis")}
	if err := s.start(); err != nil {
		return err
	}
	defer s.kill()
	lost, changed, jobs := 0, 0, 0
	for n := 0; n < o.restarts; jobs++ {
		home, job, err := h.home()
		if err != nil {
			return err
		}
		p := h.started(home, "submit", job, "--redis", s.url())
		for p.running(h.rng, 1500*time.Millisecond) {
			if n == o.restarts {
				continue
			}
			s.kill()
			time.Sleep(time.Duration(h.rng.Int64N(int64(300 * time.Millisecond))))
			if err := s.start(); err != nil {
				return err
			}
			n++
		}
		r, err := p.wait()
		l, c := h.judge(home, r, err)
		lost, changed = lost+l, changed+c
	}
	figure("restarts", float64(o.restarts), "restarts")
	figure("restarted_jobs", float64(jobs), "jobs")
	figure("restart_redis_lost_jobs", float64(lost), "jobs")
	figure("restart_redis_changed_bits", float64(changed), "jobs")
	return nil
}

// server is a redis-server whose every acknowledged write is on disk.
type server struct {
	dir  string
	port int
	cmd  *exec.Cmd
}

func (s *server) url() string { return fmt.Sprintf("redis://127.0.0.1:%d/0", s.port) }

func (s *server) start() error {
	if s.port == 0 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.port = l.Addr().(*net.TCPAddr).Port
		l.Close()
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
	for range 200 {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
		if err == nil {
			return c.Close()
		}
		time.Sleep(25 * time.Millisecond)
	}
	return errors.New("redis-server does not answer")
}

func (s *server) kill() {
	s.cmd.Process.Kill() //nolint:errcheck // it may have ended
	s.cmd.Wait()         //nolint:errcheck // killed
}

// controllers kills disdel itself and takes the job up again, until there were enough kills.
func (h *harness) controllers(o options) error {
	lost, changed, jobs := 0, 0, 0
	for kills := 0; kills < o.controllers; jobs++ {
		home, job, err := h.home()
		if err != nil {
			return err
		}
		p := h.started(home, "submit", job)
		r, err := result{}, errNotAccepted
		for errors.Is(err, errNotAccepted) {
			for p.running(h.rng, 2*time.Second) {
				if kills == o.controllers {
					continue
				}
				p.cmd.Process.Kill() //nolint:errcheck // it may have ended
				<-p.done
				kills++
				p = h.started(home, "resume", "@last")
			}
			if r, err = p.wait(); errors.Is(err, errNotAccepted) {
				p = h.started(home, "submit", job)
			}
		}
		l, c := h.judge(home, r, err)
		lost, changed = lost+l, changed+c
	}
	figure("killed_controllers", float64(o.controllers), "kills")
	figure("killed_controllers_jobs", float64(jobs), "jobs")
	figure("restart_lost_jobs", float64(lost), "jobs")
	figure("restart_changed_bits", float64(changed), "jobs")
	return nil
}
