package simulate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// Lab compares several policies on the same jobs, each job alone on the cloud, with the best fixed number of workers,
// which nobody knows beforehand.
type Lab struct {
	Trials   []Trial         `json:"trials"`   // in the order of the jobs, and then of the policies
	Policies []PolicySummary `json:"policies"` // all jobs together
	Regret   []Regret        `json:"regret,omitempty"`
	// Run has the same jobs as they really ran, with ratios to those of the policy static; nil: they did not.
	Run *Lab `json:"run,omitempty"`
	// SimError is the median of |simulated / run - 1| of the trials that ran, in per cent; 0: none did.
	SimError float64 `json:"simErrorPct,omitempty"`
}

// Trial is a job under a policy.
type Trial struct {
	Job      disdel.JobID   `json:"job"`
	Policy   string         `json:"policy"`
	Status   disdel.Status  `json:"status"`
	Why      string         `json:"why,omitempty"` // of a refusal or failure
	Took     disdel.Millis  `json:"tookMs"`
	CostGBs  float64        `json:"costGBs"` // by use
	Loss     float64        `json:"trainLoss"`
	Course   []WorkerChange `json:"course"`
	Time     float64        `json:"timeRatio"` // over that of the best fixed number of workers
	Cost     float64        `json:"costRatio"` // the same
	Forecast float64        `json:"expectError"`
	Expected []Expected     `json:"expected,omitempty"`
}

// PolicySummary sums up a policy: geometric means over jobs of the ratios to the best fixed number of workers, and
// the worst ratios.
type PolicySummary struct {
	Policy    string  `json:"policy"`
	Succeeded int     `json:"succeeded"`
	Time      float64 `json:"timeRatio"`
	Cost      float64 `json:"costRatio"`
	WorstTime float64 `json:"worstTimeRatio"`
	WorstCost float64 `json:"worstCostRatio"`
	Perf      float64 `json:"perfRatio"`   // of one over time times cost (MLLess, Eq. 4)
	Forecast  float64 `json:"expectError"` // median of |took / expected - 1|; 0: it expected nothing
}

// Fixed is the name of the best fixed number of workers among policies.
const Fixed = "best fixed"

// Compare runs the jobs of a trace under each policy, which sees true times or times with the errors of Config. It
// returns Invalid for an unknown policy.
func Compare(cfg Config, jobs []sim.Job, policies []string) (Lab, error) {
	for _, name := range policies {
		var job disdel.Job
		job.Distribution.Policy = name
		if _, err := scheduler.PolicyOf(job); err != nil {
			return Lab{}, err
		}
	}
	cfg.Admission = scheduler.AdmissionGreedy
	var out Lab
	for _, line := range jobs {
		line.At = 0
		best, err := bestFixed(cfg, line)
		if err != nil {
			return Lab{}, err
		}
		out.Trials = append(out.Trials, best)
		for _, name := range policies {
			line.Policy = name
			trial, err := try(cfg, line, name)
			if err != nil {
				return Lab{}, err
			}
			trial.against(best)
			out.Trials = append(out.Trials, trial)
		}
	}
	for _, name := range slices.Concat([]string{Fixed}, policies) {
		out.Policies = append(out.Policies, out.standing(name))
	}
	return out, nil
}

// mostFixed is the most fixed workers that are tried if the job has no maximum.
const mostFixed = 32

// asFast is a share of time: fixed numbers of workers within it of the fastest count as equally fast.
const asFast = 0.001

// bestFixed is the fastest trial of a job with a fixed number of workers, and the cheapest of several equally fast
// ones.
func bestFixed(cfg Config, line sim.Job) (Trial, error) {
	var all []Trial
	line.Policy = disdel.PolicyStatic
	maximum := min(cmp.Or(line.MaxWorkers, mostFixed), max(1, line.Rows/line.BatchSize))
	for n := max(1, line.MinWorkers); n <= maximum; n++ {
		line.Workers = n
		t, err := try(cfg, line, Fixed)
		if err != nil {
			return t, err
		}
		t.Course = []WorkerChange{{Workers: n}}
		if t.Status == disdel.StatusSucceeded {
			all = append(all, t)
		}
	}
	if len(all) == 0 { // none runs: the reason is that of one worker
		line.Workers = 1
		return try(cfg, line, Fixed)
	}
	best := cheapest(all)
	best.against(best)
	return best, nil
}

// cheapest is the cheapest of the trials that are as fast as the fastest.
func cheapest(all []Trial) Trial {
	minimum := slices.MinFunc(all, func(a, b Trial) int { return cmp.Compare(a.Took, b.Took) }).Took
	fast := slices.DeleteFunc(all, func(t Trial) bool { return float64(t.Took) > (1+asFast)*float64(minimum) })
	return slices.MinFunc(fast, func(a, b Trial) int { return cmp.Compare(a.CostGBs, b.CostGBs) })
}

func try(cfg Config, line sim.Job, name string) (Trial, error) {
	r, err := Run(cfg, []sim.Job{line})
	if err != nil {
		return Trial{}, err
	}
	o := r.Jobs[0]
	t := Trial{
		Job: o.ID, Policy: name, Status: o.Status, Took: o.Ended - o.Started, CostGBs: o.CostGBs, Loss: o.TrainLoss,
		Course: o.Course, Expected: o.Expected,
	}
	for _, why := range []*disdel.Error{o.Refused, o.Failure} {
		if why != nil {
			t.Why = why.Msg
		}
	}
	if len(t.Course) == 0 && o.Workers > 0 {
		t.Course = []WorkerChange{{Workers: o.Workers}}
	}
	t.Forecast = expectError(o.Expected)
	return t, nil
}

// against sets the ratios of a successful trial.
func (t *Trial) against(best Trial) {
	if t.Status == disdel.StatusSucceeded && best.Took > 0 && best.CostGBs > 0 {
		t.Time, t.Cost = float64(t.Took)/float64(best.Took), t.CostGBs/best.CostGBs
	}
}

// Ran adds the trials of jobs that really ran, with ratios to those of the policy static, and computes how far their
// simulation was off.
func (l *Lab) Ran(trials []Trial) {
	run := &Lab{}
	base := map[disdel.JobID]Trial{}
	for _, t := range trials {
		if t.Policy == disdel.PolicyStatic {
			base[t.Job] = t
		}
	}
	var names []string
	var off []float64
	for _, t := range trials {
		t.against(base[t.Job])
		run.Trials = append(run.Trials, t)
		if !slices.Contains(names, t.Policy) {
			names = append(names, t.Policy)
		}
		i := slices.IndexFunc(l.Trials, func(s Trial) bool { return s.Job == t.Job && s.Policy == t.Policy })
		if i >= 0 && t.Status == disdel.StatusSucceeded && l.Trials[i].Status == t.Status && t.Took > 0 {
			off = append(off, 100*math.Abs(float64(l.Trials[i].Took)/float64(t.Took)-1))
		}
	}
	for _, name := range names {
		run.Policies = append(run.Policies, run.standing(name))
	}
	l.Run = run
	if len(off) > 0 {
		slices.Sort(off)
		l.SimError = (off[(len(off)-1)/2] + off[len(off)/2]) / 2
	}
}

// Add adds the trials of another lab, with other jobs under the same policies.
func (l *Lab) Add(other Lab) {
	names := map[string]bool{}
	l.Trials = append(l.Trials, other.Trials...)
	l.Policies = nil
	for _, t := range l.Trials {
		if !names[t.Policy] {
			names[t.Policy] = true
			l.Policies = append(l.Policies, l.standing(t.Policy))
		}
	}
}

// expectError is the median relative error of expected epochs.
func expectError(all []Expected) float64 {
	var off []float64
	for _, e := range all {
		off = append(off, math.Abs(float64(e.Took)/float64(e.PerThousand)-1))
	}
	if len(off) == 0 {
		return 0
	}
	slices.Sort(off)
	return off[len(off)/2]
}

// standing sums up the trials of a policy.
func (l *Lab) standing(policy string) PolicySummary {
	s := PolicySummary{Policy: policy}
	var logTime, logCost float64
	var all []Expected
	for _, t := range l.Trials {
		if t.Policy != policy || t.Time == 0 {
			continue
		}
		s.Succeeded++
		logTime, logCost = logTime+math.Log(t.Time), logCost+math.Log(t.Cost)
		s.WorstTime, s.WorstCost = max(s.WorstTime, t.Time), max(s.WorstCost, t.Cost)
		all = append(all, t.Expected...)
	}
	if s.Succeeded > 0 {
		n := float64(s.Succeeded)
		s.Time, s.Cost = math.Exp(logTime/n), math.Exp(logCost/n)
		s.Perf = 1 / (s.Time * s.Cost)
	}
	s.Forecast = expectError(all)
	return s
}

// Regret is what wrong estimates cost a policy: its mean time and cost with wrong times, divided by those with true
// times.
type Regret struct {
	Policy string  `json:"policy"`
	Told   float64 `json:"told"`  // factor on times with other numbers of workers than at a job's start
	Noise  float64 `json:"noise"` // standard deviation of the logarithm of a further random factor
	Time   float64 `json:"timeRatio"`
	Cost   float64 `json:"costRatio"`
}

// Errors are the errors for Regrets: each factor without noise, and each noise without a factor.
type Errors struct {
	Factors []float64
	Noises  []float64
}

// Regrets repeats the jobs of a lab with errors in the times that policies see, and adds what they cost. It omits a
// policy that did not finish in one of the two. Errors are those of Compare.
func (l *Lab) Regrets(cfg Config, jobs []sim.Job, policies []string, e Errors) error {
	add := func(bias, noise float64) error {
		cfg.Bias, cfg.BiasNoise = bias, noise
		wrong, err := Compare(cfg, jobs, policies)
		if err != nil {
			return err
		}
		for _, s := range wrong.Policies {
			i := slices.IndexFunc(l.Policies, func(t PolicySummary) bool { return t.Policy == s.Policy })
			if s.Policy == Fixed || i < 0 || s.Succeeded == 0 || s.Succeeded != l.Policies[i].Succeeded {
				continue
			}
			l.Regret = append(l.Regret, Regret{
				Policy: s.Policy, Told: bias, Noise: noise, Time: s.Time / l.Policies[i].Time, Cost: s.Cost / l.Policies[i].Cost,
			})
		}
		return nil
	}
	for _, f := range e.Factors {
		if err := add(f, 0); err != nil {
			return err
		}
	}
	for _, n := range e.Noises {
		if err := add(1, n); err != nil {
			return err
		}
	}
	return nil
}

// biasedPolicy is a policy that sees wrong times: those with another number of workers than at the job's start are
// multiplied by a factor, and with noise by a random factor per round. Its loss is what an error of its estimates
// costs.
type biasedPolicy struct {
	scheduler.Policy
	factor, noise float64
	job           disdel.JobID
}

func (m biasedPolicy) Decide(in scheduler.Input) disdel.Decision {
	if len(in.Seen) > 0 {
		first := in.Seen[0].Setting.Workers
		in.Seen = slices.Clone(in.Seen)
		for i := range in.Seen {
			if o := &in.Seen[i]; o.Setting.Workers != first {
				wrong := m.factor * m.luck(o.Round)
				o.Duration, o.Compute = times(o.Duration, wrong), times(o.Compute, wrong)
			}
		}
	}
	return m.Policy.Decide(in)
}

// luck is the random factor of a round's time, always the same for a round.
func (m biasedPolicy) luck(round int) float64 {
	if m.noise == 0 {
		return 1
	}
	const errors = 77
	return math.Exp(m.noise * rand.New(rand.NewPCG(scheduler.Seed(m.job, round), errors)).NormFloat64())
}
