package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// wished is how many drawn jobs have a goal, and bounds for it.
const wished = 200

// goals gives random jobs, of whose kind three ran before, goals, budgets and times near their true needs. It counts
// jobs that are refused although some number of workers reaches the goal within its bounds, which must be none. It also
// counts jobs that are accepted although no number does: they stop at their budget.
func goals() error {
	by, err := estimator.New(backends.Standard(nil), "", estimator.DefaultRisk, nil)
	if err != nil {
		return err
	}
	lot := rand.New(rand.NewPCG(16, 2))
	refused, wrong, hopeless, taken := 0, 0, 0, 0
	for i := range wished {
		k := drawKind(lot)
		in, err := k.input(by, fmt.Sprintf("job-%03d", i), lot)
		if err != nil {
			return err
		}
		can := k.possible(in.Job)
		_, err = scheduler.NewPlan(in)
		switch {
		case err != nil && disdel.KindOf(err) != disdel.OverLimit:
			return err
		case err != nil && can:
			refused, wrong = refused+1, wrong+1
		case err != nil:
			refused, hopeless = refused+1, hopeless+1
		case !can:
			taken++
		}
	}
	rig.Figure("goal_refused", float64(refused), fmt.Sprintf("of %d", wished))
	rig.Figure("goal_refused_wrong", float64(wrong), fmt.Sprintf("of %d", wished))
	rig.Figure("goal_refused_right", float64(hopeless), fmt.Sprintf("of %d", wished))
	rig.Figure("goal_taken_in_vain", float64(taken), fmt.Sprintf("of %d", wished))
	return nil
}

// truth is what jobs of a kind really take.
type truth struct {
	rows, epochs      int
	start, row, merge float64 // s: of an action, of a row, of an update
	losses            estimator.LossCurve
	workers           int // of earlier jobs
}

func drawKind(lot *rand.Rand) truth {
	return truth{
		rows: 1000 * (2 + lot.IntN(30)), epochs: 20 + lot.IntN(40), workers: 1 << lot.IntN(3),
		start: 0.05 + 0.2*lot.Float64(), row: math.Exp(lot.NormFloat64()-8) + 5e-5, merge: 0.01 + 0.05*lot.Float64(),
		losses: estimator.LossCurve{
			Floor: 0.05 + 0.2*lot.Float64(), Rate: math.Exp(lot.NormFloat64() - 1.5), Start: 0.3 + 0.3*lot.Float64(),
		},
	}
}

// The limits of every action, and what a round has beside them.
const (
	heldEach = 256 * disdel.MB
	gap      = 0.03 // s
	heldOut  = 0.1  // s of an evaluation
)

// round is what a round takes with so many workers, s, and what activations hold in it, GB-s.
func (k truth) round(workers int) (seconds, used float64) {
	w := float64(workers)
	train := k.start + k.row*float64(k.rows)/w
	mean := k.start + k.merge*w
	return train + mean + heldOut + gap, heldEach.Gigabytes() * (w*train + mean + heldOut)
}

// toGoal is after how many epochs, evaluated each, a goal has held.
func (k truth) toGoal(g disdel.Goal) float64 {
	return math.Ceil(k.losses.Reaches(g.Loss)) + disdel.GoalHeld - 1
}

// possible tells whether some number of workers comes to the goal in time and for its cost.
func (k truth) possible(job disdel.Job) bool {
	g := *job.Training.Goal
	epochs := k.toGoal(g)
	if !(epochs <= float64(job.Training.Epochs)) {
		return false
	}
	for n := 1; n <= k.most(); n *= 2 {
		seconds, used := k.round(n)
		if epochs*used <= g.Cost && epochs*seconds <= time.Duration(g.Within).Seconds() {
			return true
		}
	}
	return false
}

func (k truth) most() int { return min(64, k.rows/batchSize) }

const batchSize = 50

// input is a job with a goal around what is possible, as it is planned: by three jobs that ran before.
func (k truth) input(by estimator.Estimator, id string, lot *rand.Rand) (scheduler.PlanInput, error) {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		return scheduler.PlanInput{}, err
	}
	at := 4 + 0.8*float64(k.epochs)*lot.Float64() // the epoch of the goal
	goal := disdel.Goal{Loss: k.losses.At(at)}
	seconds, used := k.round(1 << lot.IntN(4))
	around := func(v float64) float64 { return v * math.Exp(0.7*lot.NormFloat64()) }
	goal.Cost, goal.Within = around(at*used), disdel.Duration(around(at*seconds)*1e9)
	in := scheduler.PlanInput{
		ID: disdel.JobID(id), Graph: g, Estimator: by, Job: k.job(0),
		Platform: disdel.PlatformLimits{
			MinMemory: 128 * disdel.MB, MaxMemory: 2 * disdel.GB, MinTimeout: disdel.Millis(100 * time.Millisecond),
			MaxTimeout: disdel.Millis(time.Hour), Pool: 32 * disdel.GB,
		},
		Data: k.data(),
	}
	in.Job.Training.Goal = &goal
	in.Past = []disdel.Record{}
	for range 3 {
		in.Past = append(in.Past, k.record(in, lot))
	}
	return in, nil
}

func (k truth) data() disdel.DataInfo {
	return disdel.DataInfo{
		Name: "drawn", Checksum: "c", Train: k.rows, HeldOut: 1000, Sample: []int{1, 28, 28}, Classes: 10, SampleSize: 3136,
	}
}

func (k truth) job(workers int) disdel.Job {
	var job disdel.Job
	t := &job.Training
	t.Epochs, t.BatchSize, t.Loss, t.ValidateEvery = k.epochs, batchSize, "crossEntropy", 1
	t.Optimizer.SGD = &disdel.SGD{LearningRate: 0.1}
	job.Model.Name, job.Data.Source = "lenet5", "dataset://drawn"
	job.Resources.Memory, job.Distribution.Workers, job.Distribution.Sync = heldEach, workers, disdel.SyncEpoch
	return job
}

// record is a job of the kind that ran, all its epochs, with noise.
func (k truth) record(in scheduler.PlanInput, lot *rand.Rand) disdel.Record {
	in.Job, in.Past = k.job(k.workers), []disdel.Record{}
	plan, err := scheduler.NewPlan(in)
	if err != nil {
		panic(err) // a job that is known to fit
	}
	for i := range plan.Actions {
		plan.Actions[i].Limits.Memory = heldEach
	}
	r := disdel.Record{
		APIVersion: disdel.APIVersion, ID: disdel.JobID(fmt.Sprintf("job-past-%d", lot.Uint64())),
		Status: disdel.StatusSucceeded, Job: in.Job, Data: in.Data, Plan: plan,
	}
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	luck := func() float64 { return math.Exp(0.05 * lot.NormFloat64()) }
	for n := range k.epochs {
		begun := now
		ran := func(task disdel.Task, member, rows int, seconds float64) {
			d := time.Duration(seconds * luck() * 1e9)
			r.Activations = append(r.Activations, disdel.Activation{
				Invocation: disdel.Invocation{
					Task: task, Round: n, Member: member, Attempt: 1, Limits: disdel.Limits{Memory: heldEach},
				},
				Outcome: disdel.OutcomeSuccess, Start: now, End: now.Add(d), Duration: disdel.Millis(d), Rows: rows,
			})
		}
		share := k.rows / k.workers
		for w := range k.workers {
			ran(disdel.TaskTrain, w, share, k.start+k.row*float64(share))
		}
		now = now.Add(time.Duration((k.start + k.row*float64(share)) * 1e9))
		mean := k.start + k.merge*float64(k.workers)
		ran(disdel.TaskAggregate, 0, 0, mean)
		r.Activations[len(r.Activations)-1].Level = 1
		now = now.Add(time.Duration(mean * 1e9))
		ran(disdel.TaskEvaluate, 0, 1000, heldOut)
		now = now.Add(time.Duration((heldOut + gap) * 1e9))
		loss, accuracy := k.losses.At(float64(n+1))*math.Exp(0.01*lot.NormFloat64()), 0.5
		r.Rounds = append(r.Rounds, disdel.Round{
			Round: n, TrainLoss: loss, Loss: &loss, Accuracy: &accuracy, Duration: disdel.Millis(now.Sub(begun)),
		})
		r.Phases.Total += disdel.Millis(now.Sub(begun))
	}
	r.UsedGBs, r.CostGBs = rig.Spent(r.Activations), estimator.Cost(r.Activations)
	return r
}
