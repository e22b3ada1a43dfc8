package scheduler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel"
)

// drawnFit is a job that may need more memory than there is, and a limit.
func drawnFit(t *testing.T, draw *rand.Rand) (in PlanInput, limit disdel.Bytes) {
	in = wide(t)
	in.Data.Train, in.Data.SampleSize = oneOf(draw, 40, 2000), oneOf[disdel.Bytes](draw, 1, 40)*disdel.KB
	in.Platform.MinMemory, in.Platform.Concurrent = someMB(draw, 1, 128), oneOf(draw, 0, 5)
	in.Platform.MaxMemory = someMB(draw, 150, 512)
	in.Job.Training.BatchSize, in.Job.Distribution.Workers = oneOf(draw, 8, 64, 1000), oneOf(draw, 1, 2, 4)
	in.Job.Training.Fit = oneOf(draw, in.Job.Training.Fit, disdel.FitNone)
	in.Job.Resources.Memory = oneOf(draw, 0, 0, 256*mega)
	if draw.IntN(3) == 0 {
		in.Job.Training.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}
	}
	return in, someMB(draw, 40, 60, 80, 100, 130, 200, 300)
}

// 24 drawn jobs fit drawn limits with the same batches, workers and changes as in earlier versions. A job that fits by
// no change is told the least limit, and only then.
func TestDrawnJobsFitAsBefore(t *testing.T) {
	draw := rand.New(rand.NewPCG(9, 20261129))
	var lines []string
	for n := range 24 {
		in, limit := drawnFit(t, draw)
		lines = append(lines, fmt.Sprintf("%d %d rows of %v, batch %d, %d workers, memory %v, %s, %d moments, within %v", n,
			in.Data.Train, in.Data.SampleSize, in.Job.Training.BatchSize, in.Job.Distribution.Workers, in.Job.Resources.Memory,
			in.Job.Training.Fit, in.Job.Training.Optimizer.Moments(), limit))
		f := FitMemory(in, limit, oneOf(draw, 0, 2))
		for i, p := range []*FitPoint{f.Given, f.SameWorkers, f.Largest} {
			if p != nil {
				lines = append(lines, fmt.Sprintf("  %s: batch %d, %d workers %v", []string{"given", "same", "largest"}[i],
					p.BatchSize, p.Workers, p.Set))
			}
		}
		lines = append(lines, fmt.Sprintf("  least %v with the batch, %v for %s with one row", f.LeastGiven, f.Least,
			f.LeastTask))
		k := KilledAction{
			Task: oneOf(draw, disdel.TaskTrain, disdel.TaskAggregate), Need: someMB(draw, 50, 150, 250),
			Batch: oneOf(draw, 0, 16), Workers: oneOf(draw, 0, 2),
		}
		for _, c := range FitKilled(in, k, limit) {
			lines = append(lines, fmt.Sprintf("  killed %+v: %q, %v of %v", k, c.Set, c.Estimate, c.Limit))
		}
		p, err := NewPlan(in)
		if err != nil {
			e := disdel.AsError(err)
			lines = append(lines, fmt.Sprintf("  %s; %s; %q", e.Msg, e.Hint, e.Changes))
			if !errors.Is(err, disdel.OverLimit) {
				continue
			}
			if p, err = NewPlan(WithoutLimits(in)); err != nil {
				continue
			}
		}
		for _, s := range SmallerLimits(in, p) {
			if told := s.Least > 0; told != (len(s.Changes) == 0) {
				t.Errorf("%d: %d changes to %v, and the least limit is %v", n, len(s.Changes), s.Limit, s.Least)
			}
			lines = append(lines, fmt.Sprintf("  %v %s: least %v of %s", s.Limit, s.Whose, s.Least, s.LeastTask))
			for _, c := range s.Changes {
				lines = append(lines, fmt.Sprintf("    %q: %v of %v", c.Set, c.Estimate, c.Limit))
			}
		}
	}
	sameAsBefore(t, "fits.txt", lines)
}

// A job that continues with another gang inside of what it holds keeps the rest free. One that shares processors takes
// none for the other gang either.
func TestAGangWithinWhatAJobHolds(t *testing.T) {
	gang := func(n int) Gang {
		return Gang{{Task: disdel.TaskTrain, Count: n, Each: Capacity{Memory: mega, Millicores: 100}}}
	}
	if _, ok := (Demand{Gang: gang(2)}).WithinHeld(Demand{Gang: gang(1)}); ok {
		t.Error("a job that holds nothing continues within it")
	}
	for _, c := range []struct {
		shares, free bool // it shares processors; it holds none
		n            int
		fits         bool
		cores        int
	}{
		{false, false, 1, true, 100},
		{false, false, 2, true, 200},
		{false, false, 3, false, 0},
		{true, true, 2, true, 0},
		{true, false, 2, true, 200},
		{false, true, 1, false, 0},
	} {
		room := gang(2).Room()
		if c.free {
			room.Millicores = 0
		}
		d := Demand{Gang: gang(2), Shares: c.shares, Held: &Grant{Gang: gang(2), Room: room, Until: sec}}
		got, ok := d.WithinHeld(Demand{Gang: gang(c.n), Keep: KeepRound})
		if ok != c.fits {
			t.Errorf("%+v: fits %t", c, ok)
			continue
		}
		if !ok {
			continue
		}
		if h := got.Held; h.Gang.Size() != c.n || h.Room.Memory != disdel.Bytes(c.n)*mega || h.Room.Millicores != c.cores ||
			h.Keep != KeepRound || h.Until != sec || d.Held.Gang.Size() != 2 {
			t.Errorf("%+v: holds %+v", c, h)
		}
	}
}
