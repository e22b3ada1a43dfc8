package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// KillActions kills action processes of the embedded platform at random.
func (r *Rig) KillActions(kills int) (Tally, error) {
	return r.disturb(kills, func(p *process) (int, error) {
		victims := actionsOf(p.cmd.Process.Pid)
		if len(victims) == 0 || syscall.Kill(victims[r.rng.IntN(len(victims))], syscall.SIGKILL) != nil {
			return 0, nil
		}
		return 1, nil
	})
}

// longestStop is how long StopActions stops a process at most.
const longestStop = 800 * time.Millisecond

// StopActions stops action processes at random (SIGSTOP), and lets them go on a little later. Every second one is
// killed instead, so that the platform replaces a process that did nothing for a while.
func (r *Rig) StopActions(stops int) (Tally, error) {
	return r.disturb(stops, func(p *process) (int, error) {
		victims := actionsOf(p.cmd.Process.Pid)
		if len(victims) == 0 {
			return 0, nil
		}
		victim := victims[r.rng.IntN(len(victims))]
		if syscall.Kill(victim, syscall.SIGSTOP) != nil {
			return 0, nil
		}
		time.Sleep(r.random(longestStop))
		then := syscall.SIGCONT
		if r.rng.IntN(2) == 0 {
			then = syscall.SIGKILL
		}
		syscall.Kill(victim, then) //nolint:errcheck // its job may have ended it
		return 1, nil
	})
}

// KillController kills disdel itself, with the platform and the store in it, and takes the job up again.
func (r *Rig) KillController(kills int) (Tally, error) { return r.resumed(kills) }

// KillControllerBesideRedis is KillController with a store that lives on, with all that the job had come to there.
func (r *Rig) KillControllerBesideRedis(kills int) (Tally, error) {
	s := &server{dir: filepath.Join(r.Dir, "beside")}
	if err := s.start(); err != nil {
		return Tally{}, err
	}
	defer s.kill()
	return r.resumed(kills, "--redis", s.url())
}

func (r *Rig) resumed(kills int, args ...string) (Tally, error) {
	submit := func(job string) []string { return append([]string{"submit", job}, args...) }
	resume := append([]string{"resume", "@last"}, args...)
	var t Tally
	for ; t.Faults < kills; t.Jobs++ {
		home, job, err := r.home()
		if err != nil {
			return t, err
		}
		p := r.start(home, submit(job)...)
		for accepted := false; !accepted; {
			for n := 0; p.runs(r.random(r.Pace)); n++ {
				if n >= r.PerJob || t.Faults == kills {
					continue
				}
				p.cmd.Process.Kill() //nolint:errcheck // it may have ended
				<-p.done
				t.Faults++
				p = r.start(home, resume...)
			}
			res, rec, err := p.wait()
			if errors.Is(err, errSucceeded) {
				res, rec, err = r.start(home, "history", "show", "@last").wait()
			}
			if accepted = !errors.Is(err, errNotAccepted); accepted {
				r.judge(&t, home, res, rec, err)
			} else {
				p = r.start(home, submit(job)...)
			}
		}
	}
	return t, nil
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
		for word := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}
