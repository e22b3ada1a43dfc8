package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
)

// usedBy is everything one action of a plan came to: one line of the result table.
type usedBy struct {
	name            string
	task            disdel.Task
	level, member   int
	runs            int
	attempts, legs  int // most of one round
	estimate, limit disdel.Bytes
	peak            disdel.Bytes
	timeout         disdel.Millis
	longest, total  disdel.Millis
	cold            int
	outcome         disdel.Outcome // the newest, or the newest failure
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

// taskOrder is the order of a round.
var taskOrder = []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate, disdel.TaskInfer}

// byAction gathers the activations of each action in the order of a round, then by level and member.
func byAction(list []disdel.Activation) []usedBy {
	var out []usedBy
	at := map[string]int{}
	for i := range list {
		a := &list[i]
		k, ok := at[slotName(a)]
		if !ok {
			k, at[slotName(a)] = len(out), len(out)
			out = append(out, usedBy{name: slotName(a), task: a.Task, level: a.Level, member: a.Member})
		}
		out[k].add(a)
	}
	slices.SortStableFunc(out, func(a, b usedBy) int {
		return cmp.Or(slices.Index(taskOrder, a.task)-slices.Index(taskOrder, b.task), a.level-b.level, a.member-b.member)
	})
	return out
}

func (u *usedBy) add(a *disdel.Activation) {
	u.runs++
	u.attempts, u.legs = max(u.attempts, a.Attempt), max(u.legs, a.Leg+1)
	u.estimate, u.limit, u.timeout = a.Estimate, a.Limits.Memory, a.Limits.Timeout
	u.peak, u.longest, u.total = max(u.peak, a.Peak), max(u.longest, a.Duration), u.total+a.Duration
	if a.Cold {
		u.cold++
	}
	if controller.Failed(a.Outcome) || !controller.Failed(u.outcome) {
		u.outcome = a.Outcome
	}
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
	fmt.Fprintf(w, "cost      %.2f GB-s\n", r.CostGBs)
	if f := r.Plan.Forecast; f != nil {
		fmt.Fprintf(w, "forecast  %s; %s\n", timeText(f.Duration), costText(f.Cost))
	}
	if l := r.Losses; l.Attempts > 0 {
		fmt.Fprintf(w, "losses    %d failed attempts: %s, %.2f GB-s\n", l.Attempts, sec(l.Duration), l.Cost)
	}
	fmt.Fprintln(w)
	table(w, fitted(w, actionTable(byAction(r.Activations)), "COLD", "TOTAL", "TIMEOUT", "RUNS", "LONGEST", "ESTIMATE")...)
}

// actionTable has columns for attempts and legs only where there was more than one.
func actionTable(list []usedBy) [][]string {
	attempts := slices.ContainsFunc(list, func(u usedBy) bool { return u.attempts > 1 })
	legs := slices.ContainsFunc(list, func(u usedBy) bool { return u.legs > 1 })
	cells := func(name, runs, attempt, leg string, rest ...string) []string {
		out := []string{name, runs}
		if attempts {
			out = append(out, attempt)
		}
		if legs {
			out = append(out, leg)
		}
		return append(out, rest...)
	}
	rows := [][]string{cells("ACTION", "RUNS", "ATTEMPTS", "LEGS", "COLD", "ESTIMATE", "LIMIT", "PEAK", "TIMEOUT", "LONGEST", "TOTAL", "OUTCOME")}
	for _, u := range list {
		rows = append(rows, cells(u.name, fmt.Sprint(u.runs), fmt.Sprint(u.attempts), fmt.Sprint(u.legs), fmt.Sprint(u.cold), u.estimate.String(),
			u.limit.String(), known(u.peak), u.timeout.String(), sec(u.longest), sec(u.total), u.outcome.String()))
	}
	return rows
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
