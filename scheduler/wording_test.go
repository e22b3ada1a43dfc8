package scheduler

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// reworded is an error as another version might say it: the same kind, code and subject, and no word in common.
func reworded(err *disdel.Error) *disdel.Error {
	if err == nil {
		return nil
	}
	out := *err
	out.Op, out.Msg, out.Hint, out.Err = "zzz", "zzz", "zzz", errors.New("zzz")
	return &out
}

// Whatever failed and however often, other words change no remedy.
func TestRewordingChangesNoRemedy(t *testing.T) {
	codes := []disdel.Code{
		"", disdel.CodeUnreachable, disdel.CodeQuotaMinute, disdel.CodeQuotaConcurrent, disdel.CodeNeverServed,
		disdel.CodeImageMissing, disdel.CodeInitTimeout, disdel.CodeInitDied, disdel.CodePanicked,
		disdel.CodeLostUpdate, disdel.CodeLostReference,
	}
	texts := []string{
		"read update: the checksum is wrong", "fetch reference", "in the last minute", "Too many requests",
		"the action panicked",
		"not tried again: no retries", "round 0/level 0/1",
	}
	rapid.Check(t, func(t *rapid.T) {
		in := remedyInput(
			disdel.Outcome(rapid.IntRange(0, int(disdel.OutcomeCorrupt)).Draw(t, "outcome")),
			disdel.Kind(rapid.IntRange(1, int(disdel.NoSpace)).Draw(t, "kind")),
		)
		in.Attempts = Attempts{
			Job:      rapid.IntRange(0, 7).Draw(t, "retries"),
			Platform: rapid.IntRange(0, 25).Draw(t, "platform"),
		}
		in.Activation.Failure.Code = rapid.SampledFrom(codes).Draw(t, "code")
		in.Activation.Failure.Msg = rapid.SampledFrom(texts).Draw(t, "text")
		in.Activation.Task = rapid.SampledFrom([]disdel.Task{
			disdel.TaskTrain, disdel.TaskAggregate,
			disdel.TaskEvaluate,
		}).Draw(t, "task")
		said := FindRemedy(in)
		in.Activation.Failure = reworded(in.Activation.Failure)
		otherwise := FindRemedy(in)
		said.Why, otherwise.Why = "", ""
		if diff := cmp.Diff(said, otherwise); diff != "" {
			t.Errorf("(-as said +otherwise):\n%s", diff)
		}
		if a, b := Refused(in.Activation.Failure), Refused(reworded(in.Activation.Failure)); a != b {
			t.Errorf("refused as %v, and as %v in other words", a, b)
		}
	})
}
