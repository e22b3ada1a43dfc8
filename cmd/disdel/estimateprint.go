package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// textWidth is what fits every terminal.
const textWidth = 80

// paragraph writes text behind a label of six columns, broken between words to fit textWidth.
func paragraph(w io.Writer, label, format string, args ...any) {
	const indent = 7
	line := fmt.Sprintf("%-*s", indent-1, label)
	for word := range strings.FieldsSeq(clean(fmt.Sprintf(format, args...))) {
		if n := utf8.RuneCountInString(line) + 1 + utf8.RuneCountInString(word); n > textWidth && len(line) > indent {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", indent-1)
		}
		line += " " + word
	}
	fmt.Fprintln(w, line)
}

// printAnswers writes what was asked for, the plan itself first.
func printAnswers(w io.Writer, e estimateDocument, name string, q questions) {
	fmt.Fprintf(w, "job    %s\n", clean(e.Job.Metadata.Name))
	switch {
	case e.Plan == nil:
		paragraph(w, "refuse", "this job does not fit: %s", e.Refused.Msg)
	case q.plain():
		printActions(w, *e.Plan)
		printEstimate(w, e)
	}
	if e.Explain != nil {
		printExplanation(w, e)
	}
	if e.Plan != nil && q.layers && e.Explain == nil {
		train, _ := e.Plan.Action(disdel.TaskTrain)
		printLayers(w, train.Estimate.Layers)
	}
	if e.Fit != nil {
		printFit(w, *e.Fit, e.Job, name)
	}
	if e.WhatIf != nil {
		printWhatIf(w, *e.WhatIf, name)
	}
}

// printActions writes the actions of a plan and what each gets.
func printActions(w io.Writer, p disdel.Plan) {
	paragraph(w, "plan", "%d train actions, %d at once, %s, %s", p.Workers, p.Parallel, roundsText(p), levelsText(p.Levels))
	fmt.Fprintln(w)
	rows := [][]string{{"ACTION", "FIT", "PKG", "DTA", "MOD", "SAF", "ESTIMATE", "LIMIT", "TIMEOUT"}}
	for _, a := range p.Actions {
		v := a.Estimate
		rows = append(rows, []string{string(a.Task), v.Fit.String(), v.Pkg.String(), v.Dta.String(), v.Mod.String(), v.Saf.String(), v.Total.String(), a.Limits.Memory.String(), a.Limits.Timeout.String()})
	}
	table(w, rows...)
	fmt.Fprintln(w)
}

func printEstimate(w io.Writer, e estimateDocument) {
	p := *e.Plan
	train, _ := p.Action(disdel.TaskTrain)
	t := train.Estimate
	paragraph(w, "fit", "%s parameters with gradients and optimiser, %s activations, %s batch, %s workspace of the engine", t.Parameters, t.Activations, t.Misc, t.Workspace)
	paragraph(w, "", "fit + pkg (runtime) + dta (shard) + mod (weights received and sent) + saf (margin) = estimate")
	paragraph(w, "paper", "%s by the paper's Eq. 1-5: fit %s, margin %s", e.Paper.Total, e.Paper.Fit, e.Paper.Saf)
	for _, why := range p.Reasons {
		paragraph(w, "why", "%s", why)
	}
	printPeak(w, t)
	printForecast(w, p.Forecast)
	paragraph(w, "cost", "at most %.1f GB-s, every action at its limits", p.CostGBs)
}

// printPeak writes the interval of a train action's peak, and what is behind it.
func printPeak(w io.Writer, e disdel.Estimate) {
	peak := scheduler.Peak(e)
	text := fmt.Sprintf("likely %v, interval -", peak.Likely)
	if peak.High > 0 {
		text = fmt.Sprintf("likely %v, in nine of ten cases %v to %v", peak.Likely, peak.Low, peak.High)
	}
	if e.Ratio > 0 {
		text += fmt.Sprintf("; %.3g of what the plan says, by %d measured peaks", e.Ratio, e.Samples)
	}
	paragraph(w, "peak", "%s (%s)", text, e.Method)
}

func printForecast(w io.Writer, f *disdel.Forecast) {
	if f == nil {
		return
	}
	unit := timeUnit(f.Duration.High)
	paragraph(w, "time", "likely %s %s, in nine of ten cases %s to %s; cost %s GB-s, %s to %s (%s, %d activations)", unit.text(f.Duration.Likely), unit.name,
		unit.text(f.Duration.Low), unit.text(f.Duration.High), decimal(f.Cost.Likely), decimal(f.Cost.Low), decimal(f.Cost.High), basis(f), f.Samples)
	if f.Note != "" {
		paragraph(w, "", "%s", f.Note)
	}
	if f.Duration.Low > 0 && f.Duration.High > wideInterval*f.Duration.Low {
		paragraph(w, "", "--probe narrows the interval in a few seconds")
	}
}

// wideInterval is an interval that says too little to plan by.
const wideInterval = 10

// basis says what a forecast rests on: "history", or where no job of just this shape ran, "extrapolated from similar jobs".
func basis(f *disdel.Forecast) string {
	if f.Jobs > 0 && !f.Measured {
		return "extrapolated from " + f.Source
	}
	return f.Source
}

func printLayers(w io.Writer, layers []disdel.LayerEstimate) {
	rows := [][]string{{"LAYER", "OP", "OUTPUT", "PARAMETERS", "MACS", "PARAMETER MEMORY", "ACTIVATION MEMORY"}}
	for _, l := range layers {
		rows = append(rows, []string{l.Name, l.Op, shapeText(l.Output), fmt.Sprint(l.Parameters), fmt.Sprint(l.MACs), l.ParameterBytes.String(), l.ActivationBytes.String()})
	}
	fmt.Fprintln(w)
	table(w, rows...)
}
