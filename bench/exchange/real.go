package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

// runner runs jobs of four workers through the built program, each worker a process of its own, beside a redis-server.
type runner struct {
	rig.Program
	redis string
	stop  func()
}

func newRunner(path, movielens string) (*runner, error) {
	home, err := os.MkdirTemp("", "disdel-exchange-")
	if err != nil {
		return nil, err
	}
	r := &runner{Program: rig.Program{Path: path, Home: home}}
	if r.redis, r.stop, err = rig.StartRedis(home); err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	add := []string{"dataset", "generate", "ratings", "films", "--held-out", "0.1"}
	if _, missing := os.Stat(movielens); missing == nil {
		add = []string{"dataset", "add", "films", "--ratings", movielens, "--held-out", "0.1"}
	}
	if _, err = r.Run(nil, add...); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *runner) close() error {
	r.stop()
	return os.RemoveAll(r.Home)
}

// job is PMF with MLLess' optimiser on four workers, 250 rows a step each.
func (r *runner) job(threshold float64, sync disdel.Sync, epochs int) (disdel.Record, error) {
	job := fmt.Sprintf(`apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: films}
model: {name: pmf, rank: 20}
data: {source: "dataset://films"}
training:
  epochs: %d
  batchSize: 250
  optimizer: {sgd: {learningRate: 0.4, momentum: 0.8, nesterov: true}}
distribution:
  workers: 4
  sync: %s
  aggregation: {optimizer: keep}
  exchange: {threshold: %g, combine: sum}
`, epochs, sync, threshold)
	return r.Job([]byte(job), "submit", "-", "--redis", r.redis)
}

// measured is what a job's steps came to.
type measured struct {
	times   disdel.StepTimes // of a step
	bytes   float64          // that a worker sends of one
	values  float64
	median  float64
	heldOut []float64 // by round
	sent    []float64 // bytes of a worker, all rounds up to this one
}

func measure(rec *disdel.Record) (m measured, err error) {
	var all disdel.StepCourse
	sum := 0.0
	for i := range rec.Rounds {
		round := &rec.Rounds[i]
		if round.Steps == nil || round.Loss == nil {
			return m, fmt.Errorf("round %d of %s says nothing of its steps", i, rec.ID)
		}
		m.median += round.Steps.Median / float64(len(rec.Rounds))
		all.Stretches = append(all.Stretches, round.Steps.Stretches...)
		for _, s := range round.Steps.Stretches {
			sum += s.Bytes * float64(s.Steps)
			m.values += s.Values * float64(s.Steps)
		}
		m.heldOut, m.sent = append(m.heldOut, *round.Loss), append(m.sent, sum)
	}
	steps := 0
	for _, s := range all.Stretches {
		steps += s.Steps
	}
	m.values /= float64(max(1, steps))
	m.times, m.bytes = all.Mean()
	return m, nil
}

// until is the round whose held-out loss was at most target; ok is false where none was.
func (m *measured) until(target float64) (round int, ok bool) {
	for i, loss := range m.heldOut {
		if loss <= target {
			return i, true
		}
	}
	return 0, false
}

// repeats is how often each is run, in turn forwards and backwards, so that what the machine does besides comes to all
// of them alike.
const repeats = 2

// several are the runs of jobs of one threshold.
type several []measured

// typical is the run with the smaller median of a step, the quieter one.
func (s several) typical() measured {
	return slices.MinFunc(s, func(a, b measured) int { return cmp.Compare(a.median, b.median) })
}

// onThisMachine measures steps of four workers, and what the virtual clock would have said of them: a step takes a
// fixed time and a time for each byte. Both come from the jobs that send most and least, and the jobs between them are
// compared with it. Medians count: a step in which the machine did something else says nothing of the clock.
func onThisMachine(o options) error {
	r, err := newRunner(o.program, o.movielens)
	if err != nil {
		return err
	}
	defer r.close() //nolint:errcheck // a folder of its own
	runs := map[float64]several{}
	for n := range repeats {
		order := []float64{0, 0.1, 0.7, 5} // those that send most and least, and two between them
		if n%2 == 1 {
			slices.Reverse(order)
		}
		for _, v := range order {
			rec, err := r.job(v, disdel.SyncEpoch, 10)
			if err != nil {
				return err
			}
			m, err := measure(&rec)
			if err != nil {
				return err
			}
			runs[v] = append(runs[v], m)
		}
	}
	bsp, isp, least := runs[0].typical(), runs[0.7].typical(), runs[5].typical()
	rig.Figure("step_ms_p50", bsp.median, "ms")
	rig.Figure("step_values", bsp.values, "values")
	rig.Figure("step_ms_p50_isp", isp.median, "ms")
	for k, part := range bsp.times.Parts() {
		rig.Figure("step_ms_"+disdel.StepParts[k], part, "ms")
	}
	best := math.Inf(1)
	for _, loss := range bsp.heldOut {
		best = min(best, loss)
	}
	target := near * best
	whole, _ := bsp.until(target)
	if own, ok := isp.until(target); ok {
		rig.Figure("isp_bytes_ratio", isp.sent[own]/bsp.sent[whole], "ratio")
		if err := r.overPyTorch(o, target, own+1); err != nil {
			return err
		}
	}
	perByte := (bsp.median - least.median) / (bsp.bytes - least.bytes)
	worst := 0.0
	for _, v := range []float64{0.1, 0.7} {
		m := runs[v].typical()
		said := least.median + perByte*(m.bytes-least.bytes)
		rig.Figure(fmt.Sprintf("clock_said_v%g", v), said/m.median, "ratio")
		worst = max(worst, math.Abs(said/m.median-1))
	}
	rig.Figure("clock_ms_step", least.median-perByte*least.bytes, "ms")
	rig.Figure("clock_us_per_kb", 1e6*perByte, "us/KB")
	rig.Figure("clock_error", worst, "ratio")
	return nil
}

// overPyTorch divides the time to a held-out loss, in one round of so many epochs with the start of processes, by
// PyTorch's. PyTorch runs in one process on the same two processors.
func (r *runner) overPyTorch(o options, target float64, epochs int) error {
	rec, err := r.job(0.7, disdel.SyncEnd, epochs)
	if err != nil {
		return err
	}
	ours := rec.Phases.Train.Seconds()
	rig.Figure("s_to_loss", ours, "s")
	rig.Figure("s_to_loss_heldout_over_target", rec.Loss/target, "ratio")
	if _, missing := os.Stat(o.movielens); missing != nil {
		return nil
	}
	theirs := peers(o.pythons, "--ratings", o.movielens, "--target", fmt.Sprint(target), "--threads", "2")
	if s := theirs[toLoss]; s > 0 {
		rig.Figure("over_pytorch", s/ours, "ratio")
	}
	if s := theirs[denseToLoss]; s > 0 {
		rig.Figure("over_pytorch_dense", s/ours, "ratio")
	}
	return nil
}
