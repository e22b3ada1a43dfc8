package controller

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

var update = flag.Bool("update", false, "write the transcripts of testdata anew")

// Every file of testdata/manager is a script: events in, the manager's orders under each as "-> ...". The manager is
// pure, so a transcript is the whole of its behaviour.
func TestManagerFollowsItsScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/manager/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want), got); diff != "" && !*update {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
		})
	}
}

func play(t *testing.T, script string) string {
	return playWorded(t, script, func(err *disdel.Error) *disdel.Error { return err })
}

// playWorded plays a script with the failures of its events as word says them.
func playWorded(t *testing.T, script string, word func(*disdel.Error) *disdel.Error) string {
	t.Helper()
	var out strings.Builder
	var m *Manager
	lines := bufio.NewScanner(strings.NewReader(script))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "-> ") {
			continue
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(line, "#"):
		case words[0] == "job":
			m = NewManager(scriptSpec(t, words[1:]))
		default:
			for _, o := range m.Step(worded(scriptEvent(t, m, words), word)) {
				fmt.Fprintln(&out, "-> "+describe(o))
			}
		}
	}
	return out.String()
}

// worded is an event with its failure as word says it.
func worded(e Event, word func(*disdel.Error) *disdel.Error) Event {
	switch e := e.(type) {
	case EndedEvent:
		e.Activation.Failure = word(e.Activation.Failure)
		return e
	case RefusedEvent:
		e.Activation.Failure = word(e.Activation.Failure)
		return e
	case CanceledEvent:
		e.Err = word(e.Err)
		return e
	case DeadlineEvent:
		e.Err = word(e.Err)
		return e
	case StoreGoneEvent:
		e.Err = word(e.Err)
		return e
	case GrantedEvent:
		e.Err = word(e.Err)
		return e
	case StartedEvent, AlarmEvent, StepsEvent:
	}
	return e
}

// options reads "key=value" words.
func options(t *testing.T, words []string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok || k == "policy" {
			continue
		}
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			t.Fatalf("%s: %v", w, err)
		}
		out[k] = f
	}
	return out
}

func scriptSpec(t *testing.T, words []string) Spec {
	o := options(t, words)
	job := disdel.Job{}
	job.Training.ValidateEvery = int(o["validateEvery"])
	if v, ok := o["target"]; ok {
		job.Training.EarlyStop = &disdel.EarlyStop{Metric: "loss", Target: &v}
	}
	if v, ok := o["patience"]; ok {
		job.Training.EarlyStop = &disdel.EarlyStop{Metric: "valLoss", Patience: int(v)}
	}
	if v, ok := o["accuracy"]; ok {
		job.Training.EarlyStop = &disdel.EarlyStop{
			Metric: disdel.MetricAccuracy, Target: &v, Patience: int(o["patience"]),
		}
	}
	if v, ok := o["valTarget"]; ok {
		job.Training.EarlyStop = &disdel.EarlyStop{
			Metric: disdel.MetricValLoss, Target: &v, Patience: int(o["patience"]),
		}
	}
	if v, ok := o["r2"]; ok {
		job.Training.EarlyStop = &disdel.EarlyStop{Metric: disdel.MetricR2, Target: &v}
	}
	if v, ok := o["goal"]; ok {
		job.Training.Goal = &disdel.Goal{Accuracy: v}
	}
	if o["keepBest"] != 0 {
		job.Training.EarlyStop.Keep = disdel.KeepBest
	}
	if o["wait"] != 0 {
		job.Distribution.Missing.Policy = disdel.MissingWait
	}
	if _, ok := o["exchange"]; ok {
		job.Distribution.Exchange = &disdel.Exchange{}
	}
	if o["queue"] != 0 {
		job.Distribution.Exchange = &disdel.Exchange{Order: disdel.OrderEager, Batches: disdel.BatchesQueue}
	}
	if v, ok := o["proceedAfter"]; ok {
		job.Distribution.Missing = disdel.Missing{Policy: disdel.MissingProceed, After: disdel.Duration(v * 1e9)}
	}
	job.Reliability.Retries = disdel.Retries{Limit: int(o["retries"]), PerWorker: int(o["retries"]), MemoryFactor: 1.5}
	job.Reliability.CheckpointEvery = int(o["checkpointEvery"])
	job.Training.Epochs, job.Training.BatchSize = int(o["rounds"]), 10
	if v, ok := o["every"]; ok {
		job.Distribution.Sync = disdel.SyncEvery(int(v))
	}
	replan := func(job disdel.Job) (disdel.Plan, error) { return scriptPlan(job, o) }
	planned := job
	planned.Distribution.Workers = int(o["workers"])
	plan, err := replan(planned)
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{ID: "job-1", Job: job, Plan: plan, Models: "mem://", Output: "weights/m/job-1.safetensors", Threads: 1}
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "policy="); ok {
			spec.Job.Distribution.Policy, spec.Replan = name, replan
			spec.Job.Distribution.MaxWorkers = int(o["most"])
		}
	}
	if v, ok := o["from"]; ok {
		spec.From, spec.Resumes = &disdel.Checkpoint{Round: int(v), Path: "checkpoints/job-1/reference"}, 1
	}
	if o["done"] != 0 { // rounds before from, the last of which was not evaluated
		for i := range spec.From.Round {
			spec.Done = append(spec.Done, disdel.Round{Round: i, TrainLoss: 2, Loss: new(0.5), Accuracy: new(0.5)})
		}
		last := &spec.Done[spec.From.Round-1]
		last.Loss, last.Accuracy = nil, nil
	}
	if v, ok := o["best"]; ok {
		spec.Best = &disdel.Best{Round: int(v), Loss: 0.5, Accuracy: 0.5}
	}
	return spec
}

// scriptPlan is the plan of a script's job: of rows, where it says how many, in rounds of so many batches. "fits" is
// the most workers that can be planned.
func scriptPlan(job disdel.Job, o map[string]float64) (disdel.Plan, error) {
	n := job.Distribution.Workers
	if most, ok := o["fits"]; ok && n > int(most) {
		return disdel.Plan{}, &disdel.Error{
			Kind: disdel.OverLimit, Op: "plan job",
			Msg: fmt.Sprintf("%d workers do not fit", n),
		}
	}
	p := disdel.Plan{
		Workers: n, Rounds: int(o["rounds"]), Epochs: 1, HeldOut: int(o["heldOut"]), Parallel: n,
		Levels: scheduler.Tree(n, int(o["fanIn"])),
		Shards: scheduler.Shards(int(o["rows"]), n), Batches: job.Distribution.Sync.Every(),
	}
	if p.Batches > 0 {
		p.Rounds = job.Training.Epochs * max(1, int(o["rows"])/n/job.Training.BatchSize/p.Batches)
	}
	if limit, ok := o["limit"]; ok { // memory of a train action, at the platform's maximum
		p.Platform.MaxMemory, p.Platform.MaxTimeout = disdel.Bytes(limit)*disdel.MB, 2e9
		p.Actions = []disdel.ActionPlan{{
			Task: disdel.TaskTrain, Name: "p/train",
			Limits: disdel.Limits{Memory: p.Platform.MaxMemory, Timeout: 2e9},
		}}
	}
	return p, nil
}

// stepsEvent is heartbeats of all workers that are in the round, each of which has made so many steps more.
func stepsEvent(m *Manager, round int, o map[string]float64) (e StepsEvent) {
	for w := range m.release.there {
		made := m.release.seen[w]
		made.Add(disdel.StepsSoFar{
			Made: int(o["made"]), Rows: 10 * int(o["made"]), Loss: 10 * o["made"] * o["loss"],
			Own: o["made"] * o["own"], Others: o["made"] * o["others"],
		})
		e.Progress = append(e.Progress, disdel.Progress{Task: disdel.TaskTrain, Round: round, Member: w, Steps: &made})
	}
	return e
}

// scriptEvent reads "started", "cancel", "deadline", "steps ROUND key=value...", or
// "TASK ROUND LEVEL MEMBER [OUTCOME] [key=value...]".
func scriptEvent(t *testing.T, m *Manager, words []string) Event {
	t.Helper()
	switch words[0] {
	case "started":
		return StartedEvent{}
	case "cancel":
		return CanceledEvent{Err: &disdel.Error{Kind: disdel.Canceled, Msg: "interrupted"}}
	case "deadline":
		return DeadlineEvent{Err: &disdel.Error{Kind: disdel.Timeout, Msg: "deadline"}}
	case "unknown":
		return nil
	case "alarm":
		n, err := strconv.Atoi(words[1])
		if err != nil {
			t.Fatal(err)
		}
		return AlarmEvent{Number: n}
	case "steps":
		n, err := strconv.Atoi(words[1])
		if err != nil {
			t.Fatal(err)
		}
		return stepsEvent(m, n, options(t, words[2:]))
	}
	var n [3]int
	for i := range n {
		v, err := strconv.Atoi(words[i+1])
		if err != nil {
			t.Fatalf("%v: %v", words, err)
		}
		n[i] = v
	}
	a := disdel.Activation{Outcome: disdel.OutcomeSuccess, Peak: disdel.MB, Invocation: disdel.Invocation{
		Task: disdel.Task(words[0]), Round: n[0], Level: n[1], Member: n[2], Attempt: 1,
	}}
	o := options(t, words[4:])
	at := disdel.Millis(o["at"] * 1e9)
	if v, ok := o["attempt"]; ok {
		a.Attempt = int(v)
	}
	a.Invocation.ID = invocationID(work{round: a.Round, attempt: a.Attempt, leg: int(o["leg"])}, a.Slot())
	if m.publish {
		a.Invocation.ID += "/publish"
	}
	for _, w := range words[4:] {
		switch {
		case w == "refused":
			a.Failure = &disdel.Error{Kind: disdel.Denied, Msg: "refused"}
			a.Outcome = scheduler.Refused(a.Failure)
			return RefusedEvent{Activation: a}
		case w == "garbage":
			a.Result = json.RawMessage(`"?"`)
			return EndedEvent{Activation: a}
		case lost[w] != nil:
			a.Outcome, a.Failure = disdel.OutcomeApplicationError, lost[w]
		case w == "cold":
			a.Cold, a.InitTime = true, 1e9
		case !strings.Contains(w, "="):
			if err := a.Outcome.UnmarshalText([]byte(w)); err != nil {
				t.Fatal(err)
			}
			a.Failure = &disdel.Error{Kind: disdel.Crashed, Msg: w}
			if a.Outcome == disdel.OutcomeCorrupt {
				a.Failure = &disdel.Error{Kind: disdel.Corrupt, Code: disdel.CodeLostUpdate, Msg: w}
			}
		}
	}
	var result any
	switch a.Task {
	case disdel.TaskTrain:
		result = disdel.TrainResult{
			Loss: o["loss"], Samples: int(o["samples"]), Reached: o["reached"] != 0,
			BatchesDone: int(o["batch"]), Left: int(o["left"]), Duplicate: o["again"] != 0,
		}
	case disdel.TaskEvaluate:
		e := disdel.EvaluateResult{Loss: o["loss"], Accuracy: o["accuracy"]}
		if v, ok := o["r2"]; ok {
			e.R2 = &v
		}
		result = e
	default:
		r := disdel.AggregateResult{}
		if v, ok := o["saved"]; ok {
			r.Saved = &disdel.Checkpoint{Round: int(v), Path: "checkpoints/job-1/reference"}
		}
		result = r
	}
	a.Result, _ = json.Marshal(result)
	if _, ok := o["limit"]; ok {
		a.Limits.Memory = disdel.Bytes(o["limit"]) * disdel.MB
	}
	return EndedEvent{Moment{At: at}, a}
}

// lost is what actions say of what the store has lost.
var lost = map[string]*disdel.Error{
	"lostUpdate":    {Kind: disdel.NotFound, Code: disdel.CodeLostUpdate},
	"lostReference": {Kind: disdel.NotFound, Code: disdel.CodeLostReference, Msg: "job-1 round 1"},
	"lostData":      {Kind: disdel.NotFound, Op: "read data set", Msg: "digits"},
}

func describe(o Order) string {
	switch o := o.(type) {
	case InvokeOrder:
		var s strings.Builder
		s.WriteString("invoke " + o.Invocation.ID)
		if o.Invocation.Task == disdel.TaskAggregate {
			var r disdel.AggregateRequest
			if err := json.Unmarshal(o.Invocation.Params, &r); err != nil {
				return err.Error()
			}
			for _, m := range r.Members {
				s.WriteString(fmt.Sprintf(" +%d.%d", m.Level, m.Member))
			}
			if r.Top {
				s.WriteString(" top")
			}
			if r.WeightsKey != "" {
				s.WriteString(" save")
			}
			if r.NextCheckpoint != "" {
				s.WriteString(" checkpoint")
			}
		}
		var r disdel.TrainRequest
		if err := json.Unmarshal(o.Invocation.Params, &r); err != nil {
			return err.Error()
		}
		if o.Invocation.Stage > 0 && o.Invocation.Task == disdel.TaskTrain {
			s.WriteString(fmt.Sprintf(" in stage %d: rows %d to %d, epoch %d", o.Invocation.Stage, r.Shard.Start, r.Shard.End,
				r.Epoch))
			if r.Batch > 0 || r.Batches > 0 {
				s.WriteString(fmt.Sprintf(", batch %d and %d more", r.Batch, r.Batches))
			}
		}
		if r.ReferenceCheckpoint != "" {
			s.WriteString(" from checkpoint")
		}
		if o.After > 0 {
			s.WriteString(fmt.Sprintf(" after %v", o.After))
		}
		return s.String()
	case GrantOrder:
		return fmt.Sprintf("ask for %d workers from round %d on, waiting: %t", o.Plan.Workers, o.Round, o.Waits)
	case AlarmOrder:
		return fmt.Sprintf("alarm %d for round %d after %v", o.Number, o.Round, o.After)
	case CheckpointOrder:
		return fmt.Sprintf("checkpoint of round %d", o.Checkpoint.Round)
	case AdjustOrder:
		return fmt.Sprintf("adjust %s from %v to %v", o.Adjustment.Field, o.Adjustment.From, o.Adjustment.To)
	case SweepOrder:
		return "sweep the store"
	case EndOrder:
		return fmt.Sprintf("end worker %d of round %d for those that exchange", o.Worker, o.Round)
	case LetGoOrder:
		return fmt.Sprintf("let worker %d of round %d go", o.Worker, o.Round)
	case ForgetOrder:
		return fmt.Sprintf("forget what round %d delivered", o.Round)
	case StageOrder:
		var s strings.Builder
		s.WriteString(fmt.Sprintf("stage %d from round %d of %d: %d workers, batch %d", o.Number, o.Stage.First,
			o.Plan.Rounds, o.Stage.Workers, o.Stage.BatchSize))
		for _, r := range o.Stage.Reasons {
			s.WriteString("; " + r)
		}
		return s.String()
	case DecisionOrder:
		d := o.Decision
		var s strings.Builder
		s.WriteString(fmt.Sprintf("%s decides for round %d (%s): %d workers", d.Policy, d.Round, d.Boundary, d.Next.Workers))
		if d.Why != "" {
			s.WriteString(": " + d.Why)
		}
		for _, r := range d.Reasons {
			s.WriteString("; " + r)
		}
		return s.String()
	case RoundOrder:
		s := fmt.Sprintf("round %d trainLoss %.4g", o.Round.Round, o.Round.TrainLoss)
		if len(o.Round.Missing) > 0 {
			s += fmt.Sprintf(" without %v", o.Round.Missing)
		}
		if o.Round.Duplicates > 0 {
			s += fmt.Sprintf(" (%d results twice)", o.Round.Duplicates)
		}
		if o.Round.Accuracy != nil {
			s += fmt.Sprintf(" loss %g accuracy %g", *o.Round.Loss, *o.Round.Accuracy)
		}
		if o.Round.NotEvaluated != "" {
			s += " not evaluated"
		}
		return s
	case BestOrder:
		return fmt.Sprintf("best is round %d", o.Best.Round)
	case FinishOrder:
		s := "finish " + o.Status.String()
		if o.Failure != nil {
			s += fmt.Sprintf(" %s %q", o.Failure.Kind, o.Failure.Msg)
		}
		if o.Blind != nil {
			s += " not evaluated"
		}
		if o.Stopped != "" {
			s += fmt.Sprintf(" (%s)", o.Stopped)
		}
		return s
	}
	return "?"
}
