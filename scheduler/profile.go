package scheduler

import (
	"cmp"
	"math"
	"slices"
	"sort"
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
func (p *profile) build(now disdel.Millis, free Capacity, held []*Demand) int {
	seen := len(held)
	byEnd := func(a, b *Demand) int { seen++; return cmp.Compare(due(now, a), due(now, b)) }
	if !slices.IsSortedFunc(held, byEnd) {
		slices.SortFunc(held, byEnd)
	}
	p.steps = make([]step, 1, len(held)+2)
	p.steps[0] = step{now, free}
	for _, d := range held {
		end := due(now, d)
		if end == never {
			break
		}
		free = free.Plus(d.Held.Room)
		if last := &p.steps[len(p.steps)-1]; last.at == end {
			last.free = free
		} else {
			p.steps = append(p.steps, step{end, free})
		}
	}
	return seen
}

// due is when a job gives back what it holds. One that is late is expected to take a quarter more than it has, and no
// less than a second.
func due(now disdel.Millis, d *Demand) disdel.Millis {
	switch h := d.Held; {
	case h.Until == 0:
		return never
	case h.Until > now:
		return h.Until
	default:
		return now + max((now-h.From)/4, disdel.Millis(time.Second))
	}
}

// index is the step that a time is in.
func (p *profile) index(at disdel.Millis) int {
	return sort.Search(len(p.steps), func(i int) bool { return p.steps[i].at > at }) - 1
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
