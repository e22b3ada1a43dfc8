package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tracedRuns are the invocations whose system calls are counted. Tracing slows them, so that none is timed.
const tracedRuns = 300

// systemCalls counts those of a warm invocation, by the platform and by its containers together, with what either does
// in the background meanwhile; and takes what one costs on this machine.
func (s *server) systemCalls() error {
	figure("system_call_us", costOfACall(), "us")
	hand, err := costOfAHandOver()
	if err != nil {
		return err
	}
	figure("hand_over_us", hand, "us")
	if _, err := exec.LookPath("strace"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: noop_system_calls is missing: this machine has no strace")
		return nil
	}
	for _, who := range []struct {
		name string
		pids []int
	}{{"noop_system_calls", []int{s.pid}}, {"noop_container_system_calls", s.children()}} {
		calls, err := s.traced(who.pids)
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s is missing: %v\n", who.name, err)
			continue
		}
		figure(who.name, float64(calls)/tracedRuns, "a warm invocation")
	}
	return nil
}

// traced is how many system calls processes make while tracedRuns invocations are made one after the other.
func (s *server) traced(pids []int) (int, error) {
	c, err := s.client()
	if err != nil {
		return 0, err
	}
	args := []string{"-c", "-f", "-U", "calls,name"}
	for _, pid := range pids {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	cmd := exec.Command("strace", args...)
	said, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	lines := bufio.NewReader(said)
	for range pids { // one line says that it is there
		if _, err := lines.ReadString('\n'); err != nil {
			return 0, errors.Join(err, cmd.Wait())
		}
	}
	for range tracedRuns {
		if _, _, err = c.Actions.Invoke("noop", map[string]any{}, true, true); err != nil {
			break
		}
	}
	err = errors.Join(err, cmd.Process.Signal(os.Interrupt))
	var table bytes.Buffer
	_, readErr := table.ReadFrom(lines)
	cmd.Wait() //nolint:errcheck // it ends with the signal
	if err := errors.Join(err, readErr); err != nil {
		return 0, err
	}
	return totalOf(table.String())
}

// totalOf is the last line of strace's table: the number of calls, and the word total.
func totalOf(table string) (int, error) {
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[len(fields)-1] == "total" {
			return strconv.Atoi(fields[0])
		}
	}
	return 0, fmt.Errorf("strace says %.200q", table)
}

// costOfACall is that of a system call that does nothing, in microseconds.
func costOfACall() float64 {
	const many = 200_000
	begin := time.Now()
	for range many {
		syscall.Getppid()
	}
	return float64(time.Since(begin)) / float64(time.Microsecond) / many
}

// costOfAHandOver is half of what a byte takes to another thread and back: writing, waking and reading.
func costOfAHandOver() (float64, error) {
	const many = 20_000
	there, back := make([]int, 2), make([]int, 2)
	if err := errors.Join(syscall.Pipe(there), syscall.Pipe(back)); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- pass(there[0], back[1], many, false)
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := time.Now()
	err := errors.Join(pass(back[0], there[1], many, true), <-done)
	taken := time.Since(begin)
	for _, fd := range append(there, back...) {
		err = errors.Join(err, syscall.Close(fd))
	}
	return float64(taken) / float64(time.Microsecond) / many / 2, err
}

// pass takes a byte from one pipe and puts it into another, so many times; first says that it begins.
func pass(from, to, times int, first bool) error {
	b := make([]byte, 1)
	for range times {
		if first {
			if _, err := syscall.Write(to, b); err != nil {
				return err
			}
		}
		if _, err := syscall.Read(from, b); err != nil {
			return err
		}
		if !first {
			if _, err := syscall.Write(to, b); err != nil {
				return err
			}
		}
	}
	return nil
}
