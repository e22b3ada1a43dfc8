package controller

import (
	"time"

	"github.com/disdel/disdel"
)

// Cost is DiSDeL's Eq. 6 with mu = 1, in GB-s: the time from the earliest start to the latest end, times the memory of
// all training and aggregation actions that the job kept for itself.
func Cost(activations []disdel.Activation) float64 {
	var b bill
	for _, a := range activations {
		b.add(a)
	}
	return b.total()
}

// bill is Cost's sum, activation by activation.
type bill struct {
	before      float64 // GB-s of the runs of the job before this one
	first, last time.Time
	held        map[slot]disdel.Bytes
	memory      disdel.Bytes // of all slots
}

func (b *bill) add(a disdel.Activation) {
	if a.Start.IsZero() {
		return // never ran
	}
	if b.first.IsZero() || a.Start.Before(b.first) {
		b.first = a.Start
	}
	if a.End.After(b.last) {
		b.last = a.End
	}
	if b.held == nil {
		b.held = map[slot]disdel.Bytes{}
	}
	s := slot{a.Task, a.Level, a.Member}
	if more := a.Limits.Memory - b.held[s]; more > 0 {
		b.held[s] = a.Limits.Memory
		b.memory += more
	}
}

func (b *bill) total() float64 {
	return b.before + b.last.Sub(b.first).Seconds()*float64(b.memory)/float64(disdel.GB)
}

// slot is one action of Eq. 6's sum: the rounds of one worker are the same action run again.
type slot struct {
	task          disdel.Task
	level, member int
}
