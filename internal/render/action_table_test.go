package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/report"
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

// The table of the record and the report show the same estimate, also where the newest activation expected another one.
func TestRecordAndReportShowTheSameEstimate(t *testing.T) {
	limits := disdel.Limits{Memory: 128 * disdel.MB}
	train := func(round int, likely, peak disdel.Bytes) disdel.Activation {
		return disdel.Activation{
			Invocation: disdel.Invocation{Task: disdel.TaskTrain, Round: round, Limits: limits, Likely: likely},
			Outcome:    disdel.OutcomeSuccess, Peak: peak,
		}
	}
	r := &disdel.Record{Activations: []disdel.Activation{
		train(0, 9*disdel.MB, 10*disdel.MB), train(1, 7*disdel.MB, 8*disdel.MB),
	}}
	want := report.New(r, time.Now()).Actions[0].Estimate.String()
	var b bytes.Buffer
	if PrintRecord(&b, r); !strings.Contains(b.String(), want) || strings.Contains(b.String(), "7.00 MB") {
		t.Errorf("the report estimates %s, the record:\n%s", want, b.String())
	}
}
