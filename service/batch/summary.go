package batch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// Summary is what a batch came to. It is the document of -o json.
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

// Counts is how many jobs became what.
type Counts struct {
	Succeeded int `json:"succeeded"`
	Behind    int `json:"behind"` // stopped early
	Failed    int `json:"failed"` // refused ones too
	Canceled  int `json:"canceled"`
}

// Tenant is what the jobs of one tenant came to.
type Tenant struct {
	Name string `json:"tenant"` // "": the home's own
	Jobs int    `json:"jobs"`
	Counts
	Waited      disdel.Millis `json:"waitedMs"` // on average
	CostGBs     float64       `json:"costGBs"`
	Evaluations float64       `json:"evaluationGBs"`
}

// ColdShare is how many activations began in a new container, of all.
func (s *Summary) ColdShare() float64 { return float64(s.Cold) / float64(max(1, s.Activations)) }

// Err is nil where every job succeeded or was stopped early, or else an error of the first failure's kind.
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
		Kind: kind, Op: "run batch", Msg: fmt.Sprintf("%d of %s %s%s", bad, counted(len(s.Jobs), "job"), verb, first),
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

// mean is that of a time of the jobs that ran.
func (s *Summary) mean(of func(r *Row, now disdel.Millis) disdel.Millis) (sum disdel.Millis) {
	n := disdel.Millis(0)
	for i := range s.Jobs {
		if r := &s.Jobs[i]; r.Started > 0 {
			sum += of(r, r.Ended)
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

// order puts the jobs that succeeded first, the best of them foremost, then those that came farthest.
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
