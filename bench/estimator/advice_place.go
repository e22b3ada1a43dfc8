package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
)

const (
	// smallDisk is the size of a disk that fills while a job runs, in MB.
	smallDisk = 48
	// understatedJobs is how many records of an understated history say the same.
	understatedJobs = 4
)

// place is a home for one failing job, and what is beside it.
type place struct {
	failing
	program    string
	root       string // of all below
	home, work string
	kept       string // the home as the failure left it
	submit     []string
	redis      *exec.Cmd // nil: none runs
	mounted    bool
}

func newPlace(ctx context.Context, s subject, f failing) (p *place, err error) {
	root, err := os.MkdirTemp("", "disdel-advice-")
	if err != nil {
		return nil, err
	}
	p = &place{failing: f, program: s.program, root: root}
	p.home, p.work, p.kept = filepath.Join(root, "home"), filepath.Join(root, "work"), filepath.Join(root, "kept")
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if err := errors.Join(os.Mkdir(p.home, 0o700), os.Mkdir(p.work, 0o700)); err != nil {
		return nil, err
	}
	job := filepath.Join(p.work, "advised.yaml")
	p.submit = append([]string{p.program, "submit", job, "-o", "json"}, f.args...)
	if err := os.WriteFile(job, []byte(f.file), 0o600); err != nil {
		return nil, err
	}
	if f.fault == diskFills {
		if err := unix.Mount("tmpfs", p.home, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", smallDisk)); err != nil {
			return nil, fmt.Errorf("a disk of its own takes the right to mount one: %w", err)
		}
		p.mounted = true
	}
	if f.fault == storeDies {
		p.submit = append(p.submit, "--redis", "unix://"+p.socket())
		return p, p.startRedis(ctx)
	}
	return p, nil
}

// close ends and removes everything.
func (p *place) close() error {
	p.killRedis()
	var err error
	if p.mounted {
		err = unix.Unmount(p.home, unix.MNT_DETACH)
	}
	return errors.Join(err, os.RemoveAll(p.root))
}

// prepare adds the data set, and has the history understate what jobs like this one need.
func (p *place) prepare(ctx context.Context) error {
	if ran := p.run(ctx, p.program, "dataset", "add", "digits"); ran.err != nil {
		return fmt.Errorf("dataset add: %w\n%s", ran.err, ran.stderr)
	}
	if p.fault != understate {
		return nil
	}
	if ran := p.run(ctx, p.program, "submit", filepath.Join(p.work, "advised.yaml"), "-q"); ran.err != nil {
		return fmt.Errorf("the job to understate: %w\n%s", ran.err, ran.stderr)
	}
	return understateHistory(ctx, p.home)
}

// understateHistory adds older records to the history of a home that say that the newest job used half of its memory.
func understateHistory(ctx context.Context, home string) (err error) {
	server, err := couchlite.Open(filepath.Join(home, "history.db"), couchlite.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if err := server.Start(); err != nil {
		return err
	}
	h, err := history.Open(ctx, history.Config{URL: server.URL()})
	if err != nil {
		return err
	}
	defer h.Close()
	id, err := h.Resolve(ctx, "@last")
	if err != nil {
		return err
	}
	for n := range understatedJobs {
		r, err := h.Get(ctx, id)
		if err != nil {
			return err
		}
		r.ID = disdel.JobID(fmt.Sprintf("job-%026d", n+1)) // older than any
		for i := range r.Activations {
			r.Activations[i].Peak /= 2
		}
		if err := h.Save(ctx, &r); err != nil {
			return err
		}
	}
	return nil
}

// failingRun submits the job and lets the fault happen once a checkpoint is there. What is broken is whole again when
// the job has ended. While the job only waits for its store, others have the turn.
func (p *place) failingRun(ctx context.Context, turn sync.Locker) (outcome, error) {
	if p.fault != storeDies && p.fault != diskFills {
		return p.run(ctx, p.submit...), nil
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	done := make(chan outcome, 1)
	go func() { done <- p.run(ctx, p.submit...) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !p.checkpointed() {
		select {
		case ran := <-done:
			return ran, nil
		case <-tick.C:
		}
	}
	if p.fault == storeDies {
		p.killRedis()
		turn.Unlock()
		ran := <-done
		turn.Lock()
		return ran, p.startRedis(ctx)
	}
	if err := p.fill(); err != nil {
		return outcome{}, err
	}
	ran := <-done
	return ran, os.Remove(p.ballast())
}

func (p *place) checkpointed() bool {
	list, err := filepath.Glob(
		filepath.Join(p.home, "models", "checkpoints", "job-*", "*", "reference.safetensors.sha256"))
	return err == nil && len(list) > 0
}

func (p *place) ballast() string { return filepath.Join(p.home, "ballast") }

// fill takes all the room of the home's disk.
func (p *place) fill() error {
	f, err := os.Create(p.ballast())
	if err != nil {
		return err
	}
	defer f.Close()
	for page := make([]byte, 4096); ; { // also what the running job frees meanwhile
		switch _, err := f.Write(page); {
		case errors.Is(err, unix.ENOSPC):
			return nil
		case err != nil:
			return err
		}
	}
}

func (p *place) socket() string { return filepath.Join(p.root, "redis.sock") }

// startRedis starts an empty server.
func (p *place) startRedis(ctx context.Context) error {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("the failures of kind store take a redis-server: %w", err)
	}
	if err := os.RemoveAll(p.socket()); err != nil {
		return err
	}
	p.redis = exec.Command(program, "--port", "0", "--unixsocket", p.socket(), "--save", "", "--dir", p.root)
	if err := p.redis.Start(); err != nil {
		return err
	}
	for { // the caller's context bounds it
		if _, err := os.Stat(p.socket()); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (p *place) killRedis() {
	if p.redis == nil {
		return
	}
	p.redis.Process.Kill() //nolint:errcheck // it may have ended
	p.redis.Wait()         //nolint:errcheck // it was killed
	p.redis = nil
}

// keep copies the home as the failure left it.
func (p *place) keep(ctx context.Context) error {
	return copied(p.run(ctx, "cp", "-a", p.home, p.kept))
}

// restore gives the home back what keep copied, so that no way learns from the one before.
func (p *place) restore(ctx context.Context) error {
	left, err := filepath.Glob(filepath.Join(p.home, "*"))
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return err
	}
	return copied(p.run(ctx, "cp", "-a", p.kept+"/.", p.home))
}

func copied(ran outcome) error {
	if ran.err != nil {
		return fmt.Errorf("cp: %w\n%s", ran.err, ran.stderr)
	}
	return nil
}
