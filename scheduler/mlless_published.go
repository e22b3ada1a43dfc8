package scheduler

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// MLLessPublished is MLLess' scale-in as its code has it, to be held against MLLess. Its steps are our rounds, and its
// interval of 20 s our epochs; its least squares are solved by golden sections and non-negative linear fits, since
// scipy's result depends on its starting point. It goes by the loss alone: past the knee the first worker leaves
// whatever that costs, and the next ones while the loss that is expected after ten more seconds is less than 15 % worse
// than with all workers. Nobody comes back.
type MLLessPublished struct{}

// The constants of its code.
const (
	publishedSpan    = 20      // of the running means
	publishedSlope   = -7.5e-5 // a step, of the loss as it is
	publishedCount   = 5       // times that the knee is where it was
	publishedHorizon = 10.0    // s
	publishedWorse   = 0.15    // S
)

// Name is the word of job files.
func (MLLessPublished) Name() string { return "mlless-published" }

// Meaning is what explain says.
func (MLLessPublished) Meaning() string { return "is the rule that MLLess published" }

// Decide goes through the rounds so far.
func (MLLessPublished) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	if in.Boundary != disdel.BoundaryEpoch {
		return out
	}
	s := scaleIn{times: map[int][]float64{}}
	for i, o := range in.Seen {
		s.step(o)
		n := o.Setting.Workers
		switch last := i == len(in.Seen)-1; {
		case o.Epoch != float64(int(o.Epoch)) || !s.knee:
		case !last && in.Seen[i+1].Setting.Workers < n:
			s.removed(n)
		case last && n > 1:
			s.decide(n)
		}
	}
	if s.removes {
		out.Next.Workers--
	}
	if out.Why = s.why; !s.knee {
		out.Why = "the loss has no knee yet"
	}
	return out
}

// scaleIn is the tuner's state.
type scaleIn struct {
	losses    []float64 // since the last removal
	steps     int
	times     map[int][]float64 // of steps by workers, s
	workers   int
	candidate int // step of the knee
	count     int // times that it was found there
	knee      bool
	all       []float64 // losses with all workers, of L_P; nil: nobody has left
	full      int       // P

	removes bool
	why     string
}

// step takes a round.
func (s *scaleIn) step(o disdel.Observation) {
	if n := o.Setting.Workers; n != s.workers {
		s.workers = n
	}
	s.steps++
	s.losses = append(s.losses, o.Loss)
	s.times[s.workers] = append(s.times[s.workers], o.Duration.Seconds())
	if !s.knee {
		s.findKnee()
	}
}

// findKnee takes the first place where the smoothed slope of the smoothed losses is nearly flat; where five steps have
// not moved it on, it is the knee.
func (s *scaleIn) findKnee() {
	if len(s.losses) < 3 {
		return
	}
	slopes := both(differences(both(s.losses)))
	k := 0
	for i, d := range slopes {
		if d > publishedSlope {
			k = i
			break
		}
	}
	switch {
	case k == 0:
		s.candidate, s.count = 0, 0
	case k > s.candidate:
		s.candidate, s.count = k, 0
	default:
		s.count++
		s.knee = s.count >= publishedCount
	}
}

func differences(v []float64) []float64 {
	out := make([]float64, len(v)-1)
	for i := range out {
		out[i] = v[i+1] - v[i]
	}
	return out
}

// both is the mean of running means forward and back, corrected for their start as pandas' adjust=True does it.
func both(v []float64) []float64 {
	const keep = 1 - 2.0/(publishedSpan+1)
	out := make([]float64, len(v))
	sum, weight := 0.0, 0.0
	for i, x := range v {
		sum, weight = keep*sum+x, keep*weight+1
		out[i] = sum / weight / 2
	}
	sum, weight = 0, 0
	for i := len(v) - 1; i >= 0; i-- {
		sum, weight = keep*sum+v[i], keep*weight+1
		out[i] += sum / weight / 2
	}
	return out
}

// decide tells whether a worker goes at the end of the newest epoch.
func (s *scaleIn) decide(workers int) {
	if s.all == nil {
		s.removes, s.why = true, "past the knee: one worker less"
		return
	}
	if len(s.losses) < 3 {
		s.why = "too few losses since the last one left"
		return
	}
	all, fewer := reference(s.all), recent(s.losses)
	before := all(math.Floor(float64(s.steps) + publishedHorizon/mean(s.times[s.full])))
	now := fewer(math.Floor(float64(len(s.losses)) + publishedHorizon/mean(s.times[workers])))
	worse := (now - before) / before
	s.why = fmt.Sprintf("the loss would be %.1f %% worse than with %s", 100*worse, crew(s.full))
	if worse < publishedWorse {
		s.removes = true
		s.why += ": one worker less"
	}
}

// removed clears the losses, as the tuner does when one has left.
func (s *scaleIn) removed(workers int) {
	if s.all == nil {
		s.all, s.full = s.losses, workers
	}
	s.losses = nil
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(1, len(v)))
}
