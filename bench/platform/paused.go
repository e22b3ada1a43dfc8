package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel/internal/localplatform"
)

const (
	pausedContainers = 50
	pausedWithin     = time.Minute
	pausedFor        = 20 * time.Second
)

// paused is the part of a processor that a platform takes with all that it started, while it holds containers that
// nobody uses.
func (s *server) paused() error {
	c, err := s.client()
	if err != nil {
		return err
	}
	for i := range pausedContainers {
		name := fmt.Sprintf("idle%d", i)
		if err := create(c, name, "noop"); err != nil {
			return err
		}
		if _, _, err := c.Actions.Invoke(name, map[string]any{}, true, true); err != nil {
			return err
		}
	}
	for end := time.Now().Add(pausedWithin); ; time.Sleep(time.Second) {
		n, err := s.pausedNow()
		if err != nil {
			return err
		}
		if n == pausedContainers {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d containers are paused", n, pausedContainers)
		}
	}
	before, begin := s.processorTime(), time.Now()
	time.Sleep(pausedFor)
	used := s.processorTime() - before
	figure("idle_cpu_pct", 100*used.Seconds()/time.Since(begin).Seconds(), "%")
	return nil
}

func (s *server) pausedNow() (int, error) {
	pool, err := s.pool()
	return pool.Paused, err
}

// pool is what the platform's container pool holds.
func (s *server) pool() (localplatform.Pool, error) {
	out, err := s.command("platform", "status", "-o", "json").Output()
	if err != nil {
		return localplatform.Pool{}, err
	}
	var status struct{ Pool localplatform.Pool }
	err = json.Unmarshal(out, &status)
	return status.Pool, err
}

// children are the processes that the platform started.
func (s *server) children() (out []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		const state, parent = 0, 1
		if len(fields) > parent && fields[parent] == strconv.Itoa(s.pid) && fields[state] != "Z" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			out = append(out, pid)
		}
	}
	return out
}

// processorTime is what the platform and its children took so far.
func (s *server) processorTime() (sum time.Duration) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		sum += timeOf(string(data), s.pid)
	}
	return sum
}

// timeOf reads /proc/PID/stat (proc(5)) of a process: its time, if it is pid or a child of it.
func timeOf(stat string, pid int) time.Duration {
	const parent, user, system, tick = 1, 11, 12, 10 * time.Millisecond // from the state on, after the name
	own, _, _ := strings.Cut(stat, " (")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	id := strconv.Itoa(pid)
	if len(fields) <= system || own != id && fields[parent] != id {
		return 0
	}
	u, _ := strconv.Atoi(fields[user])
	k, _ := strconv.Atoi(fields[system])
	return time.Duration(u+k) * tick
}
