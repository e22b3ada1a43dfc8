package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// usedBy is everything one action of a plan came to: one line of the result table.
type usedBy struct {
	name            string
	runs            int
	estimate, limit disdel.Bytes
	peak            disdel.Bytes
	timeout         disdel.Millis
	longest, total  disdel.Millis
	cold            int
	outcome         disdel.Outcome // the worst
}

func slotName(a *disdel.Activation) string {
	switch a.Task {
	case disdel.TaskAggregate:
		return fmt.Sprintf("aggregate %d.%d", a.Level, a.Member)
	case disdel.TaskTrain:
		return fmt.Sprintf("train %d", a.Member)
	default:
		return string(a.Task)
	}
}

// byAction gathers the activations of each action, trains first, in the order of their members.
func byAction(list []disdel.Activation) []usedBy {
	var out []usedBy
	at := map[string]int{}
	for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate, disdel.TaskInfer} {
		for member := 0; ; member++ {
			found := false
			for i := range list {
				a := &list[i]
				if a.Task != task || a.Member != member {
					continue
				}
				found = true
				k, ok := at[slotName(a)]
				if !ok {
					k, at[slotName(a)] = len(out), len(out)
					out = append(out, usedBy{name: slotName(a)})
				}
				out[k].add(a)
			}
			if !found {
				break
			}
		}
	}
	return out
}

func (u *usedBy) add(a *disdel.Activation) {
	u.runs++
	u.estimate, u.limit, u.timeout = a.Estimate, a.Limits.Memory, a.Limits.Timeout
	u.peak, u.longest, u.total = max(u.peak, a.Peak), max(u.longest, a.Duration), u.total+a.Duration
	if a.Cold {
		u.cold++
	}
	u.outcome = max(u.outcome, a.Outcome)
}

func printRecord(w io.Writer, r *disdel.Record) {
	fmt.Fprintf(w, "\njob       %s (%s)  %s\n", clean(r.Job.Metadata.Name), r.ID, r.Status)
	if len(r.Rounds) > 0 {
		fmt.Fprintf(w, "accuracy  %.4f held out   loss %.4f   %d rounds%s\n", r.Accuracy, r.Loss, len(r.Rounds), prefixed("   stopped early: ", r.Stopped))
	}
	if r.Model != nil {
		fmt.Fprintf(w, "model     %s:v%d  %s\n", clean(r.Model.Name), r.Model.Version, r.Model.Size)
	}
	p := r.Phases
	fmt.Fprintf(w, "time      %s: prepare %s, train %s, aggregate %s, evaluate %s\n", sec(p.Total), sec(p.Prepare), sec(p.Train), sec(p.Aggregate), sec(p.Evaluate))
	fmt.Fprintf(w, "cost      %.2f GB-s\n\n", r.CostGBs)
	rows := [][]string{{"ACTION", "RUNS", "COLD", "ESTIMATE", "LIMIT", "PEAK", "TIMEOUT", "LONGEST", "TOTAL", "OUTCOME"}}
	for _, u := range byAction(r.Activations) {
		rows = append(rows, []string{
			u.name, fmt.Sprint(u.runs), fmt.Sprint(u.cold), u.estimate.String(), u.limit.String(), known(u.peak), u.timeout.String(),
			sec(u.longest), sec(u.total), u.outcome.String(),
		})
	}
	table(w, rows...)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func known(b disdel.Bytes) string {
	if b == 0 {
		return "-"
	}
	return b.String()
}

func sec(m disdel.Millis) string { return fmt.Sprintf("%.2f s", time.Duration(m).Seconds()) }

func shapeText(shape []int) string {
	parts := make([]string, len(shape))
	for i, v := range shape {
		parts[i] = fmt.Sprint(v)
	}
	return strings.Join(parts, "x")
}
