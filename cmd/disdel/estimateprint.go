package main

import (
	"fmt"
	"io"

	"github.com/disdel/disdel"
)

func printEstimate(w io.Writer, e estimateDocument, perLayer bool) {
	p := e.Plan
	fmt.Fprintf(w, "job    %s\nplan   %d train actions, %d at once, %d rounds of %d epochs, %s\n\n", clean(e.Job.Metadata.Name), p.Workers, p.Parallel, p.Rounds, p.Epochs, levelsText(p.Levels))
	rows := [][]string{{"ACTION", "FIT", "PKG", "DTA", "MOD", "SAF", "ESTIMATE", "LIMIT", "TIMEOUT"}}
	for _, a := range p.Actions {
		v := a.Estimate
		rows = append(rows, []string{string(a.Task), v.Fit.String(), v.Pkg.String(), v.Dta.String(), v.Mod.String(), v.Saf.String(), v.Total.String(), a.Limits.Memory.String(), a.Limits.Timeout.String()})
	}
	table(w, rows...)
	train, _ := p.Action(disdel.TaskTrain)
	t := train.Estimate
	fmt.Fprintf(w, "\nfit    %s parameters with gradients and optimiser, %s activations, %s batch, %s workspace of the engine\n", t.Parameters, t.Activations, t.Misc, t.Workspace)
	fmt.Fprintln(w, "       fit + pkg (runtime) + dta (shard) + mod (weights received and sent) + saf (margin) = estimate")
	fmt.Fprintf(w, "paper  %s by Eq. 1-5 as printed: fit %s, margin %s\n", e.Paper.Total, e.Paper.Fit, e.Paper.Saf)
	for _, why := range p.Reasons {
		fmt.Fprintf(w, "why    %s\n", why)
	}
	fmt.Fprintf(w, "cost   at most %.1f GB-s, every action at its limits\n", p.CostGBs)
	if !perLayer {
		return
	}
	fmt.Fprintln(w)
	rows = [][]string{{"LAYER", "OP", "OUTPUT", "PARAMETERS", "MACS", "PARAMETER MEMORY", "ACTIVATION MEMORY"}}
	for _, l := range t.Layers {
		rows = append(rows, []string{l.Name, l.Op, shapeText(l.Output), fmt.Sprint(l.Parameters), fmt.Sprint(l.MACs), l.ParameterBytes.String(), l.ActivationBytes.String()})
	}
	table(w, rows...)
}
