package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/terminal"
)

// listedTrials is how many trials are listed one by one at most.
const listedTrials = 60

// PrintLab is what jobs came to under several policies: each trial while they are few, and all of a policy together.
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

// printUnpayable says for how many jobs no fixed number of workers ended, and why: nothing can be compared with those.
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

// printRegret is what errors in what policies are told cost them: a line a policy, a column an error.
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

// TrialLine is a trial that has run, in a line.
func TrialLine(t simulate.Trial) string {
	if t.Status != disdel.StatusSucceeded {
		return fmt.Sprintf("%s under %s: %v: %s", t.Job, t.Policy, t.Status, terminal.Clean(t.Why))
	}
	return fmt.Sprintf("%s under %s: %s, %.4g GB-s by use", t.Job, t.Policy, Seconds(t.Took), t.CostGBs)
}

func trialRow(t *simulate.Trial) []string {
	if t.Status != disdel.StatusSucceeded {
		return []string{string(t.Job), t.Policy, "-", "-", "-", "-", "-", t.Why}
	}
	return []string{
		string(t.Job), t.Policy, Seconds(t.Took), fmt.Sprintf("%.4g GB-s", t.CostGBs), fmt.Sprintf("%.2f", t.Time),
		fmt.Sprintf("%.2f", t.Cost), fmt.Sprintf("%.4f", t.Loss), CrewsText(t.Course),
	}
}
