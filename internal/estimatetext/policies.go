package estimatetext

import (
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/jobtext"
	"github.com/disdel/disdel/internal/terminal"
)

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
		row := []string{t.Policy, jobtext.Seconds(t.Took), fmt.Sprintf("%.4g GB-s", t.CostGBs)}
		if money, ok := price.Money(t.CostGBs); ok {
			row = append(row, fmt.Sprintf("%.3g", money))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f", t.Time), fmt.Sprintf("%.2f", t.Cost), CrewsText(t.Course)))
	}
	terminal.Table(w, rows...)
	paragraph(w, "note", "simulated: all epochs, by the law of this job's forecasts for several numbers of workers; best "+
		"fixed is the number that takes the least time, which nobody knows beforehand")
}

// CrewsText is the numbers of workers of a job in their order: "2 3 6 3".
func CrewsText(course []simulate.WorkerChange) string {
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
