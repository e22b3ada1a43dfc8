package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

// with runs part of an experiment on a platform of its own.
func (b *bench) with(ctx context.Context, at bounds, do func(r *testbed) error) (err error) {
	python := ""
	if b.tensorflow {
		python = b.python
	}
	r, err := newTestbed(ctx, b.sources(), at, python)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return do(r)
}

// keep notes what a run came to, and tells whoever watches.
func (b *bench) keep(m *measured, o outcome) outcome {
	fmt.Fprintln(os.Stderr, o)
	return m.keep(o)
}

// each is runs of one job in environments one after another, whose outcomes are kept, but not who ran when.
func (b *bench) each(ctx context.Context, r *testbed, m *measured, t task, turn int, envs []string) error {
	for _, env := range envs {
		o, err := b.once(ctx, r, env, t, turn)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", t.id, env, err)
		}
		o.Activations = nil
		b.keep(m, o)
	}
	return nil
}

// once runs a job in an environment.
func (b *bench) once(ctx context.Context, r *testbed, env string, t task, turn int) (outcome, error) {
	p := plainly{task: t, limits: r.atMost(largestAction), seed: b.seed}
	switch env {
	case envSlot:
		p.threads = max(1, threads()/2)
		return r.tried(ctx, env, p, turn)
	case envDefault:
		return r.tried(ctx, env, p, turn)
	case envMax:
		return r.plain(ctx, env, p, turn)
	case envMaxSlots: // part of a processor has no use for a second thread
		p.threads = 1
		return r.plain(ctx, env, p, turn)
	case envBare:
		return r.bare(ctx, t, turn, b.seed)
	case envDefaultTF:
		return r.tfDefault(ctx, t, turn, b.seed, r.atMost(r.bounds.pool))
	case envBareTF:
		return r.tfBare(ctx, b.python, t, turn, b.seed)
	default:
		return r.submit(ctx, env, t, turn, b.seed)
	}
}

// steps are the retries of Fig. 2: 300 s, then 240 s more each time.
func (s scale) steps() rig.FixedStep {
	return rig.FixedStep{
		First: disdel.Limits{Memory: largestAction, Timeout: disdel.Millis(s.time(300 * time.Second))},
		Step:  disdel.Limits{Timeout: disdel.Millis(s.time(240 * time.Second))},
		Most:  disdel.Limits{Memory: largestAction, Timeout: disdel.Millis(s.time(120 * time.Minute))},
	}
}

// asLong is the motivation's job, with the number of rows for which one container computes so long. It finds the number
// by a try of one epoch, which is not charged and has no limit.
func (b *bench) asLong(ctx context.Context, epochs int, want time.Duration) (task, error) {
	one := mobile(64, 1)
	one.rows = triedRows
	var o outcome
	err := b.with(ctx, bounds{pool: doubledPool}, func(r *testbed) (err error) {
		o, err = r.plain(ctx, envDefault, plainly{task: one, limits: r.atMost(largestAction), seed: b.seed}, 0)
		return err
	})
	if err == nil && !o.Passed {
		err = errors.New(o.Why)
	}
	if err != nil {
		return one, err
	}
	t := mobile(64, epochs)
	each := o.Compute / float64(one.rows)
	t.rows = max(2*t.batch, int(want.Seconds()/each/float64(epochs))/t.batch*t.batch)
	return t, nil
}

// triedRows are those of a try that finds how fast the machine is.
const triedRows = 2048

func mb(n disdel.Bytes) float64 { return float64(n) / float64(disdel.MB) }

func megabytes(n disdel.Bytes) string { return fmt.Sprintf("%.1f", mb(n)) }
