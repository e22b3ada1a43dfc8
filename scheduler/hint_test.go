package scheduler

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

var settings = regexp.MustCompile(`'(training\.batchSize|training\.rowsPerStep|distribution\.workers|training\.precision|` +
	`training\.optimizer)=([^']*)'`)

// What a plan that does not fit says of less work was planned: with it the job fits, or there is nothing that would.
func TestTheHintOfAPlanThatDoesNotFit(t *testing.T) {
	draw := rand.New(rand.NewPCG(31, 3))
	fits, none := 0, 0
	for range 60 {
		in := wide(t)
		in.Job.Training.BatchSize = 1 << draw.IntN(11)
		in.Job.Distribution.Workers = 1 + draw.IntN(6)
		limit := disdel.Bytes(5+draw.IntN(300)) * disdel.MB
		in.Platform.MinMemory = disdel.MB
		if draw.IntN(2) == 0 {
			in.Platform.Pool = limit
		} else {
			in.Platform.MaxMemory = limit
		}
		_, err := NewPlan(in)
		if disdel.KindOf(err) != disdel.OverLimit {
			continue
		}
		hint := disdel.AsError(err).Hint
		found := settings.FindAllStringSubmatch(hint, -1)
		if len(found) == 0 {
			if none++; !strings.Contains(hint, "a smaller network: no batch") {
				t.Fatalf("%v: %s", err, hint)
			}
			least := in
			least.Job.Training.BatchSize, least.Job.Distribution.Workers = 1, 1
			if _, err := NewPlan(least); err == nil {
				t.Errorf("%v: one row fits, and the hint is %s", limit, hint)
			}
			continue
		}
		fits++
		for _, m := range found {
			change(t, &in.Job, m[1], m[2])
		}
		if _, err := NewPlan(in); err != nil {
			t.Errorf("%v: %s does not fit: %v", limit, hint, err)
		}
	}
	if fits == 0 || none == 0 {
		t.Errorf("%d hints with a change, %d without", fits, none)
	}
}

// change sets a field of a job as --set does.
func change(t *testing.T, job *disdel.Job, path, value string) {
	t.Helper()
	var n int
	switch path {
	case "training.optimizer":
		job.Training.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: plainRate}}
	case "training.precision":
		job.Training.Precision = disdel.PrecisionBF16
	default:
		if _, err := fmt.Sscan(value, &n); err != nil {
			t.Fatal(err)
		}
		if path == "distribution.workers" {
			job.Distribution.Workers = n
		} else {
			job.Training.BatchSize = n
		}
	}
}
