package batch

import (
	"cmp"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// Sample is what the jobs of a batch had of the pool at one moment.
type Sample struct {
	At       disdel.Millis `json:"atMs"`          // since the batch began
	Reserved disdel.Bytes  `json:"reservedBytes"` // by grants
	Held     disdel.Bytes  `json:"heldBytes"`     // limits of the activations that run, or wait for a container
	Resident disdel.Bytes  `json:"residentBytes"` // of these, as their newest heartbeats say
	Running  int           `json:"running"`       // jobs
	Waiting  int           `json:"waiting"`       // jobs
}

// Pool is what the jobs of a batch had of the pool over time.
type Pool struct {
	Bytes        disdel.Bytes `json:"bytes,omitempty"` // of the platform; 0: not known
	MostReserved disdel.Bytes `json:"mostReservedBytes"`
	MostResident disdel.Bytes `json:"mostResidentBytes"`
	ReservedGBs  float64      `json:"reservedGBs"` // over the whole time
	ResidentGBs  float64      `json:"residentGBs"`
	Samples      []Sample     `json:"samples"` // at their changes, thinned out
}

// Bounds of what is kept: as much as a picture shows.
const (
	mostSamples = 2000
	firstGap    = disdel.Millis(50 * time.Millisecond)
)

// grants puts what was reserved at what the jobs held when, by their own times.
func (p *Pool) grants(jobs []Row) {
	type change struct {
		at disdel.Millis
		by disdel.Bytes
	}
	var changes []change
	for i := range jobs {
		if r := &jobs[i]; r.Started > 0 && r.Ended > 0 {
			changes = append(changes, change{r.Started, r.Room}, change{r.Ended, -r.Room})
			p.ReservedGBs += disdel.GBSeconds(r.Room, r.Ended-r.Started)
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	held, next := disdel.Bytes(0), 0
	p.Samples = slices.Clone(p.Samples)
	for i := range p.Samples {
		for ; next < len(changes) && changes[next].at <= p.Samples[i].At; next++ {
			held += changes[next].by
			p.MostReserved = max(p.MostReserved, held)
		}
		p.Samples[i].Reserved = held
	}
}

// recording adds up samples.
type recording struct {
	Pool
	last Sample
	gap  disdel.Millis // least time between samples that are kept
}

// add takes what is so from a moment on.
func (r *recording) add(s Sample) {
	took := max(0, s.At-r.last.At)
	r.ResidentGBs += disdel.GBSeconds(r.last.Resident, took)
	r.last = s
	r.MostResident = max(r.MostResident, s.Resident)
	if n := len(r.Samples); n > 1 && s.At-r.Samples[n-2].At < max(r.gap, firstGap) {
		r.Samples[n-1] = s // the newest of a moment tells what is so from then on
		return
	}
	if r.Samples = append(r.Samples, s); len(r.Samples) < mostSamples {
		return
	}
	half := r.Samples[:0:0]
	for i := 0; i < len(r.Samples); i += 2 {
		half = append(half, r.Samples[i])
	}
	if half[len(half)-1] != s {
		half = append(half, s)
	}
	r.Samples, r.gap = half, 2*max(r.gap, firstGap)
}
