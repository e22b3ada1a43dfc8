package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/internal/terminal"
)

// listedJobs is how many jobs are listed one by one at most.
const listedJobs = 40

// PrintSimulation prints the result of a simulation: each job if they are few, and totals.
func PrintSimulation(w io.Writer, r simulate.Result) {
	if len(r.Jobs) <= listedJobs {
		rows := [][]string{{"JOB", "TENANT", "STATUS", "WORKERS", "ARRIVED", "WAITED", "RAN", "COLD", "KEEPS"}}
		for i := range r.Jobs {
			rows = append(rows, simulatedRow(&r.Jobs[i]))
		}
		terminal.Table(w, terminal.Fitted(w, rows, "KEEPS", "COLD", "ARRIVED")...)
		fmt.Fprintln(w)
	}
	spread := func(s simulate.Spread) string {
		return fmt.Sprintf("%s on average, median %s, 95 of 100 within %s, most %s", s.Mean.Text(), s.Median.Text(),
			s.P95.Text(), s.Most.Text())
	}
	rows := [][]string{
		{"jobs", fmt.Sprintf("%d: %d succeeded, %d failed, %d refused, %d wait for ever", len(r.Jobs), r.Succeeded, r.Failed,
			r.Refused, len(r.Stuck))},
		{"makespan", r.Makespan.Text()},
		{"waited", spread(r.Wait)},
		{"ran", spread(r.Run)},
		{"activations", fmt.Sprintf("%d: %.1f %% cold, %d timed out, %d refused for their rate", r.Cloud.Calls,
			100*r.ColdShare, r.Cloud.TimedOut, r.Cloud.Throttled)},
		{"containers", fmt.Sprintf("at most %d at once; work in %.1f %% of the memory", r.Cloud.Most, 100*r.UsedShare)},
		{"cost", fmt.Sprintf("%.1f GB-s", r.CostGBs)},
	}
	terminal.Table(w, rows...)
}

func simulatedRow(o *simulate.Outcome) []string {
	status := o.Status.String()
	switch {
	case o.Refused != nil:
		status = "refused: " + o.Refused.Msg
	case o.Status == disdel.StatusUnknown || o.Status == disdel.StatusRunning:
		status = "waits for ever"
	case o.Failure != nil:
		status += ": " + o.Failure.Msg
	}
	return []string{
		string(o.ID), o.Tenant, status, fmt.Sprint(o.Workers), secondsText(o.Arrived),
		secondsText(o.Started - o.Arrived), secondsText(o.Ended - o.Started),
		fmt.Sprintf("%d/%d", o.Cold, o.Activations), o.Keep,
	}
}

// listedTrials is how many trials are listed one by one at most.
const listedTrials = 60

// PrintLab prints jobs under several policies: each trial if they are few, and totals of each policy.
func PrintLab(w io.Writer, l simulate.Lab) {
	if len(l.Trials) <= listedTrials {
		rows := [][]string{{"JOB", "POLICY", "TIME", "COST", "TIMES BEST", "COSTS BEST", "LOSS", "WORKERS"}}
		for i := range l.Trials {
			rows = append(rows, trialRow(&l.Trials[i]))
		}
		terminal.Table(w, terminal.Fitted(w, rows, "LOSS", "COSTS BEST")...)
		fmt.Fprintln(w)
	}
	rows := [][]string{{"POLICY", "JOBS", "TIMES BEST", "WORST", "COSTS BEST", "WORST", "PERF/$", "EXPECTED WITHIN"}}
	for _, s := range l.Policies {
		expected := "-"
		if s.Forecast > 0 {
			expected = fmt.Sprintf("%.0f %%", 100*s.Forecast)
		}
		ratio := func(v float64) string { return fmt.Sprintf("%.2f", v) }
		if s.Succeeded == 0 {
			ratio = func(float64) string { return "-" }
		}
		rows = append(rows, []string{
			s.Policy, fmt.Sprint(s.Succeeded), ratio(s.Time), ratio(s.WorstTime), ratio(s.Cost), ratio(s.WorstCost),
			ratio(s.Perf), expected,
		})
	}
	terminal.Table(w, rows...)
	printUnpayable(w, l.Trials)
	printRegret(w, l.Regret)
	if l.Run != nil {
		printRun(w, l)
	}
}

// printUnpayable says for how many jobs no fixed number of workers finished, and why. They cannot be compared.
func printUnpayable(w io.Writer, trials []simulate.Trial) {
	failed, jobs, why := 0, 0, ""
	for i := range trials {
		if trials[i].Policy != simulate.Fixed {
			continue
		}
		if jobs++; trials[i].Status != disdel.StatusSucceeded {
			failed++
			why = cmp.Or(why, trials[i].Why)
		}
	}
	if failed > 0 {
		fmt.Fprintf(w, "\n%d of %d jobs end with no fixed number of workers, so that no policy is compared there. "+
			"The first reason: %s\n", failed, jobs, terminal.Clean(cmp.Or(why, "not known")))
	}
}

// printRegret prints what errors of the estimates cost each policy: a line a policy, a column an error.
func printRegret(w io.Writer, all []simulate.Regret) {
	if len(all) == 0 {
		return
	}
	head, rows, at := []string{"TIME WITH ERRORS"}, [][]string{}, map[string]int{}
	for _, r := range all {
		name := fmt.Sprintf("x %g", r.Told)
		if r.Noise > 0 {
			name = fmt.Sprintf("noise %g", r.Noise)
		}
		column := slices.Index(head, name)
		if column < 0 {
			column, head = len(head), append(head, name)
		}
		row, known := at[r.Policy]
		if !known {
			row = len(rows)
			at[r.Policy], rows = row, append(rows, []string{r.Policy})
		}
		for len(rows[row]) < column {
			rows[row] = append(rows[row], "-")
		}
		rows[row] = append(rows[row], fmt.Sprintf("%.2f", r.Time))
	}
	fmt.Fprintln(w)
	terminal.Table(w, append([][]string{head}, rows...)...)
}

// printRun is the same jobs as they really ran.
func printRun(w io.Writer, l simulate.Lab) {
	fmt.Fprintln(w)
	rows := [][]string{{"JOB, AS IT RAN", "POLICY", "TIME", "BY USE", "TIMES STATIC", "COSTS STATIC", "LOSS", "WORKERS"}}
	for i := range l.Run.Trials {
		rows = append(rows, trialRow(&l.Run.Trials[i]))
	}
	terminal.Table(w, terminal.Fitted(w, rows, "LOSS", "COSTS STATIC")...)
	if l.SimError > 0 {
		fmt.Fprintf(w, "\nsimulated times are %.0f %% off in the median\n", l.SimError)
	}
}

// TrialLine is a finished trial in one line.
func TrialLine(t simulate.Trial) string {
	if t.Status != disdel.StatusSucceeded {
		return fmt.Sprintf("%s under %s: %v: %s", t.Job, t.Policy, t.Status, terminal.Clean(t.Why))
	}
	return fmt.Sprintf("%s under %s: %s, %.4g GB-s by use", t.Job, t.Policy, secondsText(t.Took), t.CostGBs)
}

func trialRow(t *simulate.Trial) []string {
	if t.Status != disdel.StatusSucceeded {
		return []string{string(t.Job), t.Policy, "-", "-", "-", "-", "-", t.Why}
	}
	return []string{
		string(t.Job), t.Policy, secondsText(t.Took), fmt.Sprintf("%.4g GB-s", t.CostGBs), fmt.Sprintf("%.2f", t.Time),
		fmt.Sprintf("%.2f", t.Cost), fmt.Sprintf("%.4f", t.Loss), workersOverTime(t.Course),
	}
}

// WriteLabPlot draws the workers of the first job over time under each policy into a new file.
func WriteLabPlot(l simulate.Lab, name string, format plot.Format) error {
	if len(l.Trials) == 0 {
		return &disdel.Error{Kind: disdel.Invalid, Op: "draw chart", Msg: "there are no jobs"}
	}
	job := l.Trials[0].Job
	c := plot.Chart{
		Title: "Workers of " + string(job) + " under each policy",
		X:     plot.Axis{Name: "time (s)"}, Y: plot.Axis{Name: "workers", Whole: true},
	}
	for _, t := range l.Trials {
		if t.Job != job || t.Status != disdel.StatusSucceeded {
			continue
		}
		line := plot.Line{Name: t.Policy}
		at := func(m disdel.Millis, workers int) {
			line.Points = append(line.Points, plot.Point{
				X: plot.Span{Likely: m.Seconds()}, Y: plot.Span{Likely: float64(workers)},
			})
		}
		for i, crew := range t.Course {
			at(crew.At, crew.Workers)
			until := t.Took
			if i+1 < len(t.Course) {
				until = t.Course[i+1].At
			}
			at(until, crew.Workers)
		}
		c.Lines = append(c.Lines, line)
	}
	return writeChart(c, name, format)
}
