package jobtext

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/internal/terminal"
)

// usedBy is everything one action of a plan came to: one line of the result table.
type usedBy struct {
	name            string
	runs            int
	attempts, legs  int // most of one round
	estimate, limit disdel.Bytes
	peak            disdel.Bytes
	timeout         disdel.Millis
	longest, total  disdel.Millis
	cold            int
	failed          int
	outcome         disdel.Outcome // of the newest
}

// byAction gathers the activations of each action in the order of a round, then by level and member.
func byAction(list []disdel.Activation) []usedBy {
	var out []usedBy
	for _, of := range disdel.BySlot(list) {
		u := usedBy{name: of[0].Slot().Name()}
		for _, a := range of {
			u.add(a)
		}
		out = append(out, u)
	}
	return out
}

func (u *usedBy) add(a *disdel.Activation) {
	u.runs++
	if !strings.HasSuffix(a.Invocation.ID, controller.PublishSuffix) { // the same work once more, not another try
		u.attempts = max(u.attempts, a.Attempt)
	}
	u.legs = max(u.legs, a.Leg+1)
	u.estimate, u.limit, u.timeout = a.Expected(), a.Limits.Memory, a.Limits.Timeout
	u.peak, u.longest, u.total = max(u.peak, a.Peak), max(u.longest, a.Duration), u.total+a.Duration
	if a.Cold {
		u.cold++
	}
	if u.outcome = a.Outcome; a.Outcome.Failed() {
		u.failed++
	}
}

// PrintRecord writes what came of a job.
func PrintRecord(w io.Writer, r *disdel.Record) {
	fmt.Fprintf(w, "job       %s (%s)  %s\n", terminal.Clean(r.Job.Metadata.Name), r.ID, r.Status)
	if len(r.Rounds) > 0 {
		fmt.Fprintf(w, "accuracy  %s   %s%s\n", accuracyText(r), terminal.Counted(len(r.Rounds), "round"),
			prefixed("   stopped early: ", r.Stopped))
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(w, "warning   %s\n", terminal.Clean(text))
	}
	if r.Model != nil {
		fmt.Fprintf(w, "model     %s:v%d  %s\n", terminal.Clean(r.Model.Name), r.Model.Version, r.Model.Size)
	}
	p := r.Phases
	fmt.Fprintf(w, "time      %s: prepare %s, train %s, aggregate %s, evaluate %s\n", Seconds(p.Total), Seconds(p.Prepare),
		Seconds(p.Train), Seconds(p.Aggregate), Seconds(p.Evaluate))
	fmt.Fprintf(w, "cost      %.2f GB-s%s\n", r.CostGBs, evaluationText(r))
	fmt.Fprintf(w, "          by use %.2f GB-s%s\n", r.ByUse(), moneyText(r))
	if f := r.Plan.Forecast; f != nil {
		fmt.Fprintf(w, "forecast  %s; %s\n", timeText(f.Duration), costText(f.Cost))
	}
	if text := report.GPUText(r); text != "" {
		fmt.Fprintf(w, "gpu       %s\n", text)
	}
	if l := r.Losses; l.Attempts > 0 {
		fmt.Fprintf(w, "losses    %s: %s, %.2f GB-s\n", terminal.Counted(l.Attempts, "failed attempt"), Seconds(l.Duration),
			l.Cost)
	}
	fmt.Fprintln(w)
	terminal.Table(w, terminal.Fitted(w, actionTable(byAction(r.Activations)), "COLD", "TOTAL", "TIMEOUT", "RUNS",
		"LONGEST", "ESTIMATE")...)
}

// actionTable has columns for failures, attempts and legs only where there was more than one.
func actionTable(list []usedBy) [][]string {
	attempts := slices.ContainsFunc(list, func(u usedBy) bool { return u.attempts > 1 })
	legs := slices.ContainsFunc(list, func(u usedBy) bool { return u.legs > 1 })
	failures := slices.ContainsFunc(list, func(u usedBy) bool { return u.failed > 0 })
	cells := func(name, runs, failed, attempt, leg string, rest ...string) []string {
		out := []string{name, runs}
		if failures {
			out = append(out, failed)
		}
		if attempts {
			out = append(out, attempt)
		}
		if legs {
			out = append(out, leg)
		}
		return append(out, rest...)
	}
	rows := [][]string{cells("ACTION", "RUNS", "FAILED", "ATTEMPTS", "LEGS", "COLD", "ESTIMATE", "LIMIT", "PEAK",
		"TIMEOUT", "LONGEST", "TOTAL", "OUTCOME")}
	for _, u := range list {
		rows = append(rows, cells(u.name, fmt.Sprint(u.runs), fmt.Sprint(u.failed), fmt.Sprint(max(1, u.attempts)),
			fmt.Sprint(u.legs), fmt.Sprint(u.cold), u.estimate.String(),
			u.limit.String(), known(u.peak), u.timeout.String(), Seconds(u.longest), Seconds(u.total), u.outcome.String()))
	}
	return rows
}

// accuracyText is what held-out rows said of a job's model, or why they said nothing.
func accuracyText(r *disdel.Record) string {
	accuracy, loss, ok := HeldOut(r)
	if ok && r.Data.Sparse != nil {
		return sparseText(r, accuracy, loss)
	}
	switch {
	case ok && r.Best != nil:
		return fmt.Sprintf("%.4f held out   loss %.4f, the best, of round %d", accuracy, loss, r.Best.Round+1)
	case ok:
		return fmt.Sprintf("%.4f held out   loss %.4f", accuracy, loss)
	case r.Data.HeldOut == 0 && r.Plan.HeldOut == 0:
		return "- no rows held out"
	default:
		return "- not evaluated"
	}
}

// sparseText is what held-out rows said of a model of sparse rows.
func sparseText(r *disdel.Record, accuracy, loss float64) string {
	text := r.Scores.Text() + " held out"
	if r.Data.Classes > 1 {
		text = fmt.Sprintf("%.4f held out   %s", accuracy, r.Scores.Text())
	}
	text += fmt.Sprintf("   loss %.4f", loss)
	if r.Best != nil {
		text += fmt.Sprintf(", the best, of round %d", r.Best.Round+1)
	}
	return text
}

// HeldOut is the last evaluation of a job, or that of its model where the best is kept; ok is false where there was
// none.
func HeldOut(r *disdel.Record) (accuracy, loss float64, ok bool) {
	for i := range r.Rounds {
		a, l := r.Rounds[i].Accuracy, r.Rounds[i].Loss
		if l != nil {
			accuracy, loss, ok = 0, *l, true
		}
		if a != nil {
			accuracy = *a
		}
	}
	if r.Best != nil {
		return r.Best.Accuracy, r.Best.Loss, true
	}
	if r.Accuracy != 0 || r.Loss != 0 { // of a record that has no rounds
		return r.Accuracy, r.Loss, true
	}
	return accuracy, loss, ok
}

func evaluationText(r *disdel.Record) string {
	if r.EvaluationGBs == 0 {
		return ""
	}
	return fmt.Sprintf(", and evaluations %.2f GB-s", r.EvaluationGBs)
}

func moneyText(r *disdel.Record) string {
	money, ok := r.Job.Resources.Money(r.ByUse())
	if !ok {
		return ""
	}
	return fmt.Sprintf(", %.3g at %.3g a GB-s", money, r.Job.Resources.Price)
}

// Decimals is a value of a table, "-" where there is none.
func Decimals(v float64, ok bool) string {
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.4f", v)
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

// Seconds is a time in a table.
func Seconds(m disdel.Millis) string { return fmt.Sprintf("%.2f s", time.Duration(m).Seconds()) }
