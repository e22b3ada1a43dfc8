package batch

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
)

// Halving stops jobs that fall behind, by successive halving without waiting. After From epochs a batch has a place for
// one job in Factor, after Factor times as many epochs for one in Factor of these, and so on; at least for one. A job
// is stopped once as many better jobs as there are places have trained for the same epochs. Jobs do not wait for each
// other, so a job that ends before the better jobs begin is not stopped: more jobs than places may run to the end.
type Halving struct {
	Factor int // at least 2; 0: no job is stopped early
	From   int // epochs; 0: 1
}

// parseHalving makes a Halving of two numbers. It returns Invalid for wrong ones.
func parseHalving(factor, from int) (Halving, error) {
	if factor == 0 && from == 0 || factor >= 2 && from >= 0 {
		return Halving{factor, from}, nil
	}
	e := &disdel.Error{
		Kind: disdel.Invalid, Msg: fmt.Sprintf("halving with a factor of %d from epoch %d on is none", factor, from),
		Hint: "the factor is at least 2, and the first comparison is after 1 epoch or more",
	}
	return Halving{}, e
}

// contest decides the Halving of a running batch. It is pure.
type contest struct {
	Halving
	by    Measure
	jobs  int // of the batch
	rungs []map[int]Point
	out   map[int]bool // jobs that were stopped, or that failed
	// stopped is the rung at which a job was stopped. The job went on at the rungs before, and keeps its place there.
	stopped map[int]int
}

func newContest(h Halving, by Measure, jobs int) *contest {
	h.From = max(1, h.From)
	return &contest{Halving: h, by: by, jobs: jobs, out: map[int]bool{}, stopped: map[int]int{}}
}

// beaten is a job to stop.
type beaten struct {
	job int
	why string
}

// reached notes the newest point of a job with so many epochs, and returns the jobs to stop.
func (c *contest) reached(job, epochs int, p Point) (stop []beaten) {
	if c.Factor == 0 || c.out[job] {
		return nil
	}
	for rung, at := 0, c.From; at <= p.Epochs && at < epochs; rung, at = rung+1, at*c.Factor {
		if rung == len(c.rungs) {
			c.rungs = append(c.rungs, map[int]Point{})
		}
		if _, was := c.rungs[rung][job]; was {
			continue
		}
		c.rungs[rung][job] = p
		stop = append(stop, c.behind(rung, at)...)
	}
	return stop
}

// leaves takes out a job that failed: it does not count as a better job.
func (c *contest) leaves(job int) { c.out[job] = true }

// behind returns the jobs at a rung that have more better jobs before them than the rung has places.
func (c *contest) behind(rung, at int) (stop []beaten) {
	var list []int
	for job := range c.rungs[rung] {
		if c.holdsPlace(job, rung) {
			list = append(list, job)
		}
	}
	slices.SortFunc(list, func(a, b int) int {
		if order := c.by.compare(c.rungs[rung][a], c.rungs[rung][b]); order != 0 {
			return order
		}
		return a - b
	})
	on := c.goOn(rung)
	for _, job := range list[min(on, len(list)):] {
		if c.out[job] || len(c.out) == c.jobs-1 { // the last job goes on: those before it may have failed since
			continue
		}
		c.out[job], c.stopped[job] = true, rung
		stop = append(stop, beaten{job, fmt.Sprintf("it fell behind: %d of %d jobs were better after %s",
			on, c.jobs, disdel.Counted(at, "epoch"))})
	}
	return stop
}

// holdsPlace reports whether a job has a place at a rung, even if it was stopped at a later one. Otherwise each job
// that is stopped later would give another one its place here.
func (c *contest) holdsPlace(job, rung int) bool {
	at, stopped := c.stopped[job]
	return !c.out[job] || stopped && at > rung
}

// goOn is the number of places of a rung.
func (c *contest) goOn(rung int) int {
	n := c.jobs
	for range rung + 1 {
		n = (n + c.Factor - 1) / c.Factor
	}
	return max(1, n)
}
