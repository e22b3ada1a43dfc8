package labtext

import (
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/jobtext"
	"github.com/disdel/disdel/internal/terminal"
)

// listedTrials is how many trials are told of one by one at most.
const listedTrials = 60

// Print is what jobs came to under several policies: each trial while they are few, and all of a policy together.
func Print(w io.Writer, l simulate.Lab) {
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
}

func trialRow(t *simulate.Trial) []string {
	if t.Status != disdel.StatusSucceeded {
		return []string{string(t.Job), t.Policy, "-", "-", "-", "-", "-", t.Why}
	}
	return []string{
		string(t.Job), t.Policy, jobtext.Seconds(t.Took), fmt.Sprintf("%.4g GB-s", t.CostGBs), fmt.Sprintf("%.2f", t.Time),
		fmt.Sprintf("%.2f", t.Cost), fmt.Sprintf("%.4f", t.Loss), crews(t.Course),
	}
}

// crews is the numbers of workers in their order: "2 3 6 3".
func crews(course []simulate.Crew) string {
	const most = 12
	text := ""
	for i, c := range course {
		if i == most {
			return text + " ..."
		}
		if i > 0 {
			text += " "
		}
		text += fmt.Sprint(c.Workers)
	}
	return text
}
