package scheduler

import (
	"cmp"
	"slices"

	"github.com/disdel/disdel"
)

// The ways to admit jobs, by the words of --admission.
const (
	AdmissionGang     = "gang"     // Gangs
	AdmissionFIFO     = "fifo"     // FIFO
	AdmissionGreedy   = "greedy"   // Greedy: plain OpenWhisk behaviour
	AdmissionGangLike = "ganglike" // GangLike: Coach's rule as published
)

// Admissions are the words that AllocatorOf knows.
func Admissions() []string {
	return []string{AdmissionGang, AdmissionFIFO, AdmissionGreedy, AdmissionGangLike}
}

// AllocatorOf is the allocator of a word of --admission, Gangs for "". It returns Invalid for a word that nobody has.
func AllocatorOf(name string) (Allocator, error) {
	switch name {
	case "", AdmissionGang:
		return Gangs{}, nil
	case AdmissionFIFO:
		return FIFO{}, nil
	case AdmissionGreedy:
		return Greedy{}, nil
	case AdmissionGangLike:
		return GangLike{}, nil
	default:
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "choose admission", Msg: "there is no admission \"" + name + "\"",
			Hint: "admission is gang, fifo, greedy or ganglike",
		}
	}
}

// waiting are the jobs that do not have all that they want, in the order of priority and arrival.
func waiting(jobs []Demand) []*Demand {
	var out []*Demand
	for i := range jobs {
		if !jobs[i].whole() {
			out = append(out, &jobs[i])
		}
	}
	slices.SortFunc(out, compareRank)
	return merged(out)
}

// merged sorts jobs of all tenants and keeps the order within each tenant. The jobs come in the order of their ranks. A
// job goes no earlier among other tenants' jobs than the jobs of its own tenant before it.
func merged(jobs []*Demand) []*Demand {
	places, last := map[*Demand]disdel.Millis{}, map[string]disdel.Millis{}
	for _, d := range jobs {
		place := rankAcross(d)
		if before, any := last[d.Tenant]; any {
			place = max(place, before)
		}
		places[d], last[d.Tenant] = place, place
	}
	slices.SortStableFunc(jobs, func(a, b *Demand) int { return cmp.Compare(places[a], places[b]) })
	return jobs
}

// whole tells whether a job has its gang.
func (d *Demand) whole() bool { return d.Held != nil && d.Held.Gang.Size() >= d.Gang.Size() }
