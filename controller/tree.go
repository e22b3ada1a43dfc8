package controller

import (
	"time"

	"github.com/disdel/disdel"
)

// Tree lays the aggregation levels over workers: level 1 has as many clusters as it takes for each to hold at most fanIn
// workers, and a level is added above while there is more than one cluster (DiSDeL III-B.1c). Clusters of a level differ
// in size by at most one, and members keep their order, so that the average is taken in worker order. workers is at
// least 1 and fanIn at least 2.
func Tree(workers, fanIn int) []disdel.Level {
	var levels []disdel.Level
	for members := workers; len(levels) == 0 || members > 1; members = len(levels[len(levels)-1].Clusters) {
		levels = append(levels, disdel.Level{Height: len(levels) + 1, Clusters: clusters(members, fanIn)})
	}
	return levels
}

func clusters(members, fanIn int) [][]int {
	n := (members + fanIn - 1) / fanIn
	out := make([][]int, n)
	for c := range out {
		for m := c * members / n; m < (c+1)*members/n; m++ {
			out[c] = append(out[c], m)
		}
	}
	return out
}

// FanIn is how many updates one aggregation action may be given: as many as its allocation holds next to fixed, the
// memory it needs whatever the fan-in, and never fewer than two (DiSDeL III-B.1c: another action is added as soon as the
// memory to aggregate exceeds the allocation).
func FanIn(allocation, fixed, update disdel.Bytes) int {
	if update <= 0 {
		update = 1
	}
	return int(max(2, (allocation-fixed)/update))
}

// Cost is DiSDeL's Eq. 6 with mu = 1, in GB-s: the time from the earliest start to the latest end, times the memory of
// all training and aggregation actions that the job kept for itself.
func Cost(activations []disdel.Activation) float64 {
	var first, last time.Time
	held := map[slot]disdel.Bytes{}
	for _, a := range activations {
		if a.Start.IsZero() {
			continue // never ran
		}
		if first.IsZero() || a.Start.Before(first) {
			first = a.Start
		}
		if a.End.After(last) {
			last = a.End
		}
		held[slot{a.Task, a.Level, a.Member}] = max(held[slot{a.Task, a.Level, a.Member}], a.Limits.Memory)
	}
	var memory disdel.Bytes
	for _, m := range held {
		memory += m
	}
	return last.Sub(first).Seconds() * float64(memory) / float64(disdel.GB)
}

// slot is one action of Eq. 6's sum: the rounds of one worker are the same action run again.
type slot struct {
	task          disdel.Task
	level, member int
}
