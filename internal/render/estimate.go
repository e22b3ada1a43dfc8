package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
)

// textWidth fits every terminal.
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

// EstimateSections chooses what PrintEstimate prints besides the answers.
type EstimateSections struct {
	Plan, Layers bool   // the plan itself; every layer's share
	File         string // the job's, for commands
}

// PrintEstimate prints the answers of an estimate, the plan first.
func PrintEstimate(w io.Writer, e *service.Estimation, show EstimateSections) {
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
	paragraph(w, "plan", "%d train actions, %d at once, %s, %s", p.Workers, p.Parallel, roundsText(p),
		levelsText(p.Levels))
	fmt.Fprintln(w)
	rows := [][]string{{"ACTION", "TRAINING", "RUNTIME", "SHARD", "WEIGHTS", "ESTIMATE", "MARGIN", "LIMIT", "TIMEOUT"}}
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
	paragraph(w, "uses", "training: %s parameters with gradients and optimiser, %s activations, %s batch, "+
		"%s workspace of the engine",
		t.Parameters, t.Activations, t.Misc, t.Workspace)
	paragraph(w, "", "estimate, the likely peak, is the sum of training, runtime, shard and weights (received and sent); "+
		"the limit is at least estimate and margin")
	paragraph(w, "paper", "%s by the paper's Eq. 1-5, its margin with it: training %s, margin %s",
		e.Paper.Total, e.Paper.Training, e.Paper.Margin)
	for _, why := range p.Reasons {
		paragraph(w, "why", "%s", why)
	}
	printPeak(w, t)
	printProgram(w, e)
	printDevice(w, p)
	printForecast(w, p.Forecast, e.Job.Resources)
	printScaling(w, e.Scaling, p.Workers)
	paragraph(w, "cost", "at most %.1f GB-s, every action at its limits", p.CostGBs)
}

// memoryKnown says how the memory of a Python program became known.
var memoryKnown = map[string]string{
	disdel.MemoryTraced:  "traced: disdel followed the operations of a step, without computing them",
	disdel.MemoryProbed:  "probed: disdel measured steps of small batches in a process of their own",
	disdel.MemoryLearned: "learned: earlier jobs of this program measured it",
	disdel.MemoryGiven: "given: resources.memory says it, since disdel could neither trace nor probe the program; " +
		"later jobs of the program learn from the peaks of this one",
}

// printProgram writes what is known of a Python program, and what is not.
func printProgram(w io.Writer, e *service.Estimation) {
	m := e.Job.Model.Python
	if e.Job.Model.Translated() {
		t := m.Translation
		paragraph(w, "python", "disdel's engine trains the network of %s: the losses of %s differ by at most %.1g from "+
			"PyTorch's, and a step of %d rows is %.1f times as fast on this machine, one thread each", m.Name(), t.Compared(),
			t.Difference, t.Rows, t.Speedup)
	}
	if m == nil || m.Network == nil || m.Network.Python == nil {
		return
	}
	p := m.Network.Python
	paragraph(w, "python", "%s is a %s, run by %s%s", m.Name(), p.Form, cmp.Or(p.Interpreter, "python3"), versionsText(p))
	basis := p.Basis
	if train, _ := e.Plan.Action(disdel.TaskTrain); train.Estimate.Samples > 0 {
		basis = disdel.MemoryLearned
	}
	paragraph(w, "", "memory %s", memoryKnown[basis])
	paragraph(w, "", "a process with the program's packages takes %v before it computes; the platform gives an "+
		"action at most %v", p.Floor, e.Plan.Platform.MaxMemory)
	for _, place := range p.Guesses {
		paragraph(w, "guess", "%s", place)
	}
	for _, text := range p.Warnings {
		paragraph(w, "warn", "%s", text)
	}
}

// versionsText is the versions of a program's packages, behind a colon.
func versionsText(p *disdel.PythonNetwork) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(p.Versions)) {
		all = append(all, name+" "+p.Versions[name])
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}

// printPeak writes the interval of a train action's peak, and what is behind it.
func printPeak(w io.Writer, e disdel.Estimate) {
	if e.Method == disdel.MemoryGiven {
		paragraph(w, "peak", "unknown: the limit is the %v of resources.memory (%s)", e.Total, e.Method)
		return
	}
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
	unit := unitFor(f.Duration.High)
	paragraph(w, "time", "likely %s %s, in nine of ten cases %s to %s; cost %s GB-s, %s to %s (%s, %d activations)",
		unit.Text(f.Duration.Likely), unit.Name,
		unit.Text(f.Duration.Low), unit.Text(f.Duration.High), twoDigits(f.Cost.Likely), twoDigits(f.Cost.Low),
		twoDigits(f.Cost.High), basisText(f), f.Samples)
	if u := f.Used; u.Likely > 0 {
		paragraph(w, "", "by use %s GB-s, %s to %s%s", twoDigits(u.Likely), twoDigits(u.Low),
			twoDigits(u.High), priceText(u, price))
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
		unit := unitFor(g.Duration.Likely)
		text += fmt.Sprintf(": likely in %s %s, for %s GB-s", unit.Text(g.Duration.Likely), unit.Name,
			twoDigits(g.MeteredCost().Likely))
	}
	if g.Jobs > 0 {
		text += fmt.Sprintf(" (%d of %d earlier jobs came to it)", g.Reached, g.Jobs)
	}
	return text
}

// wideInterval is the ratio at which an interval is too wide to plan by.
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

// printDevice writes what each action takes of a GPU's memory, by category, and how many fit one.
func printDevice(w io.Writer, p disdel.Plan) {
	label := "gpu"
	for _, a := range p.Actions {
		if a.Limits.Device == 0 {
			continue
		}
		var parts []string
		for _, part := range a.Estimate.DeviceParts {
			parts = append(parts, fmt.Sprintf("%s %v", part.Name, part.Bytes))
		}
		text := fmt.Sprintf("%s: %v of a GPU's memory", a.Task, a.Estimate.Device)
		if len(parts) > 0 {
			text += fmt.Sprintf(" (%s)", strings.Join(parts, ", "))
		}
		if deviceMemory := p.Platform.MaxDevice; deviceMemory > 0 {
			text += fmt.Sprintf("; limit %v, which counts as %v of %d x %v", a.Limits.Device,
				scheduler.DeviceShare(deviceMemory, a.Limits.Device), p.Platform.Accelerators(), deviceMemory)
		}
		paragraph(w, label, "%s", text)
		label = ""
	}
}

// printPolicies writes what a job would take under each policy.
func printPolicies(w io.Writer, l *simulate.Lab, price disdel.Resources) {
	fmt.Fprintln(w)
	rows := [][]string{{"POLICY", "TIME", "BY USE", "TIMES BEST", "COSTS BEST", "WORKERS"}}
	if price.Price > 0 {
		rows[0] = append(rows[0][:3:3], append([]string{"MONEY"}, rows[0][3:]...)...)
	}
	for i := range l.Trials {
		t := &l.Trials[i]
		if t.Status != disdel.StatusSucceeded {
			rows = append(rows, []string{t.Policy, t.Why})
			continue
		}
		row := []string{t.Policy, secondsText(t.Took), fmt.Sprintf("%.4g GB-s", t.CostGBs)}
		if money, ok := price.Money(t.CostGBs); ok {
			row = append(row, fmt.Sprintf("%.3g", money))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f", t.Time), fmt.Sprintf("%.2f", t.Cost), workersOverTime(t.Course)))
	}
	terminal.Table(w, rows...)
	paragraph(w, "note", "simulated: all epochs, by the law of this job's forecasts for several numbers of workers; best "+
		"fixed is the number that takes the least time, which nobody knows beforehand")
}

// workersOverTime is the numbers of workers of a job in their order: "2 3 6 3".
func workersOverTime(course []simulate.WorkerChange) string {
	const maximum = 12
	text := ""
	for i, c := range course {
		if i == maximum {
			return text + " ..."
		}
		if i > 0 {
			text += " "
		}
		text += fmt.Sprint(c.Workers)
	}
	return text
}

// printScaling writes which number of workers pays, beside what the plan's number and the largest measured one take.
func printScaling(w io.Writer, s *scheduler.Scaling, planned int) {
	if s == nil {
		return
	}
	verb := "pay"
	if s.Workers == 1 {
		verb = "pays"
	}
	paragraph(w, "pays", "%s %s: times of single epochs vary by %.0f %%", disdel.Counted(s.Workers, "worker"), verb,
		100*s.Deviation)
	show := []int{s.Workers, planned}
	for _, e := range slices.Backward(s.Epochs) {
		if e.Measured && e.Workers != s.Workers {
			show = append(show, e.Workers)
			break
		}
	}
	slices.Sort(show)
	for _, workers := range slices.Compact(show) {
		if i := slices.IndexFunc(s.Epochs, func(e scheduler.ScaledEpoch) bool { return e.Workers == workers }); i >= 0 {
			paragraph(w, "", "%s", scaledText(s.Epochs[i]))
		}
	}
}

// scaledText is what an epoch takes with a number of workers, and what it is made of.
func scaledText(e scheduler.ScaledEpoch) string {
	basis := "measured"
	if !e.Measured {
		basis = "from the law of the measured times"
	}
	unit := unitFor(e.Duration)
	return fmt.Sprintf("%s: %s %s an epoch, of which %s %s is exchange and %s %s is fixed (%s)",
		disdel.Counted(e.Workers, "worker"), unit.Text(e.Duration), unit.Name, unit.Text(e.Exchange), unit.Name,
		unit.Text(e.Fixed), unit.Name, basis)
}
