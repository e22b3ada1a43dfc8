package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
)

func printExplanation(w io.Writer, e *service.Estimation) {
	x := e.Explain
	if x.Plan != nil {
		fmt.Fprintln(w, "\nWithout any ceiling it would be:")
		printActions(w, *x.Plan)
	} else {
		fmt.Fprintln(w)
	}
	printTerms(w, x.Actions)
	fmt.Fprintln(w)
	for _, a := range x.Actions {
		paragraph(w, "limit", "%s: %s", a.Task, strings.Join(a.Limit, "; "))
	}
	if p := explained(e); p != nil {
		printDevice(w, *p)
	}
	printRisk(w, x.Actions)
	if meaning := x.Precision.Meaning(); meaning != "" {
		paragraph(w, string(x.Precision), "%s", meaning)
	}
	printShares(w, x)
	printSmaller(w, e)
}

// explained is the plan that is explained.
func explained(e *service.Estimation) *disdel.Plan {
	if e.Explain.Plan != nil {
		return e.Explain.Plan
	}
	return e.Plan
}

// printTerms writes the categories of memory, an action a column; those that an action has none of are "-".
func printTerms(w io.Writer, actions []service.ExplainedAction) {
	header := []string{"MEMORY"}
	for _, a := range actions {
		header = append(header, strings.ToUpper(string(a.Task)), "SHARE")
	}
	rows := [][]string{header}
	at := map[string]int{}
	for i, a := range actions {
		for _, t := range a.Terms {
			if _, ok := at[t.Name]; !ok {
				at[t.Name] = len(rows)
				row := []string{t.Name}
				for range actions {
					row = append(row, "-", "-")
				}
				rows = append(rows, row)
			}
			row := rows[at[t.Name]]
			row[1+2*i], row[2+2*i] = t.Bytes.String(), percent(t.Share)
		}
	}
	total := []string{"with margin"}
	for _, a := range actions {
		var sum disdel.Bytes
		for _, t := range a.Terms {
			sum += t.Bytes
		}
		total = append(total, sum.String(), "")
	}
	terminal.Table(w, append(rows, total)...)
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func printRisk(w io.Writer, actions []service.ExplainedAction) {
	for _, a := range actions {
		if a.Task != disdel.TaskTrain {
			continue
		}
		if a.Peak.High == 0 || a.Risk == 0 {
			paragraph(w, "risk", "-: this estimate gives no interval; its margin stands for the risk")
			continue
		}
		paragraph(w, "risk", "%g: a train action's peak is above its estimate with margin in %s actions; "+
			"likely %v, in nine of ten cases %v to %v", a.Risk, oneIn(a.Risk), a.Peak.Likely, a.Peak.Low, a.Peak.High)
	}
}

func oneIn(risk float64) string { return fmt.Sprintf("1 of %.0f", 1/risk) }

func printShares(w io.Writer, x *service.Explanation) {
	if len(x.Layers) == 0 {
		return
	}
	fmt.Fprintln(w)
	rows := [][]string{{"LAYER", "OUTPUT", "PARAMETERS", "BYTES", "ACTIVATIONS", "BYTES", "SHARE"}}
	for _, l := range x.Layers {
		rows = append(rows, []string{
			l.Name, model.Shape(l.Output).Text(), fmt.Sprint(l.Parameters),
			l.ParameterBytes.String(), fmt.Sprint(l.Activations), l.ActivationBytes.String(), percent(l.Share),
		})
	}
	terminal.Table(w, rows...)
	paragraph(w, "note", "parameters' bytes are with gradients and optimiser, activations' those of the batch forwards "+
		"and backwards, with workspace; "+
		"layers that are not alive at the same time share memory, so that their bytes sum up to more than the action holds "+
		"at once")
	var largest []string
	for _, l := range x.Largest {
		largest = append(largest, fmt.Sprintf("%s %v (%s)", l.Name, l.ParameterBytes+l.ActivationBytes, percent(l.Share)))
	}
	paragraph(w, "most", "%s", strings.Join(largest, ", "))
}

func printSmaller(w io.Writer, e *service.Estimation) {
	fmt.Fprintln(w)
	if len(e.Explain.Smaller) == 0 {
		paragraph(w, "less", "the limit is the least that the platform gives")
		return
	}
	var plain, short, some bool
	for _, s := range e.Explain.Smaller {
		label := fmt.Sprintf("to fit %d MB", s.Limit.MB()) + whoseText(s.Whose) + ":"
		fmt.Fprintln(w, label)
		for _, c := range s.Changes {
			fmt.Fprintf(w, "  %s\n      estimate %v, limit %v%s\n", changeText(c), c.Estimate, c.Limit, forecastText(c.Forecast))
			some = true
			sets := strings.Join(c.Set, " ")
			plain = plain || strings.Contains(sets, "training.optimizer=")
			short = short || strings.Contains(sets, "training.precision=")
		}
		if len(s.Changes) == 0 {
			fmt.Fprintf(w, "  no batch, number of workers, optimiser or precision does: %s still takes %d MB\n",
				s.LeastTask, s.Least.MB())
		}
	}
	if some {
		paragraph(w, "note", "each change alone is enough, and was planned again under that limit")
	}
	if plain {
		paragraph(w, "", "plain gradient descent is not %s: find a learning rate that suits it",
			e.Job.Training.Optimizer.Name())
	}
	if short {
		paragraph(w, "", "%s: %s", disdel.PrecisionBF16, disdel.PrecisionBF16.Meaning())
	}
}

func changeText(c scheduler.Change) string {
	if len(c.Set) == 0 {
		return "nothing has to change"
	}
	return setArguments(c.Set)
}

func forecastText(f *disdel.Forecast) string {
	if f == nil {
		return ""
	}
	unit := unitFor(f.Duration.High)
	return fmt.Sprintf(", time %s %s, cost %s GB-s", unit.Text(f.Duration.Likely), unit.Name,
		twoDigits(f.Cost.Likely))
}

// printFit writes what of a job fits the memory that was asked for, and the plan of the largest batch.
func printFit(w io.Writer, f scheduler.Fit, job disdel.Job, name string) {
	fmt.Fprintf(w, "\nat most %d MB an action\n", f.Limit.MB())
	if !f.Fits() {
		paragraph(w, "", "nothing fits: %s takes %d MB even with one row a batch; with the job's %[4]d rows the least is "+
			"%[3]d MB", f.LeastTask, f.Least.MB(), f.LeastGiven.MB(), job.Training.JobBatch())
		return
	}
	points := []struct {
		what string
		p    *scheduler.FitPoint
	}{
		{"batch as given, fewest workers", f.Given},
		{"largest batch, workers as planned", f.SameWorkers},
		{"largest batch, fewest workers for it", f.Largest},
	}
	rows := [][]string{{"WHAT FITS", "BATCH", "WORKERS", "ESTIMATE", "LIMIT"}}
	for _, v := range points {
		row := []string{v.what, "-", "-", "-", "-"}
		if v.p != nil {
			train, _ := v.p.Plan.Action(disdel.TaskTrain)
			row = []string{
				v.what, fmt.Sprint(v.p.BatchSize), fmt.Sprint(v.p.Workers), train.Estimate.Expected().String(),
				train.Limits.Memory.String(),
			}
		}
		rows = append(rows, row)
	}
	terminal.Table(w, rows...)
	if f.Given != nil && len(f.Given.Set) > 0 {
		train, _ := f.Given.Plan.Action(disdel.TaskTrain)
		paragraph(w, "fits by", "%s; a step computes %.2g %% more: %s", f.Given.Plan.SavedBy(), 100*train.Estimate.Extra,
			setArguments(f.Given.Set))
	}
	if f.Given == nil {
		paragraph(w, "note", "the job's batch of %d needs at least %d MB, whatever the number of workers",
			job.Training.JobBatch(), f.LeastGiven.MB())
	}
	fmt.Fprintf(w, "\nlargest batch: %d\n", f.Largest.BatchSize)
	printActions(w, f.Largest.Plan)
	printForecast(w, f.Largest.Plan.Forecast, job.Resources)
	sets := []string{
		fmt.Sprintf("%s=%d", job.Training.BatchField(), f.Largest.BatchSize),
		fmt.Sprintf("distribution.workers=%d", f.Largest.Workers), fmt.Sprintf("resources.maxMemory=%dMB", f.Limit.MB()),
	}
	sets = append(sets, f.Largest.Set...)
	if job.Resources.Memory > 0 {
		sets = append(sets, fmt.Sprintf("resources.memory=%dMB", f.Limit.MB()))
	}
	fmt.Fprintf(w, "next   %s submit %s", terminal.Program(), terminal.Clean(name))
	for _, set := range sets {
		fmt.Fprintf(w, " \\\n         %s", setArguments([]string{set}))
	}
	fmt.Fprintln(w)
}

func whoseText(whose string) string {
	if whose == "" {
		return ""
	}
	return ", " + whose
}
