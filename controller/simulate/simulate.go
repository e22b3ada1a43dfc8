package simulate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// Config is the setting of a simulation.
type Config struct {
	Cloud     sim.Config
	Admission string // as in scheduler.AllocatorOf; with greedy every job starts at once, and the platform queues
	Estimator estimator.Estimator
	Quotas    map[string]scheduler.Quota // by tenant; others are unlimited
	Share     float64                    // jobs per processor; 0: scheduler.ProcessorShare
	Siblings  int                        // other jobs of the batch that each job is planned in
	Settle    disdel.Millis              // least time between decisions while jobs wait; 0: decide after every event
	Bias      float64                    // factor on the times that policies see with other numbers of workers; 0: 1
	BiasNoise float64                    // standard deviation of the logarithm of a further random factor
	Clock     func() time.Duration       // of the machine, to time decisions; nil: they are not timed
	// Inputs are those of jobs with real job files; nil: none.
	Inputs map[disdel.JobID]scheduler.PlanInput
}

// Outcome is the result of one job.
type Outcome struct {
	ID          disdel.JobID  `json:"job"`
	Tenant      string        `json:"tenant,omitempty"`
	Status      disdel.Status `json:"status"` // unknown: it waits forever
	Refused     *disdel.Error `json:"refused,omitempty"`
	Failure     *disdel.Error `json:"failure,omitempty"`
	Arrived     disdel.Millis `json:"arrivedMs"`
	Started     disdel.Millis `json:"startedMs"`
	Ended       disdel.Millis `json:"endedMs"`
	Workers     int           `json:"workers,omitempty"`
	Keep        string        `json:"keep,omitempty"` // how long a grant lasts
	Activations int           `json:"activations,omitempty"`
	Cold        int           `json:"cold,omitempty"`   // of them
	Failed      int           `json:"failed,omitempty"` // of them, including refused invocations
	CostGBs     float64       `json:"costGBs,omitempty"`
	TrainLoss   float64       `json:"trainLoss,omitempty"` // of the last round
	// For a job with a policy: refused grants, changes of workers, and what the policy expected of epochs.
	NotGranted int            `json:"notGranted,omitempty"`
	Course     []WorkerChange `json:"course,omitempty"`
	Expected   []Expected     `json:"expected,omitempty"`
}

// Result is the result of a trace.
type Result struct {
	Jobs      []Outcome       `json:"jobs"`
	Makespan  disdel.Millis   `json:"makespanMs"`
	Succeeded int             `json:"succeeded"`
	Failed    int             `json:"failed"`
	Refused   int             `json:"refused"`
	Stuck     []disdel.JobID  `json:"stuck"` // waiting forever
	Wait      Spread          `json:"wait"`  // from arrival to start
	Run       Spread          `json:"run"`   // from start to end
	ColdShare float64         `json:"coldShare"`
	CostGBs   float64         `json:"costGBs"`
	UsedShare float64         `json:"usedShare"`              // of all memory over time, by working containers
	Granted   disdel.Bytes    `json:"grantedBytes,omitempty"` // the most memory granted at once
	Cloud     sim.Totals      `json:"cloud"`
	Decisions int             `json:"decisions"`
	Took      []time.Duration `json:"-"` // each decision, by Config.Clock
}

// Spread is the distribution of a time over jobs.
type Spread struct {
	Mean   disdel.Millis `json:"meanMs"`
	Median disdel.Millis `json:"medianMs"`
	P95    disdel.Millis `json:"p95Ms"`
	Most   disdel.Millis `json:"mostMs"`
}

// Run submits the jobs of a trace and waits for the end of all. It returns Invalid for an unknown admission.
func Run(cfg Config, jobs []sim.Job) (Result, error) {
	r, err := newRun(cfg, jobs)
	if err != nil {
		return Result{}, err
	}
	for i := range r.jobs {
		j := r.jobs[i]
		r.clock.At(j.line.At, func() { r.arrive(j) })
	}
	for r.clock.Step() {
	}
	return r.result(), nil
}

// run is a running trace.
type run struct {
	cfg       Config
	clock     sim.Clock
	cloud     *sim.Cloud
	admission *scheduler.Admission // nil: every job starts at once
	planner   planner
	jobs      []*job
	byID      map[disdel.JobID]*job
	deciding  bool
	decided   disdel.Millis // time of the last decision
	out       Result
}

func newRun(cfg Config, jobs []sim.Job) (*run, error) {
	by, err := scheduler.AllocatorOf(cfg.Admission)
	if err != nil {
		return nil, err
	}
	r := &run{cfg: cfg, byID: map[disdel.JobID]*job{}}
	r.cloud = sim.NewCloud(&r.clock, cfg.Cloud)
	r.planner = planner{
		by: cfg.Estimator, cloud: cfg.Cloud, limits: r.cloud.Limits(), siblings: cfg.Siblings, kinds: map[string]*kind{},
		inputs: cfg.Inputs,
	}
	if cfg.Admission != scheduler.AdmissionGreedy {
		capacity := scheduler.CapacityOf(r.cloud.Limits())
		if capacity.Millicores < scheduler.Unbounded {
			capacity.Millicores = int(cmp.Or(cfg.Share, scheduler.ProcessorShare) * float64(capacity.Millicores))
		}
		if cfg.Admission != scheduler.AdmissionGangLike { // the service lets single jobs share processors, too
			by = scheduler.Sharing{By: by}
		}
		r.admission = scheduler.NewAdmission(by, capacity)
	}
	for i := range jobs {
		j := &job{run: r, line: &jobs[i], Outcome: Outcome{ID: jobs[i].ID, Tenant: jobs[i].Tenant, Arrived: jobs[i].At}}
		r.jobs, r.byID[j.ID] = append(r.jobs, j), j
	}
	return r, nil
}

// arrive plans a job and lets it wait for its gang.
func (r *run) arrive(j *job) {
	plan, k, err := r.planner.plan(j.line)
	if err != nil {
		j.refuse(err)
		return
	}
	j.kind, j.Workers = k, plan.Workers
	if r.admission == nil {
		j.prepare(plan)
		j.begin()
		return
	}
	d, why := scheduler.DemandOf(j.ID, plan, r.admission.Capacity())
	plan.Reasons = append(plan.Reasons[:len(plan.Reasons):len(plan.Reasons)], why)
	d.Shares = r.cfg.Siblings == 0 // jobs of a batch are faster one after another
	d.Tenant, d.Priority, d.Arrived, d.Quota = j.line.Tenant, j.line.Priority, j.line.At, r.cfg.Quotas[j.line.Tenant]
	j.demand, j.Keep = d, d.Keep.String()
	j.prepare(plan)
	r.ask(j)
}

// ask lets a job wait, for its whole life or for its next round.
func (r *run) ask(j *job) {
	if err := r.admission.Enqueue(j.demand); err != nil {
		j.refuse(err)
		return
	}
	r.decideSoon()
}

// decideSoon decides after all events of this moment.
func (r *run) decideSoon() {
	if r.deciding || r.admission == nil {
		return
	}
	r.deciding = true
	at := r.clock.Now()
	if r.out.Decisions > 0 && r.admission.Waiting() > 0 {
		at = max(at, r.decided+r.cfg.Settle)
	}
	r.clock.At(at, r.decide)
}

func (r *run) decide() {
	r.deciding, r.decided = false, r.clock.Now()
	var from time.Duration
	if r.cfg.Clock != nil {
		from = r.cfg.Clock()
	}
	grants := r.admission.Decide(r.clock.Now())
	if r.cfg.Clock != nil {
		r.out.Took = append(r.out.Took, r.cfg.Clock()-from)
	}
	r.out.Decisions++
	r.noteGranted()
	for _, g := range grants {
		if g.Reserved {
			continue
		}
		r.admission.Use(g.Job)
		if r.admission.Has(g.Job) { // its complete gang
			r.byID[g.Job].granted()
		}
	}
}

// noteGranted updates the most memory granted at once.
func (r *run) noteGranted() {
	r.out.Granted = max(r.out.Granted, r.admission.Capacity().Memory-r.admission.Free().Memory)
}

// result sums up the trace.
func (r *run) result() Result {
	out := r.out
	var waits, runs []disdel.Millis
	for _, j := range r.jobs {
		o := j.Outcome
		out.Jobs = append(out.Jobs, o)
		out.CostGBs += o.CostGBs
		switch {
		case o.Refused != nil:
			out.Refused++
			continue
		case !j.over:
			out.Stuck = append(out.Stuck, o.ID)
			continue
		case o.Status == disdel.StatusSucceeded:
			out.Succeeded++
		default:
			out.Failed++
		}
		out.Makespan = max(out.Makespan, o.Ended)
		waits, runs = append(waits, o.Started-o.Arrived), append(runs, o.Ended-o.Started)
	}
	out.Wait, out.Run, out.Cloud = spread(waits), spread(runs), r.cloud.Totals
	if n := out.Cloud.Calls; n > 0 {
		out.ColdShare = float64(out.Cloud.Cold) / float64(n)
	}
	if capacity := disdel.GBSeconds(r.cloud.Limits().Pool, out.Makespan); capacity > 0 {
		out.UsedShare = out.Cloud.BusyGBs / capacity
	}
	return out
}

func spread(list []disdel.Millis) Spread {
	if len(list) == 0 {
		return Spread{}
	}
	slices.Sort(list)
	var sum disdel.Millis
	for _, d := range list {
		sum += d
	}
	at := func(share float64) disdel.Millis { return list[int(math.Ceil(share*float64(len(list))))-1] }
	return Spread{
		Mean: sum / disdel.Millis(len(list)), Median: at(0.5), P95: at(0.95), Most: list[len(list)-1],
	}
}
