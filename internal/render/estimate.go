package render

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/service"
)

// textWidth is what fits every terminal.
const textWidth = 80

// paragraph writes text behind a label of six columns, broken between words to fit textWidth.
func paragraph(w io.Writer, label, format string, args ...any) {
	const indent = 7
	line := fmt.Sprintf("%-*s", indent-1, label)
	for word := range strings.FieldsSeq(terminal.Clean(fmt.Sprintf(format, args...))) {
		if n := utf8.RuneCountInString(line) + 1 + utf8.RuneCountInString(word); n > textWidth && len(line) > indent {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", indent-1)
		}
		line += " " + word
	}
	fmt.Fprintln(w, line)
}

// Show is what is printed beside the answers.
type Show struct {
	Plan, Layers bool   // the plan itself; every layer's share
	File         string // the job's, for commands
}

// PrintEstimate writes what was asked for, the plan itself first.
func PrintEstimate(w io.Writer, e *service.Estimation, show Show) {
	fmt.Fprintf(w, "job    %s\n", terminal.Clean(e.Job.Metadata.Name))
	switch {
	case e.Plan == nil:
		paragraph(w, "refuse", "this job does not fit: %s", e.Refused.Msg)
	case show.Plan:
		printActions(w, *e.Plan)
		printEstimate(w, e)
	}
	if e.Explain != nil {
		printExplanation(w, e)
	}
	if e.Plan != nil && show.Layers && e.Explain == nil {
		train, _ := e.Plan.Action(disdel.TaskTrain)
		printLayers(w, train.Estimate.Layers)
	}
	if e.Fit != nil {
		printFit(w, *e.Fit, e.Job, show.File)
	}
	if e.WhatIf != nil {
		printWhatIf(w, whatIf{e.WhatIf}, show.File)
	}
	if e.Policies != nil {
		printPolicies(w, e.Policies, e.Job.Resources)
	}
}

// printActions writes the actions of a plan and what each gets.
func printActions(w io.Writer, p disdel.Plan) {
	paragraph(w, "plan", "%d train actions, %d at once, %s, %s", p.Workers, p.Parallel, RoundsText(p),
		LevelsText(p.Levels))
	fmt.Fprintln(w)
	rows := [][]string{{"ACTION", "FIT", "PKG", "DTA", "MOD", "ESTIMATE", "SAF", "LIMIT", "TIMEOUT"}}
	for _, a := range p.Actions {
		v := a.Estimate
		rows = append(rows, []string{
			string(a.Task), v.Training.String(), v.Package.String(), v.Shard.String(), v.Model.String(),
			v.Expected().String(), v.Margin.String(), a.Limits.Memory.String(), a.Limits.Timeout.String(),
		})
	}
	terminal.Table(w, rows...)
	fmt.Fprintln(w)
}

func printEstimate(w io.Writer, e *service.Estimation) {
	p := *e.Plan
	train, _ := p.Action(disdel.TaskTrain)
	t := train.Estimate
	paragraph(w, "fit", "%s parameters with gradients and optimiser, %s activations, %s batch, %s workspace of the engine",
		t.Parameters, t.Activations, t.Misc, t.Workspace)
	paragraph(w, "", "fit + pkg (runtime) + dta (shard) + mod (weights received and sent) = estimate, the likely peak; "+
		"the limit is at least estimate + saf (margin)")
	paragraph(w, "paper", "%s by the paper's Eq. 1-5, its margin with it: fit %s, margin %s",
		e.Paper.Total, e.Paper.Training, e.Paper.Margin)
	for _, why := range p.Reasons {
		paragraph(w, "why", "%s", why)
	}
	printPeak(w, t)
	printDevice(w, p)
	printForecast(w, p.Forecast, e.Job.Resources)
	printScaling(w, e.Scaling, p.Workers)
	paragraph(w, "cost", "at most %.1f GB-s, every action at its limits", p.CostGBs)
}

// printPeak writes the interval of a train action's peak, and what is behind it.
func printPeak(w io.Writer, e disdel.Estimate) {
	peak := e.Peak()
	text := fmt.Sprintf("likely %v, interval -", peak.Likely)
	if peak.High > 0 {
		text = fmt.Sprintf("likely %v, in nine of ten cases %v to %v", peak.Likely, peak.Low, peak.High)
	}
	if e.Ratio > 0 {
		text += fmt.Sprintf("; %.3g of what the plan says, by %d measured peaks", e.Ratio, e.Samples)
	}
	paragraph(w, "peak", "%s (%s)", text, e.Method)
}

// priceText is a cost by use at a price, "" where there is none.
func priceText(gbs disdel.Interval[float64], price disdel.Resources) string {
	likely, ok := price.Money(gbs.Likely)
	if !ok {
		return ""
	}
	low, _ := price.Money(gbs.Low)
	high, _ := price.Money(gbs.High)
	return fmt.Sprintf(": %.3g, %.3g to %.3g at %.3g a GB-s", likely, low, high, price.Price)
}

func printForecast(w io.Writer, f *disdel.Forecast, price disdel.Resources) {
	if f == nil {
		return
	}
	unit := TimeUnit(f.Duration.High)
	paragraph(w, "time", "likely %s %s, in nine of ten cases %s to %s; cost %s GB-s, %s to %s (%s, %d activations)",
		unit.Text(f.Duration.Likely), unit.Name,
		unit.Text(f.Duration.Low), unit.Text(f.Duration.High), Decimal(f.Cost.Likely), Decimal(f.Cost.Low),
		Decimal(f.Cost.High), Basis(f), f.Samples)
	if u := f.Used; u.Likely > 0 {
		paragraph(w, "", "by use %s GB-s, %s to %s%s", Decimal(u.Likely), Decimal(u.Low),
			Decimal(u.High), priceText(u, price))
	}
	if f.Note != "" {
		paragraph(w, "", "%s", f.Note)
	}
	if f.Goal != nil {
		paragraph(w, "goal", "%s", goalText(f.Goal))
	}
	if f.Duration.Low > 0 && f.Duration.High > wideInterval*f.Duration.Low {
		paragraph(w, "", "--probe narrows the interval in a few seconds")
	}
}

// goalText is when a job is expected to come to its goal, in what time and for how much.
func goalText(g *disdel.GoalForecast) string {
	text := g.String()
	if g.Epochs.Likely > 0 {
		unit := TimeUnit(g.Duration.Likely)
		text += fmt.Sprintf(": likely in %s %s, for %s GB-s", unit.Text(g.Duration.Likely), unit.Name,
			Decimal(g.ByUse().Likely))
	}
	if g.Jobs > 0 {
		text += fmt.Sprintf(" (%d of %d earlier jobs came to it)", g.Reached, g.Jobs)
	}
	return text
}

// wideInterval is an interval that says too little to plan by.
const wideInterval = 10

func printLayers(w io.Writer, layers []disdel.LayerEstimate) {
	rows := [][]string{{"LAYER", "OP", "OUTPUT", "PARAMETERS", "MACS", "PARAMETER MEMORY", "ACTIVATION MEMORY"}}
	for _, l := range layers {
		rows = append(rows, []string{
			l.Name, l.Op, model.Shape(l.Output).Text(), fmt.Sprint(l.Parameters), fmt.Sprint(l.MACs),
			l.ParameterBytes.String(), l.ActivationBytes.String(),
		})
	}
	fmt.Fprintln(w)
	terminal.Table(w, rows...)
}
