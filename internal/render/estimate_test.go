package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// The plan of a submit and the table of the record show the same estimate of the same action: the likely peak.
func TestPlanAndRecordShowTheSameEstimate(t *testing.T) {
	const likely, total = 9 * disdel.MB, 13 * disdel.MB
	limits := disdel.Limits{Memory: 128 * disdel.MB}
	r := &disdel.Record{Plan: disdel.Plan{Actions: []disdel.ActionPlan{{
		Task: disdel.TaskTrain, Limits: limits, Estimate: disdel.Estimate{Likely: likely, Total: total},
	}}}}
	r.Activations = []disdel.Activation{{Invocation: disdel.Invocation{
		Task: disdel.TaskTrain, Limits: limits, Likely: likely, Estimate: total,
	}}}
	for name, print := range map[string]func(*bytes.Buffer){
		"plan": func(b *bytes.Buffer) { PrintPlan(b, r) }, "record": func(b *bytes.Buffer) { PrintRecord(b, r) },
	} {
		var b bytes.Buffer
		if print(&b); !strings.Contains(b.String(), likely.String()) || strings.Contains(b.String(), total.String()) {
			t.Errorf("%s shows another estimate than %v:\n%s", name, likely, b.String())
		}
	}
}
