package scheduler

import (
	"fmt"

	"github.com/disdel/disdel"
)

// Elastic adds workers while 1,000 rows take less time for it, and keeps the number that was best: twice as many at
// first and after each clear gain, else one more. It goes by the whole of a round (compute, waiting, aggregation). An
// epoch in which a worker failed is measured once more, one in which a container started cold as well, unless it
// gains clearly without that start; and so is a larger number that measured worse, since one epoch may be slow for
// any reason: a second time, and it is not tried again. Where the best has become slower twice in a row, what was
// measured is forgotten.
type Elastic struct{}

// What elastic goes by. policy_test.go has the laws that it was tried on.
const (
	elasticPays   = 0.95 // of the best time: a gain that more workers are worth
	elasticDouble = 0.80 // of it: a gain after which their number is doubled
	elasticDrift  = 1.20 // times the best: twice in a row, and what was measured no longer holds
	elasticSame   = 1.05 // times the best: as fast, for fewer workers
	elasticNewest = 0.3  // of the newest time in the mean of the best number's
	elasticTwice  = 2    // in a row
)

// Name is the word of job files.
func (Elastic) Name() string { return disdel.PolicyElastic }

// Meaning is what explain says.
func (Elastic) Meaning() string {
	return "adds some at the end of an epoch while 1,000 rows take less time for it, and goes back where they do not"
}

// Decide goes through the epochs so far and says with how many workers the next one is.
func (Elastic) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	if in.Boundary != disdel.BoundaryEpoch {
		return out
	}
	s := climb{bounds: in.Bounds, worse: map[int]bool{}, next: in.Now.Workers}
	for _, e := range epochs(in.Seen) {
		s.see(e)
	}
	out.Next.Workers, out.Why = s.next, s.why
	if s.expect > 0 {
		out.Expect = &disdel.Expectation{PerThousand: s.expect}
	}
	return out
}

// climb is a search for the best number of workers.
type climb struct {
	bounds Bounds
	best   int           // workers; 0: nothing was measured
	time   disdel.Millis // of 1,000 rows with them
	noise  timeNoise     // of one measurement
	// variance is that of time, over that of one measurement
	variance float64
	worse    map[int]bool  // numbers that measured worse
	extra    bool          // the newest epoch is measured once more
	doubt    disdel.Millis // the newest epoch's time; 0: something disturbed it
	slow     int           // epochs in a row in which the best number was slower than it had been

	next   int
	expect disdel.Millis
	why    string
}

func (s *climb) see(e epoch) {
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
		s.try(2*e.workers, "%s for 1,000 rows with %s", t.Text(), crew(e.workers))
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
func (s *climb) both(t disdel.Millis) (time disdel.Millis, variance float64) {
	s.noise.see(float64(t), float64(s.doubt), 1)
	if s.doubt < s.time {
		return (t + s.doubt) / 2, 0.5
	}
	return min(t, s.doubt), 1
}

// again measures the same once more.
func (s *climb) again(workers int, t disdel.Millis, why string) {
	s.extra, s.doubt, s.next, s.expect = true, t, workers, t
	s.why = why + ": the same is measured once more"
}

func (s *climb) found(workers int, t disdel.Millis) {
	s.best, s.time, s.slow, s.variance = workers, t, 0, 1
}

// try continues with another number, unless it is out of bounds or measured worse.
func (s *climb) try(workers int, why string, args ...any) {
	workers = min(max(workers, s.bounds.Least), s.bounds.Most)
	if s.worse[workers] || workers == s.best {
		s.stay(why, args...)
		return
	}
	s.next, s.expect = workers, disdel.Millis(float64(s.time)*float64(s.best)/float64(workers))
	if workers < s.best {
		s.expect = s.time
	}
	s.why = fmt.Sprintf(why, args...) + fmt.Sprintf(": next with %s", crew(workers))
}

func (s *climb) stay(why string, args ...any) {
	s.next, s.expect = s.best, s.time
	s.why = fmt.Sprintf(why, args...) + fmt.Sprintf(": %s it is", crew(s.best))
}

// more holds a larger number against the best; second: it was measured before, just now.
func (s *climb) more(workers int, t disdel.Millis, variance float64, second bool) {
	was, before := s.best, s.time
	clear := s.noise.clear(float64(t), float64(before), variance, s.variance)
	switch {
	case clear && float64(t) <= elasticDouble*float64(before):
		s.found(workers, t)
		s.try(2*workers, "%s for 1,000 rows with %s, %s with %d", t.Text(), crew(workers), before.Text(), was)
	case second && clear && float64(t) <= elasticPays*float64(before):
		s.found(workers, t)
		s.try(workers+1, "%s for 1,000 rows with %s, %s with %d", t.Text(), crew(workers), before.Text(), was)
	case !second:
		s.again(workers, t, fmt.Sprintf("%s for 1,000 rows with %s, %s with %d", t.Text(), crew(workers), before.Text(), was))
	default:
		s.worse[workers] = true
		s.stay("%s for 1,000 rows with %s, %s with %d", t.Text(), crew(workers), before.Text(), was)
	}
}

// measureBest measures the best number once more.
func (s *climb) measureBest(t disdel.Millis) {
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

// fewer holds a smaller number against the best.
func (s *climb) fewer(workers int, t disdel.Millis) {
	was, before := s.best, s.time
	if float64(t) <= elasticSame*float64(before) {
		s.found(workers, t)
	} else {
		s.worse[workers] = true
	}
	s.stay("%s for 1,000 rows with %s, %s with %d", t.Text(), crew(workers), before.Text(), was)
}

// crew prints "1 worker", "2 workers".
func crew(n int) string {
	if n == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", n)
}
