package render

import (
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/terminal"
)

// listedJobs is how many jobs are listed one by one at most.
const listedJobs = 40

// PrintSimulation is what a simulation came to: each job while they are few, and all of them together.
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
		string(o.ID), o.Tenant, status, fmt.Sprint(o.Workers), Seconds(o.Arrived),
		Seconds(o.Started - o.Arrived), Seconds(o.Ended - o.Started),
		fmt.Sprintf("%d/%d", o.Cold, o.Activations), o.Keep,
	}
}
