package service

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/promtext"
)

// Figures is what a Service has done for one tenant since it was opened, and what it does now.
type Figures struct {
	Tenant    string                // "": jobs without a tenant
	Submitted int                   // jobs that were acknowledged, resumed and taken over ones too
	Queued    int                   // jobs of this process that wait
	Running   int                   // jobs of this process that run
	Inferring int                   // requests to models that run
	Ended     map[disdel.Status]int // jobs by what they became
	Ends      map[ActivationEnd]int // activations by how they ended
	Cold      map[disdel.Task]int   // activations that had to initialise a container
	Cost      float64               // of jobs that ended, in GB-s
	Waited    *promtext.Histogram   // of jobs, from their acknowledgement to their gang, in seconds
	Jobs      []JobFigures          // those that run or wait, by their ids
}

// ActivationEnd is how an activation ended.
type ActivationEnd struct {
	Task    disdel.Task
	Outcome disdel.Outcome
}

// JobFigures is what the newest round of a job came to.
type JobFigures struct {
	Job       disdel.JobID
	Name      string
	Workers   int
	Rounds    int      // that are over
	TrainLoss *float64 // nil: no round is over
	Loss      *float64 // held-out, of the newest round that was evaluated; nil: none was
	Accuracy  *float64 // the same
	Epoch     time.Duration
	admitted  bool
	perEpoch  float64 // rounds of an epoch
}

// tally counts what happens to the jobs of a Service.
type tally struct {
	mu      sync.Mutex
	tenants map[string]*tenantTally // guarded by mu
}

type tenantTally struct {
	Figures
	jobs map[disdel.JobID]*JobFigures
}

func newTally() *tally { return &tally{tenants: map[string]*tenantTally{}} }

// of is a tenant's; the caller holds the lock.
func (t *tally) of(tenant string) *tenantTally {
	f := t.tenants[tenant]
	if f == nil {
		f = &tenantTally{jobs: map[disdel.JobID]*JobFigures{}}
		f.Figures = Figures{
			Tenant: tenant, Ended: map[disdel.Status]int{}, Ends: map[ActivationEnd]int{}, Cold: map[disdel.Task]int{},
			Waited: promtext.NewHistogram(0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600),
		}
		t.tenants[tenant] = f
	}
	return f
}

// inferring counts a request to a model until the function that it returns is called.
func (t *tally) inferring(tenant string) (over func()) {
	add := func(n int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.of(tenant).Inferring += n
	}
	add(1)
	return func() { add(-1) }
}

// take counts an event of a tenant's job.
func (t *tally) take(tenant string, e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(tenant).take(e)
}

func (f *tenantTally) take(e Event) {
	j := f.jobs[e.Job]
	if j == nil {
		j = &JobFigures{Job: e.Job}
		if _, over := e.What.(Finished); !over {
			f.jobs[e.Job] = j
		}
	}
	switch what := e.What.(type) {
	case Planned:
		f.Submitted++
		j.Name, j.Workers = what.Job.Metadata.Name, what.Plan.Workers
		j.perEpoch = float64(what.Plan.Rounds) / float64(max(1, what.Job.Training.Epochs))
	case Admitted:
		j.admitted = true
		f.Waited.Add(what.Waited.Seconds())
	case Ended:
		f.Ends[ActivationEnd{what.Task, what.Outcome}]++
		if what.Cold {
			f.Cold[what.Task]++
		}
	case StageBegan:
		j.Workers = what.Stage.Workers
	case RoundEnded:
		j.round(what)
	case Finished:
		f.Ended[what.Status]++
		f.Cost += what.CostGBs
		delete(f.jobs, e.Job)
	}
}

func (j *JobFigures) round(r RoundEnded) {
	j.Rounds = r.Round.Round + 1
	j.TrainLoss = new(r.TrainLoss)
	if r.Loss != nil {
		j.Loss, j.Accuracy = r.Loss, r.Accuracy
	}
	j.Epoch = time.Duration(float64(r.Duration) * cmp.Or(j.perEpoch, 1))
}

// Figures is what the Service has done for each of its tenants; one tenant's own where it is that one's.
func (s *Service) Figures() (out []Figures) {
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	for _, f := range s.tally.tenants {
		if s.tenant == nil || *s.tenant == f.Tenant {
			out = append(out, f.now())
		}
	}
	slices.SortFunc(out, func(a, b Figures) int { return strings.Compare(a.Tenant, b.Tenant) })
	return out
}

// now is a copy of what is counted so far.
func (f *tenantTally) now() Figures {
	out := f.Figures
	out.Ended, out.Ends, out.Cold = maps.Clone(f.Ended), maps.Clone(f.Ends), maps.Clone(f.Cold)
	out.Waited = f.Waited.Clone()
	for _, j := range f.jobs {
		if j.admitted {
			out.Running++
		} else {
			out.Queued++
		}
		out.Jobs = append(out.Jobs, *j)
	}
	slices.SortFunc(out.Jobs, func(a, b JobFigures) int { return strings.Compare(string(a.Job), string(b.Job)) })
	return out
}
