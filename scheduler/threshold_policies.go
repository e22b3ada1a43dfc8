package scheduler

import (
	"fmt"

	"github.com/disdel/disdel"
)

// Elastic adds workers while 1,000 rows take less time with them, and keeps the best number: it doubles them at first
// and after each clear gain, otherwise it adds one. It uses the whole time of a round (compute, waiting,
// aggregation). An epoch with a failed worker is measured once more. So is one with a cold start, unless it gains
// clearly without that start, and a larger number that measured worse, since anything may slow one epoch. A number
// that measured worse twice is not tried again. If the best number becomes slower twice in a row, all measurements
// are forgotten.
type Elastic struct{}

// Constants of elastic. policy_test.go has the laws that it was tried on.
const (
	elasticPays   = 0.95 // of the best time: more workers pay below it
	elasticDouble = 0.80 // of the best time: the number is doubled below it
	elasticDrift  = 1.20 // times the best time: twice in a row above it, and measurements are forgotten
	elasticSame   = 1.05 // times the best time: fewer workers below it are as fast
	elasticNewest = 0.3  // weight of the newest time in the mean of the best number
	elasticTwice  = 2    // in a row
)

// Name implements Policy.
func (Elastic) Name() string { return disdel.PolicyElastic }

// Meaning implements Policy.
func (Elastic) Meaning() string {
	return "adds some at the end of an epoch while 1,000 rows take less time for it, and goes back where they do not"
}

// Decide implements Policy.
func (Elastic) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	if in.Boundary != disdel.BoundaryEpoch {
		return out
	}
	s := elasticSearch{bounds: in.Bounds, worse: map[int]bool{}, next: in.Now.Workers}
	for _, e := range epochs(in.Seen) {
		s.see(e)
	}
	out.Next.Workers, out.Why = s.next, s.why
	if s.expect > 0 {
		out.Expect = &disdel.Expectation{PerThousand: s.expect}
	}
	return out
}

// elasticSearch searches the best number of workers.
type elasticSearch struct {
	bounds Bounds
	best   int           // workers; 0: nothing measured yet
	time   disdel.Millis // of 1,000 rows with them
	noise  timeNoise     // of one measurement
	// variance is that of time, over that of one measurement
	variance float64
	worse    map[int]bool  // numbers that measured worse
	extra    bool          // the newest epoch is measured again
	doubt    disdel.Millis // the newest epoch's time; 0: it was disturbed
	slow     int           // epochs in a row in which the best number was slower than before

	next   int
	expect disdel.Millis
	why    string
}

func (s *elasticSearch) see(e epoch) {
	t := e.each()
	if e.disturbed && !s.extra {
		gains := s.best > 0 && e.workers > s.best && float64(e.started()) <= elasticDouble*float64(s.time)
		if e.failed || !gains {
			s.again(e.workers, t, "a container started cold or a worker failed")
			s.doubt = 0
			return
		}
		t = e.started()
	}
	second := s.extra
	variance := 1.0
	if s.extra = false; second && s.doubt > 0 {
		t, variance = s.both(t)
	}
	switch {
	case s.best == 0:
		s.found(e.workers, t)
		s.try(2*e.workers, "%s for 1,000 rows with %s", t.Text(), workersText(e.workers))
	case e.workers > s.best:
		s.more(e.workers, t, variance, second)
	case e.workers == s.best:
		s.measureBest(t)
	default:
		s.fewer(e.workers, t)
	}
}

// both joins two measured times of one number of workers, and returns the variance of the result. If both are faster
// than the best number, it returns their mean. Otherwise it returns the smaller one, since anything may slow an epoch.
func (s *elasticSearch) both(t disdel.Millis) (time disdel.Millis, variance float64) {
	s.noise.see(float64(t), float64(s.doubt), 1)
	if s.doubt < s.time {
		return (t + s.doubt) / 2, 0.5
	}
	return min(t, s.doubt), 1
}

// again measures the same number once more.
func (s *elasticSearch) again(workers int, t disdel.Millis, why string) {
	s.extra, s.doubt, s.next, s.expect = true, t, workers, t
	s.why = why + ": the same is measured once more"
}

func (s *elasticSearch) found(workers int, t disdel.Millis) {
	s.best, s.time, s.slow, s.variance = workers, t, 0, 1
}

// try continues with another number, unless it is out of bounds or measured worse.
func (s *elasticSearch) try(workers int, why string, args ...any) {
	workers = min(max(workers, s.bounds.Least), s.bounds.Most)
	if s.worse[workers] || workers == s.best {
		s.stay(why, args...)
		return
	}
	s.next, s.expect = workers, disdel.Millis(float64(s.time)*float64(s.best)/float64(workers))
	if workers < s.best {
		s.expect = s.time
	}
	s.why = fmt.Sprintf(why, args...) + fmt.Sprintf(": next with %s", workersText(workers))
}

func (s *elasticSearch) stay(why string, args ...any) {
	s.next, s.expect = s.best, s.time
	s.why = fmt.Sprintf(why, args...) + fmt.Sprintf(": %s it is", workersText(s.best))
}

// more compares a larger number with the best one. second says that it was measured just before.
func (s *elasticSearch) more(workers int, t disdel.Millis, variance float64, second bool) {
	was, before := s.best, s.time
	clear := s.noise.clear(float64(t), float64(before), variance, s.variance)
	switch {
	case clear && float64(t) <= elasticDouble*float64(before):
		s.found(workers, t)
		s.try(2*workers, "%s for 1,000 rows with %s, %s with %d", t.Text(), workersText(workers), before.Text(), was)
	case second && clear && float64(t) <= elasticPays*float64(before):
		s.found(workers, t)
		s.try(workers+1, "%s for 1,000 rows with %s, %s with %d", t.Text(), workersText(workers), before.Text(), was)
	case !second:
		s.again(workers, t, fmt.Sprintf("%s for 1,000 rows with %s, %s with %d", t.Text(), workersText(workers),
			before.Text(), was))
	default:
		s.worse[workers] = true
		s.stay("%s for 1,000 rows with %s, %s with %d", t.Text(), workersText(workers), before.Text(), was)
	}
}

// measureBest measures the best number once more.
func (s *elasticSearch) measureBest(t disdel.Millis) {
	if float64(t) <= elasticDrift*float64(s.time) {
		s.noise.see(float64(t), float64(s.time), s.variance)
		s.time = disdel.Millis((1-elasticNewest)*float64(s.time) + elasticNewest*float64(t))
		s.variance = meanVariance(s.variance, elasticNewest)
		s.slow = 0
		s.stay("%s for 1,000 rows", t.Text())
		return
	}
	before := s.time
	if s.slow++; s.slow < elasticTwice {
		s.stay("%s for 1,000 rows, after %s", t.Text(), before.Text())
		return
	}
	s.worse = map[int]bool{}
	s.found(s.best, t)
	s.try(s.best-1, "%s for 1,000 rows, twice in a row far above %s: what was measured no longer holds",
		t.Text(), before.Text())
}

// fewer compares a smaller number with the best one.
func (s *elasticSearch) fewer(workers int, t disdel.Millis) {
	was, before := s.best, s.time
	if float64(t) <= elasticSame*float64(before) {
		s.found(workers, t)
	} else {
		s.worse[workers] = true
	}
	s.stay("%s for 1,000 rows with %s, %s with %d", t.Text(), workersText(workers), before.Text(), was)
}

// workersText prints "1 worker", "2 workers".
func workersText(n int) string { return disdel.Counted(n, "worker") }

// KubeML is the rule of KubeML's scheduler as in its code (ThroughputBasedPolicy; section 3.4.2 of the thesis says
// less). After every epoch there is one worker more if the epoch took at most 1.05 times the reference time, and one
// less if it took at least 1.2 times as long. The rule has no bounds of its own; the job's apply. One thing differs
// from the code: an epoch's time includes its aggregation here.
type KubeML struct{}

// The rule's two thresholds.
const (
	kubeMLGood = 1.05
	kubeMLBad  = 1.2
)

// Name returns the policy's name in job files.
func (KubeML) Name() string { return disdel.PolicyKubeML }

// Meaning returns what explain says.
func (KubeML) Meaning() string { return "is the rule that KubeML published" }

// Decide follows the rule from the job's first epoch on.
func (KubeML) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	if in.Boundary != disdel.BoundaryEpoch {
		return out
	}
	var by disdel.Millis // the reference epoch's time
	step := 0
	for _, e := range epochs(in.Seen) {
		took := e.duration
		switch {
		case by == 0:
			by, step, out.Why = took, 1, fmt.Sprintf("the first epoch took %s: one worker more", took.Text())
		case float64(took) <= kubeMLGood*float64(by):
			out.Why = fmt.Sprintf("an epoch took %s, after one of %s: one worker more", took.Text(), by.Text())
			by, step = took, 1
		case float64(took) >= kubeMLBad*float64(by):
			out.Why = fmt.Sprintf("an epoch took %s, after one of %s: one worker less", took.Text(), by.Text())
			by, step = took, -1
		default:
			step = 0
			out.Why = fmt.Sprintf("an epoch took %s, and %s is what it goes by: as many workers", took.Text(), by.Text())
		}
	}
	out.Next.Workers += step
	return out
}

// Plateau halves the workers when the training loss stalls: when three epochs in a row have not fallen more than 1 %
// below the reference loss. The reference is the first epoch's loss, and then that of each epoch that did; so a loss
// that falls slowly but steadily is no stall. After a halving it waits for three more epochs. Of an odd number the
// larger half stays, one worker at least.
type Plateau struct{}

// The constants of plateau.
const (
	plateauGain   = 0.99 // of the reference loss: an epoch below it is an improvement
	plateauEpochs = 3    // in a row without an improvement
)

// Name returns the policy's name in job files.
func (Plateau) Name() string { return "plateau" }

// Meaning returns what explain says.
func (Plateau) Meaning() string {
	return "halves them where the training loss has not fallen by more than 1 % for three epochs"
}

// Decide tells whether the newest epoch ends a stall.
func (Plateau) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	if in.Boundary != disdel.BoundaryEpoch {
		return out
	}
	var by float64 // the reference loss
	still := 0     // epochs in a row without improvement, since the newest halving
	stalled := false
	for i, e := range epochs(in.Seen) {
		loss := e.meanLoss()
		stalled = false
		switch {
		case i == 0:
			by, out.Why = loss, fmt.Sprintf("train loss %.4f in the first epoch", loss)
		case loss < plateauGain*by:
			out.Why = fmt.Sprintf("train loss %.4f, after %.4f", loss, by)
			by, still = loss, 0
		default:
			still++
			out.Why = fmt.Sprintf("train loss %.4f: not more than 1 %% below %.4f for %d of %d epochs",
				loss, by, still, plateauEpochs)
			if stalled = still == plateauEpochs; stalled {
				still = 0
			}
		}
	}
	switch n := in.Now.Workers; {
	case out.Why == "":
	case !stalled:
		out.Why += ": as many workers"
	case n == 1:
		out.Why += ": one worker stays"
	default:
		out.Next.Workers = (n + 1) / 2
		out.Why += ": half as many workers"
	}
	return out
}
