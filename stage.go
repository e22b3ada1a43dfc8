package disdel

import (
	"fmt"
	"strconv"
)

// Setting is what a policy may choose about a job while it runs. Zero leaves a choice to the planner.
type Setting struct {
	Workers int   `json:"workers"`               // train actions side by side
	Memory  Bytes `json:"memoryBytes,omitempty"` // of a train action; 0: by the estimate
	FanIn   int   `json:"fanIn,omitempty"`       // workers of one aggregation action; 0: by the bytes that it reads
	K       int   `json:"every,omitempty"`       // batches from one average to the next; 0: whole epochs
}

// Position is how far a job's training is: whole epochs, and batches of the next one on every worker.
type Position struct {
	Epoch int `json:"epoch"`
	Batch int `json:"batch,omitempty"`
}

// Stage is a stretch of a job under one setting: what was planned for it, and the decision that it comes from. A job
// begins with one that lasts to its end; a policy's change, a remedy and a resume each begin another, and what was
// planned before stays.
type Stage struct {
	First  int      `json:"firstRound"` // its first round; it lasts until a later stage begins, or to the job's end
	Rounds int      `json:"rounds"`     // from First to the job's end, if nothing changes
	From   Position `json:"from"`
	To     Position `json:"to"` // the job's end
	Setting
	BatchSize     int          `json:"batchSize"`
	Epochs        int          `json:"epochsPerRound"`
	PerEpoch      int          `json:"roundsPerEpoch,omitempty"` // with K: rounds of a whole epoch
	Shards        []RowRange   `json:"shards"`                   // by worker
	Levels        []Level      `json:"levels"`
	Actions       []ActionPlan `json:"actions"` // without the layers of their estimates, which the plan has
	Legs          int          `json:"legs"`
	Parallel      int          `json:"parallel"`
	Threads       int          `json:"threads,omitempty"`
	TimeoutSource Source       `json:"timeoutSource,omitempty"`
	CostGBs       float64      `json:"costBoundGBs,omitempty"` // of the whole job, by the plan that the stage began with
	Forecast      *Forecast    `json:"forecast,omitempty"`     // the same
	Reasons       []string     `json:"reasons,omitempty"`      // what a change costs, and the arithmetic
	// nil: nobody decided, it is the plan that the job began with
	Decision *Decision `json:"decision,omitempty"`
}

// Boundary is where a decision is made.
type Boundary string

// The boundaries. Only at the start, at the end of an epoch and after a failure may the workers change.
const (
	BoundaryStart   Boundary = "start"
	BoundaryRound   Boundary = "round" // a round has ended in the middle of an epoch
	BoundaryEpoch   Boundary = "epoch"
	BoundaryFailure Boundary = "failure"
	BoundaryResume  Boundary = "resume" // the job was taken up again; nobody is asked
	BoundaryStep    Boundary = "step"   // workers that exchange updates were let go while a round ran
)

// Decision is what a policy answered at a boundary. A policy sets Next to Why; who asked sets the rest.
type Decision struct {
	Next      Setting      `json:"next"`
	BatchSize int          `json:"batchSize,omitempty"` // after a failure: rows of a batch from now on; 0: as they were
	Stop      string       `json:"stop,omitempty"`      // why no more is to be trained; "": training goes on
	Expect    *Expectation `json:"expect,omitempty"`    // nil: it expects nothing
	Why       string       `json:"why,omitempty"`

	Policy     string   `json:"policy,omitempty"`
	Boundary   Boundary `json:"boundary"`
	Round      int      `json:"round"`                // the next one, or the one that failed
	Invocation string   `json:"invocation,omitempty"` // that failed
	Reasons    []string `json:"reasons,omitempty"`    // what was changed of the answer because it was out of bounds
	Changed    bool     `json:"changed,omitempty"`    // a stage begins with it

	// NotGranted is what the policy wanted before and the job was not granted: it answered with fewer workers then, or
	// the job goes on as it was.
	NotGranted []Refusal `json:"notGranted,omitempty"`
}

// Refusal is containers that a job was not granted, because others hold them or wait for them.
type Refusal struct {
	Workers int    `json:"workers"` // that it would have had
	Why     string `json:"why"`     // with what was missing
}

// Text is a sentence: "4 workers were not granted: it needs another ...".
func (r Refusal) Text() string {
	who := strconv.Itoa(r.Workers) + " workers were"
	if r.Workers == 1 {
		who = "1 worker was"
	}
	return who + " not granted: " + r.Why
}

// Expectation is what a policy believes of the setting that it chose, so that its error can be told afterwards.
type Expectation struct {
	PerThousand Millis `json:"perThousandMs"` // of a whole round, for 1,000 rows
}

// Observation is what was seen of one round. Times of workers are those of the slowest.
type Observation struct {
	Round    int      `json:"round"`
	Epoch    float64  `json:"epoch"` // trained when it had ended
	Setting  Setting  `json:"setting"`
	Rows     int      `json:"rows"`       // trained by all workers, each epoch's counted
	Duration Millis   `json:"durationMs"` // from its start until the next reference stood: no evaluation
	Fetch    Millis   `json:"fetchMs,omitempty"`
	Compute  Millis   `json:"computeMs,omitempty"`
	Push     Millis   `json:"pushMs,omitempty"`
	Exchange Millis   `json:"exchangeMs,omitempty"` // part of Compute: updates of steps, sent, waited for and added
	Wait     Millis   `json:"waitMs,omitempty"`     // for a container
	Reduce   Millis   `json:"reduceMs,omitempty"`   // aggregation actions, the slowest of each level
	Cold     Millis   `json:"coldMs,omitempty"`     // the longest start of a container; 0: none started
	Loss     float64  `json:"trainLoss"`
	HeldOut  *float64 `json:"loss,omitempty"`
	Accuracy *float64 `json:"accuracy,omitempty"`
	Peak     Bytes    `json:"peakBytes,omitempty"`
	Limit    Bytes    `json:"limitBytes,omitempty"` // memory of a train action; 0 in records of earlier versions
	Cost     float64  `json:"costGBs,omitempty"`
	Retried  int      `json:"retried,omitempty"` // activations that failed
	Missing  int      `json:"missing,omitempty"` // workers that the mean was taken without
	Left     int      `json:"left,omitempty"`    // workers that were let go while it ran
}

// PerThousand is the time of 1,000 rows: what rounds of different sizes are compared by.
func (o Observation) PerThousand() Millis {
	return Millis(float64(o.Duration) * 1000 / float64(max(1, o.Rows)))
}

// Whole is a plan as the one stage of its job, from the first round to the last.
func (p *Plan) Whole(job Job) Stage {
	s := Stage{
		Rounds: p.Rounds, To: Position{Epoch: job.Training.Epochs},
		Setting: Setting{
			Workers: p.Workers, Memory: job.Resources.Memory, FanIn: job.Distribution.Aggregation.FanIn, K: p.Batches,
		},
		BatchSize: p.WorkerBatch(&job), Epochs: p.Epochs,
		Shards: p.Shards, Levels: p.Levels, Actions: withoutLayers(p.Actions),
		Legs: p.Legs, Parallel: p.Parallel, Threads: p.Threads,
		TimeoutSource: p.TimeoutSource, CostGBs: p.CostGBs, Forecast: p.Forecast, Reasons: p.Reasons,
	}
	if p.Batches > 0 {
		s.PerEpoch = max(1, p.Rounds/max(1, job.Training.Epochs))
	}
	return s
}

// withoutLayers is actions without the layers of their estimates: a job of many stages would keep them many times.
func withoutLayers(actions []ActionPlan) []ActionPlan {
	out := make([]ActionPlan, len(actions))
	for i, a := range actions {
		a.Estimate.Layers = nil
		out[i] = a
	}
	return out
}

// End is the round after its last one, if nothing changes.
func (s *Stage) End() int { return s.First + s.Rounds }

// Span is the part of a worker's training that a round of the stage is: where it starts, and how far it goes. A round
// of K batches that is the last of its epoch takes what is left of it.
func (s *Stage) Span(round int) Span {
	i := round - s.First
	if s.K == 0 {
		return Span{Epoch: s.From.Epoch + i*s.Epochs, Epochs: s.Epochs}
	}
	per, out := max(1, s.PerEpoch), Span{Epochs: 1}
	if i < 0 && s.From.Batch == 0 { // of the stage before, it ended an epoch
		out.Epoch, out.Batch = s.From.Epoch-1, (per-1)*s.K
		return out
	}
	last := false
	if begun := s.begun(); i < begun {
		out.Epoch, out.Batch, last = s.From.Epoch, s.From.Batch+i*s.K, i == begun-1
	} else {
		i -= begun
		out.Epoch, out.Batch, last = s.From.Epoch+1+i/per, i%per*s.K, i%per == per-1
	}
	if !last {
		out.Batches = s.K
	}
	return out
}

// Until is how many epochs are trained when a round of the stage has ended. The last round of an epoch ends it.
func (s *Stage) Until(round int) float64 {
	span := s.Span(round)
	if span.Batches == 0 {
		return float64(span.Epoch + span.Epochs)
	}
	share := float64(span.Batch+span.Batches) / float64(max(1, s.Batches()))
	return float64(span.Epoch) + min(share, inEpoch)
}

// inEpoch is the most of an epoch that a round in the middle of it can come to.
const inEpoch = 0.999

// begun is how many rounds the epoch has left that the stage begins in.
func (s *Stage) begun() int {
	if s.From.Batch == 0 {
		return max(1, s.PerEpoch)
	}
	return max(1, (s.Batches()-s.From.Batch)/s.K)
}

// Batches is how many batches an epoch is for the worker that has the fewest.
func (s *Stage) Batches() int {
	least := 0
	for i, r := range s.Shards {
		if n := (r.Len() + s.BatchSize - 1) / max(1, s.BatchSize); i == 0 || n < least {
			least = n
		}
	}
	return least
}

// Starting is the stage as it is when it begins at a round and a position in a job's training.
func (s Stage) Starting(round int, at Position) Stage {
	s.First, s.From = round, at
	left := s.To.Epoch - at.Epoch
	switch {
	case left <= 0:
		s.Rounds = 0
	case s.K > 0:
		s.Rounds = s.begun() + (left-1)*max(1, s.PerEpoch)
	default:
		s.Rounds = (left + s.Epochs - 1) / max(1, s.Epochs)
	}
	return s
}

// In is a job's plan with what one stage of it says in place of the newest one's.
func (s *Stage) In(p Plan) Plan {
	actions := make([]ActionPlan, len(s.Actions))
	for i, a := range s.Actions {
		newest, _ := p.Action(a.Task)
		a.Estimate.Layers = newest.Estimate.Layers
		actions[i] = a
	}
	p.Workers, p.Epochs, p.Batches, p.Shards, p.Levels = s.Workers, s.Epochs, s.K, s.Shards, s.Levels
	p.Actions, p.Legs, p.Parallel, p.Threads = actions, s.Legs, s.Parallel, s.Threads
	p.TimeoutSource, p.CostGBs, p.Forecast, p.Reasons = s.TimeoutSource, s.CostGBs, s.Forecast, s.Reasons
	if p.BatchSize > 0 {
		p.BatchSize = s.BatchSize
	}
	return p
}

// Text says what begins with a stage, and why: "round 5 on: 2 workers, batch 32; ...".
func (s *Stage) Text() string {
	workers := "1 worker"
	if s.Workers != 1 {
		workers = strconv.Itoa(s.Workers) + " workers"
	}
	text := fmt.Sprintf("round %d on: %s, batch %d", s.First+1, workers, s.BatchSize)
	if s.Decision != nil && s.Decision.Why != "" {
		text += "; " + s.Decision.Why
	}
	return text
}

// Staged is every stage of a job. A record of before there were stages has one, the whole of its plan.
func (r *Record) Staged() []Stage {
	if len(r.Stages) > 0 {
		return r.Stages
	}
	return []Stage{r.Plan.Whole(r.Job)}
}

// StageOf is the stage that an invocation of the job was made in.
func (r *Record) StageOf(i *Invocation) Stage { return r.stage(i.Stage) }

// EpochsAfter is how many epochs the job had trained when a round of it had ended.
func (r *Record) EpochsAfter(round Round) float64 {
	s := r.stage(round.Stage)
	return s.Until(round.Round)
}

func (r *Record) stage(number int) Stage {
	all := r.Staged()
	return all[min(max(0, number), len(all)-1)]
}

// PlanOf is the plan that an invocation of the job was made by: the record's own, with what its stage says.
func (r *Record) PlanOf(i *Invocation) Plan {
	if len(r.Stages) < 2 {
		return r.Plan
	}
	s := r.StageOf(i)
	return s.In(r.Plan)
}

// ByStage is a record for each stage that anything ran in: with that stage's plan, batch and activations. They are
// what earlier jobs are learned from, since what an activation took goes with the plan that it was made by. One
// stage's is the record itself.
func (r *Record) ByStage() []*Record {
	if len(r.Stages) < 2 {
		return []*Record{r}
	}
	var out []*Record
	for n, s := range r.Stages {
		one := *r
		one.Activations = nil
		for i := range r.Activations {
			if r.Activations[i].Stage == n {
				one.Activations = append(one.Activations, r.Activations[i])
			}
		}
		if len(one.Activations) > 0 {
			one.Plan, one.Job.Training.BatchSize = s.In(r.Plan), s.BatchSize
			out = append(out, &one)
		}
	}
	return out
}

// InForce are the stages that rounds belong to, in the order of the rounds, with their numbers among all of the job: a
// remedy's stage ends those that were to come after it, and one of a resume takes the place of the one that it goes on
// with.
func (r *Record) InForce() (stages []Stage, numbers []int) {
	for n, s := range r.Staged() {
		var later []Stage
		var laterNumbers []int
		keep := 0
		for keep < len(stages) && stages[keep].First < s.First {
			keep++
		}
		if s.Decision != nil && s.Decision.Boundary == BoundaryResume && !s.Decision.Changed {
			for i := keep; i < len(stages); i++ {
				if stages[i].First > s.First {
					later, laterNumbers = append(later, stages[i]), append(laterNumbers, numbers[i])
				}
			}
		}
		stages = append(append(stages[:keep:keep], s), later...)
		numbers = append(append(numbers[:keep:keep], n), laterNumbers...)
	}
	return stages, numbers
}

// StageAt is the stage in force in a round, among stages in the order of their first rounds.
func StageAt(stages []Stage, round int) int {
	at := 0
	for i := range stages {
		if stages[i].First <= round {
			at = i
		}
	}
	return at
}
