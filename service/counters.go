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

// Figures counts what a Service has done for one tenant since it was opened, and what it does now.
type Figures struct {
	Tenant    string                // "": jobs without a tenant
	Submitted int                   // acknowledged jobs, also resumed and taken over ones
	Queued    int                   // waiting jobs of this process
	Running   int                   // running jobs of this process
	Inferring int                   // running requests to models
	Ended     map[disdel.Status]int // ended jobs by their status
	Ends      map[ActivationEnd]int // ended activations
	Cold      map[disdel.Task]int   // activations with a cold start
	Cost      float64               // of ended jobs, in GB-s
	Waited    *promtext.Histogram   // time of jobs from acknowledgement to admission, in seconds
	Jobs      []JobFigures          // running and waiting jobs, by id
}

// ActivationEnd is how an activation ended.
type ActivationEnd struct {
	Task    disdel.Task
	Outcome disdel.Outcome
}

// JobFigures has the results of the newest round of a job.
type JobFigures struct {
	Job       disdel.JobID
	Name      string
	Workers   int
	Rounds    int      // ended rounds
	TrainLoss *float64 // nil: no round has ended
	Loss      *float64 // held-out, of the newest evaluated round; nil: there is none
	Accuracy  *float64 // the same
	Epoch     time.Duration
	admitted  bool
	perEpoch  float64 // rounds of an epoch
}

// counters counts the events of the jobs of a Service.
type counters struct {
	mu      sync.Mutex
	tenants map[string]*tenantCounters // guarded by mu
}

type tenantCounters struct {
	Figures
	jobs map[disdel.JobID]*JobFigures
}

func newCounters() *counters { return &counters{tenants: map[string]*tenantCounters{}} }

// of returns the counters of a tenant; the caller holds the lock.
func (t *counters) of(tenant string) *tenantCounters {
	f := t.tenants[tenant]
	if f == nil {
		f = &tenantCounters{jobs: map[disdel.JobID]*JobFigures{}}
		f.Figures = Figures{
			Tenant: tenant, Ended: map[disdel.Status]int{}, Ends: map[ActivationEnd]int{}, Cold: map[disdel.Task]int{},
			Waited: promtext.NewHistogram(0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600),
		}
		t.tenants[tenant] = f
	}
	return f
}

// inferring counts a request to a model until the function that it returns is called.
func (t *counters) inferring(tenant string) (over func()) {
	add := func(n int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.of(tenant).Inferring += n
	}
	add(1)
	return func() { add(-1) }
}

// take counts an event of a tenant's job.
func (t *counters) take(tenant string, e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(tenant).take(e)
}

func (f *tenantCounters) take(e Event) {
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

// Figures returns the figures of all tenants; a tenant's view returns only its own.
func (s *Service) Figures() (out []Figures) {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	for _, f := range s.counters.tenants {
		if s.tenant == nil || *s.tenant == f.Tenant {
			out = append(out, f.now())
		}
	}
	slices.SortFunc(out, func(a, b Figures) int { return strings.Compare(a.Tenant, b.Tenant) })
	return out
}

// now is a copy of the current figures.
func (f *tenantCounters) now() Figures {
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
