package executor

import (
	"encoding/json"
	"testing"

	"github.com/disdel/disdel"
)

// Whatever an action or a platform answers, its activation has one outcome, and what is kept of it can be written.
func FuzzClassify(f *testing.F) {
	f.Add("success", []byte(`{"usage": {"peak": 1}}`), "a line", false)
	f.Add("action developer error",
		[]byte(`{"error": "The action exceeded its time limits of 1000 milliseconds."}`), "", true)
	f.Add("application error", []byte(`{"error": {"kind": "memory", "op": "x", "msg": "y"}}`), "panic: \x00\xff", false)
	f.Add("whisk internal error", []byte(`[`), "", false)
	f.Fuzz(func(t *testing.T, status string, result []byte, line string, timedOut bool) {
		r := Record{Status: status, Result: result, Logs: []string{line}, TimedOut: timedOut}
		for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate} {
			a := Classify(disdel.Invocation{Task: task}, r, nil)
			if (a.Outcome == disdel.OutcomeSuccess) != (a.Failure == nil) {
				t.Fatalf("outcome %v with the failure %v", a.Outcome, a.Failure)
			}
			if _, err := json.Marshal(a); err != nil {
				t.Fatal(err)
			}
		}
	})
}
