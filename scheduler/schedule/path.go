package schedule

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Path is a schedule of five numbers: workers and memory change from a first to a last value with the job's progress,
// on a logarithmic scale with an exponent.
type Path struct {
	FirstWorkers, LastWorkers float64
	FirstMemory, LastMemory   float64 // MB
	Exponent                  float64 // 1: evenly; above 1: late
}

// String is "96 to 31 workers of 1792 to 2304 MB, exponent 0.8".
func (p Path) String() string {
	return fmt.Sprintf("%.0f to %.0f workers of %.0f to %.0f MB, exponent %.2g", p.FirstWorkers, p.LastWorkers,
		p.FirstMemory, p.LastMemory, p.Exponent)
}

// memoryLevels is the most memories that a job's path has: each is an action of its own, whose containers start cold.
const memoryLevels = 4

// At returns the path's choice at a job's progress, from 0 to 1.
func (p Path) At(progress float64) Choice {
	z := math.Pow(min(1, max(0, progress)), p.Exponent)
	between := func(a, b, z float64) float64 { return a * math.Pow(b/a, z) }
	level := math.Round(z*(memoryLevels-1)) / (memoryLevels - 1)
	return Choice{
		Workers: int(math.Round(between(p.FirstWorkers, p.LastWorkers, z))),
		Memory:  between(p.FirstMemory, p.LastMemory, level),
	}
}

// Along follows the path in a world.
func (p Path) Along(w *World) Chooser {
	return func(s State) Choice { return p.At(w.progress(s)) }
}

func Constant(c Choice) Path {
	n, m := float64(c.Workers), c.Memory
	return Path{n, n, m, m, 1}
}

// searchSize is the size of a search by the cross-entropy method: generations of paths drawn around the best of the
// previous one.
type searchSize struct{ generations, drawn, elite int }

var (
	thorough = searchSize{25, 150, 20}
	quick    = searchSize{10, 60, 10} // for the rest of a job, after every epoch
)

const searchSeed = 3

// Search finds the path with which the job ends soonest within a budget (0: none), without noise. Its first
// generation has the best fixed choice, so that no path is worse; ok is false if that one does not end either. It
// takes some milliseconds.
func (w *World) Search(budget float64) (best Path, course Course, ok bool) {
	fixed, _, ok := w.Best(budget)
	if !ok {
		return Path{}, Course{}, false
	}
	best, course = w.searchFrom(Constant(fixed), budget, thorough)
	return best, course, true
}

// Adaptive searches the best path for the rest of the job after every epoch, with a reserve for noise. If no path
// ends within what is left, it takes the cheapest choice.
func (w *World) Adaptive() Chooser {
	return func(s State) Choice {
		rest := *w
		rest.First, rest.Epochs = s.Loss, max(1, w.Epochs-s.Epoch)
		rest.Target *= math.Exp(-spread * w.LossNoise)
		seconds := func(c Course) float64 { return c.Seconds }
		for _, spare := range []float64{spread * w.TimeNoise / 3, 0} { // for about nine epochs together
			budget := 0.0
			if s.Budget > 0 {
				budget = max(1e-9, s.Left*(1-spare))
			}
			if fixed, _, ok := rest.bestOf(budget, coarseStep, rest.few, seconds); ok {
				p, _ := rest.searchFrom(Constant(fixed), budget, quick)
				return p.At(0)
			}
		}
		c, _, _ := w.finish(s.Epoch, s.Loss)
		return c
	}
}

// searchFrom searches around a path that reaches the end.
func (w *World) searchFrom(best Path, budget float64, e searchSize) (Path, Course) {
	course := w.Run(best.Along(w), budget, nil)
	s := search{w: w, budget: budget, lot: rand.New(rand.NewPCG(searchSeed, 0)), searchSize: e}
	s.begin(best)
	for range e.generations {
		for _, c := range s.generation(best) {
			if c.course.Reached && c.course.Seconds < course.Seconds {
				best, course = c.path(), c.course
			}
		}
	}
	return best, course
}

type search struct {
	searchSize
	w      *World
	budget float64
	lot    *rand.Rand
	mean   [5]float64 // logarithms
	sd     [5]float64
}

type candidate struct {
	at     [5]float64
	course Course
	value  float64
}

func (c candidate) path() Path {
	e := func(i int) float64 { return math.Exp(c.at[i]) }
	return Path{e(0), e(1), e(2), e(3), e(4)}
}

func logs(p Path) [5]float64 {
	return [5]float64{
		math.Log(p.FirstWorkers), math.Log(p.LastWorkers), math.Log(p.FirstMemory), math.Log(p.LastMemory),
		math.Log(p.Exponent),
	}
}

// begin starts the search around a path, wider in workers than in memories.
func (s *search) begin(p Path) {
	s.mean, s.sd = logs(p), [5]float64{1, 1, 0.4, 0.4, 0.5}
	if s.w.MostMemory <= s.w.LeastMemory {
		s.sd[2], s.sd[3] = 0, 0
	}
}

// generation draws paths, including the best so far, and moves towards the best of these.
func (s *search) generation(best Path) []candidate {
	all := make([]candidate, s.drawn)
	all[0].at = logs(best)
	for i := range all {
		for k := range s.mean {
			if i > 0 {
				all[i].at[k] = s.mean[k] + s.sd[k]*s.lot.NormFloat64()
			}
		}
		for k := range 2 {
			all[i].at[k] = min(max(0, all[i].at[k]), math.Log(float64(max(1, s.w.MostWorkers))))
		}
		all[i].course = s.w.Run(all[i].path().Along(s.w), s.budget, nil)
		all[i].value = s.w.value(all[i].course)
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.value, b.value) })
	const smoothing, minimum = 0.7, 1e-3
	for k := range s.mean {
		var sum, squares float64
		for _, c := range all[:s.elite] {
			sum, squares = sum+c.at[k], squares+c.at[k]*c.at[k]
		}
		mean := sum / float64(s.elite)
		sd := math.Sqrt(max(0, squares/float64(s.elite)-mean*mean))
		s.mean[k] = smoothing*mean + (1-smoothing)*s.mean[k]
		if s.sd[k] > 0 {
			s.sd[k] = max(minimum, smoothing*sd+(1-smoothing)*s.sd[k])
		}
	}
	return all
}

// value is a course's time. If it did not reach its end, it is more than any time, and grows with the distance.
func (w *World) value(c Course) float64 {
	if c.Reached {
		return c.Seconds
	}
	const failed = 1e9
	return failed * (1 + w.distance(len(c.Epochs), c.Loss))
}

// distance is how much of the way to its end a job has left: 0 to 1, more if the loss rose above 1.
func (w *World) distance(epochs int, loss float64) float64 {
	if w.Target > 0 {
		return max(0, math.Log(loss/w.Target)/math.Log(w.First/w.Target))
	}
	return max(0, 1-float64(epochs)/float64(max(1, w.Epochs)))
}
