package scheduler

import (
	"math"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// never is when what nobody knows the end of is over.
const never = disdel.Millis(math.MaxInt64)

// profile is what will be free, from now on: in each step from its time until the next one's. The last step lasts for
// ever.
type profile struct{ steps []step }

type step struct {
	at   disdel.Millis
	free Capacity
}

// build makes the profile of a platform of which so much is free now: jobs give back what they hold when their time is
// up. Those of which nobody knows keep it. It returns how many steps that took.
func (p *profile) build(now disdel.Millis, free Capacity, jobs []Demand, grants []Grant) int {
	p.steps = append(p.steps[:0], step{now, Capacity{}})
	for i := range jobs {
		if d := &jobs[i]; d.Held != nil {
			p.gives(due(now, d.until, d.Held), d.room)
		}
	}
	for i := range grants {
		if g := &grants[i]; !g.Reserved {
			p.gives(due(now, until(g), g), g.Room)
		}
	}
	for i := range p.steps { // from what each step gives back to what is free in it
		free = free.Plus(p.steps[i].free)
		p.steps[i].free = free
	}
	return len(jobs) + len(grants) + len(p.steps)
}

// gives notes that room comes back at a time.
func (p *profile) gives(at disdel.Millis, room Capacity) {
	if at == never {
		return
	}
	i := p.index(at)
	if p.steps[i].at != at {
		i++
		p.steps = slices.Insert(p.steps, i, step{at, Capacity{}})
	}
	p.steps[i].free = p.steps[i].free.Plus(room)
}

// due is when what a job holds comes back. One that is late is expected to take a quarter more than it has, and no less
// than a second.
func due(now, until disdel.Millis, g *Grant) disdel.Millis {
	if until > now {
		return until
	}
	more := max((now-g.From)/4, disdel.Millis(time.Second))
	return upTo(now+more, more)
}

// ends is when a job that begins at a time gives its gang back at the latest.
func ends(from disdel.Millis, job *Demand) disdel.Millis {
	if job.Takes.High <= 0 {
		return never
	}
	return upTo(from+job.Takes.High, job.Takes.High)
}

// upTo is a time, or later by up to a sixteenth of what it is the end of: on a grid of 1, 2 or 5 times a power of ten,
// so that many jobs end at few times, and a profile stays short however many there are.
func upTo(at, takes disdel.Millis) disdel.Millis {
	const parts = 16
	grid := disdel.Millis(1)
	for grid*10*parts <= takes {
		grid *= 10
	}
	for _, times := range []disdel.Millis{5, 2} {
		if grid*times*parts <= takes {
			grid *= times
			break
		}
	}
	return (at + grid - 1) / grid * grid
}

// index is the step that a time is in.
func (p *profile) index(at disdel.Millis) int {
	low, high := 0, len(p.steps)
	for low < high {
		if middle := (low + high) / 2; p.steps[middle].at > at {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low - 1
}

// holds tells whether there is room from a time to another, and how many steps were looked at.
func (p *profile) holds(from, to disdel.Millis, room Capacity) (ok bool, seen int) {
	for i := p.index(from); i < len(p.steps) && p.steps[i].at < to; i++ {
		seen++
		if !p.steps[i].free.Holds(room) {
			return false, seen
		}
	}
	return true, seen
}

// earliest is when there is room for so long; 0: for ever. ok is false where that is not to be foreseen.
func (p *profile) earliest(room Capacity, takes disdel.Millis) (from disdel.Millis, ok bool, seen int) {
	open := false
	for _, s := range p.steps {
		seen++
		if open && takes > 0 && s.at >= from+takes {
			break
		}
		switch fits := s.free.Holds(room); {
		case !fits:
			open = false
		case !open:
			open, from = true, s.at
		}
	}
	return from, open, seen
}

// take takes room from a time to another, or for ever.
func (p *profile) take(from, to disdel.Millis, room Capacity) {
	first, last := p.cut(from), len(p.steps)
	if to != never {
		last = p.cut(to)
	}
	for i := first; i < last; i++ {
		p.steps[i].free = p.steps[i].free.Minus(room)
	}
}

// cut makes a step begin at a time and returns its index.
func (p *profile) cut(at disdel.Millis) int {
	i := p.index(at)
	if p.steps[i].at == at {
		return i
	}
	p.steps = slices.Insert(p.steps, i+1, step{at, p.steps[i].free})
	return i + 1
}
