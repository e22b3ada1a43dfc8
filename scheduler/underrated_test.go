package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// What a network needed above its estimate it needs on other data, with other batches and other workers too (DiSDeL
// III-B.2c: for later executions of the same model); another network, and a limit that somebody chose too low, tell
// nothing of it.
func TestALessonHoldsForTheSameNetwork(t *testing.T) {
	in := planInput(t)
	in.Platform.MinMemory = disdel.MB
	own, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := own.Action(disdel.TaskTrain)
	killed := end(disdel.OutcomeOutOfMemory, int(train.Limits.Memory.MB()), time.Minute)
	killed.Estimate = train.Estimate.Total
	past := earlier(in, killed, end(disdel.OutcomeSuccess, int(2*train.Limits.Memory.MB()), time.Minute))
	past.Plan.Actions = []disdel.ActionPlan{train}
	for name, c := range map[string]struct {
		change func(*disdel.Record)
		learns bool
	}{
		"other data":      {func(r *disdel.Record) { r.Data.Checksum = "other" }, true},
		"another batch":   {func(r *disdel.Record) { r.Job.Training.BatchSize = 8; r.Data.Checksum = "other" }, true},
		"other workers":   {func(r *disdel.Record) { r.Plan.Workers = 7 }, true},
		"another network": {func(r *disdel.Record) { r.Job.Model.Name = "mlp"; r.Data.Checksum = "other" }, false},
		"another method": {
			func(r *disdel.Record) { r.Plan.Actions[0].Estimate.Method = "paper"; r.Plan.Workers = 7 },
			false,
		},
		"a limit below the estimate": {func(r *disdel.Record) {
			r.Activations[0].Limits.Memory, r.Plan.Workers = train.Estimate.Total/2, 7
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := past
			r.Activations = append([]disdel.Activation(nil), past.Activations...)
			r.Plan.Actions = append([]disdel.ActionPlan(nil), past.Plan.Actions...)
			c.change(&r)
			again := in
			again.Past = []disdel.Record{r}
			p, err := NewPlan(again)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := p.Action(disdel.TaskTrain)
			if learned := a.Limits.Memory > train.Limits.Memory; learned != c.learns {
				t.Errorf("%v after %v: learned %v, want %v", a.Limits.Memory, train.Limits.Memory, learned, c.learns)
			}
			if said := strings.Contains(strings.Join(p.Reasons, "\n"), "a job of the same network"); said != c.learns {
				t.Errorf("said %v, want %v", said, c.learns)
			}
		})
	}
}
