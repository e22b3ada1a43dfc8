package batch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// Summary is the result of a batch. It is the document of -o json.
type Summary struct {
	APIVersion string        `json:"apiVersion"`
	By         Measure       `json:"by"`
	Jobs       []Row         `json:"jobs"`    // the best first
	Tenants    []Tenant      `json:"tenants"` // by name
	Makespan   disdel.Millis `json:"makespanMs"`
	Waited     disdel.Millis `json:"waitedMs"` // on average, of jobs that ran
	Ran        disdel.Millis `json:"ranMs"`    // the same
	Counts
	Activations int     `json:"activations"`
	Cold        int     `json:"cold"` // of them, began in a new container
	CostGBs     float64 `json:"costGBs"`
	Evaluations float64 `json:"evaluationGBs"`
	Pool        Pool    `json:"pool"`
}

// Counts are the numbers of jobs by how they ended.
type Counts struct {
	Succeeded int `json:"succeeded"`
	Behind    int `json:"behind"` // stopped early
	Failed    int `json:"failed"` // refused ones too
	Canceled  int `json:"canceled"`
}

// Tenant is the results of one tenant's jobs.
type Tenant struct {
	Name string `json:"tenant"` // "": the home's own
	Jobs int    `json:"jobs"`
	Counts
	Waited      disdel.Millis `json:"waitedMs"` // on average
	CostGBs     float64       `json:"costGBs"`
	Evaluations float64       `json:"evaluationGBs"`
}

// ColdShare is the share of activations with a cold start.
func (s *Summary) ColdShare() float64 { return float64(s.Cold) / float64(max(1, s.Activations)) }

// Err returns nil if every job succeeded or was stopped early, else an error of the kind of the first failure.
func (s *Summary) Err() error {
	bad := s.Failed + s.Canceled
	if bad == 0 {
		return nil
	}
	first, verb := "", "failed"
	kind := disdel.Canceled
	if s.Failed == 0 {
		verb = "were canceled"
	}
	for i := range s.Jobs {
		if r := &s.Jobs[i]; r.Status == disdel.StatusFailed && r.Failure != nil {
			first, kind = fmt.Sprintf("; %s: %v", r.Name, r.Failure), r.Failure.Kind
			break
		}
	}
	return &disdel.Error{
		Kind: kind, Op: "run batch", Msg: fmt.Sprintf("%d of %s %s%s", bad, disdel.Counted(len(s.Jobs), "job"), verb, first),
	}
}

func (b *board) summary() *Summary {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Summary{APIVersion: disdel.APIVersion, By: b.by, Jobs: b.rows(), Pool: b.pool.Pool}
	tenants := map[string]*Tenant{}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if r.Status == disdel.StatusUnknown { // the batch ended before its turn
			r.Status = disdel.StatusCanceled
		}
		s.add(r)
		if tenants[r.Tenant] == nil {
			tenants[r.Tenant] = &Tenant{Name: r.Tenant}
		}
		tenants[r.Tenant].add(r)
	}
	s.Pool.grants(s.Jobs)
	s.Waited, s.Ran = s.mean((*Row).Waited), s.mean((*Row).Ran)
	for _, t := range tenants {
		t.Waited /= disdel.Millis(t.Jobs)
		s.Tenants = append(s.Tenants, *t)
	}
	slices.SortFunc(s.Tenants, func(a, b Tenant) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(s.Jobs, s.order)
	return s
}

func (s *Summary) add(r *Row) {
	s.Makespan = max(s.Makespan, r.Ended)
	s.Activations, s.Cold = s.Activations+r.Activations, s.Cold+r.Cold
	s.CostGBs, s.Evaluations = s.CostGBs+r.CostGBs, s.Evaluations+r.Evaluations
	s.count(r)
}

func (t *Tenant) add(r *Row) {
	t.Jobs++
	t.CostGBs, t.Evaluations, t.Waited = t.CostGBs+r.CostGBs, t.Evaluations+r.Evaluations, t.Waited+r.Waited(0)
	t.count(r)
}

// mean is the mean of a time of the jobs that ran.
func (s *Summary) mean(durationOf func(r *Row, now disdel.Millis) disdel.Millis) (sum disdel.Millis) {
	n := disdel.Millis(0)
	for i := range s.Jobs {
		if r := &s.Jobs[i]; r.Started > 0 {
			sum += durationOf(r, r.Ended)
			n++
		}
	}
	return sum / max(1, n)
}

func (c *Counts) count(r *Row) {
	switch {
	case r.Status == disdel.StatusSucceeded:
		c.Succeeded++
	case r.Status == disdel.StatusFailed:
		c.Failed++
	case r.Behind != "":
		c.Behind++
	default:
		c.Canceled++
	}
}

// order sorts the successful jobs first, the best at the top, and then the others by their progress.
func (s *Summary) order(a, b Row) int {
	one, ok := a.Result()
	two, too := b.Result()
	succeeded := func(r Row) int { return min(1, int(r.Status^disdel.StatusSucceeded)) }
	if order := cmp.Or(succeeded(a)-succeeded(b), unknown(ok)-unknown(too)); order != 0 {
		return order
	}
	if a.Status != disdel.StatusSucceeded && one.Epochs != two.Epochs {
		return two.Epochs - one.Epochs
	}
	return s.By.compare(one, two)
}

func unknown(known bool) int {
	if known {
		return 0
	}
	return 1
}

// Sample is what the jobs of a batch hold of the pool at one time.
type Sample struct {
	At       disdel.Millis `json:"atMs"`          // since the batch began
	Reserved disdel.Bytes  `json:"reservedBytes"` // by grants
	Held     disdel.Bytes  `json:"heldBytes"`     // limits of the activations that run, or wait for a container
	Resident disdel.Bytes  `json:"residentBytes"` // of these, as their newest heartbeats say
	Running  int           `json:"running"`       // jobs
	Waiting  int           `json:"waiting"`       // jobs
}

// Pool is what the jobs of a batch held of the pool over time.
type Pool struct {
	Bytes        disdel.Bytes `json:"bytes,omitempty"` // of the platform; 0: not known
	MostReserved disdel.Bytes `json:"mostReservedBytes"`
	MostResident disdel.Bytes `json:"mostResidentBytes"`
	ReservedGBs  float64      `json:"reservedGBs"` // over the whole time
	ResidentGBs  float64      `json:"residentGBs"`
	Samples      []Sample     `json:"samples"` // at their changes, thinned out
}

// Bounds of the samples: as many as a chart shows.
const (
	mostSamples = 2000
	firstGap    = disdel.Millis(50 * time.Millisecond)
)

// grants computes the reserved memory from the times at which jobs had room.
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

// recording collects samples.
type recording struct {
	Pool
	last Sample
	gap  disdel.Millis // least time between samples that are kept
}

// add adds a sample that holds from its time on.
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
