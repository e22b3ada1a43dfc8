package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/batch"
)

// PrintBatch prints the result of a batch: each job, the best first, then the totals.
func PrintBatch(w io.Writer, s *batch.Summary) {
	terminal.Table(w, terminal.Fitted(w, batchRows(s), "COLD", "MODEL", "PEAK", "WAITED", "LOSS", "GB-S", "EPOCHS")...)
	fmt.Fprintln(w)
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if why := whyText(r); why != "" {
			fmt.Fprintf(w, "%s: %s\n", r.Name, terminal.OneLine(why))
			if r.Failure != nil && r.Failure.Hint != "" && r.Behind == "" {
				fmt.Fprintf(w, "  %s\n", terminal.OneLine(r.Failure.Hint))
			}
		}
	}
	rows := batchTotals(s)
	for _, t := range s.Tenants {
		if len(s.Tenants) > 1 || t.Name != "" {
			rows = append(rows, []string{"tenant " + cmp.Or(t.Name, "-"), tenantText(&t)})
		}
	}
	terminal.Table(w, rows...)
}

// batchRows is the table of the jobs.
func batchRows(s *batch.Summary) [][]string {
	out := [][]string{append(append([]string{"JOB"}, choiceNames(s.Jobs)...), "STATUS", "ACCURACY", "LOSS", "EPOCHS",
		"WAITED", "TIME", "PEAK", "COLD", "GB-S", "MODEL", "ID")}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		p, _ := r.Result()
		out = append(out, append(append([]string{r.Name}, choiceValues(s.Jobs, r)...), batchStatus(r), optional(p.Accuracy),
			optional(p.Loss), fmt.Sprint(p.Epochs), Seconds(r.Waited(r.Ended)), Seconds(r.Ran(r.Ended)), known(r.Peak),
			fmt.Sprintf("%d/%d", r.Cold, r.Activations), fmt.Sprintf("%.2f", r.CostGBs+r.Evaluations), cmp.Or(r.Model, "-"),
			cmp.Or(string(r.Job), "-")))
	}
	return out
}

// batchTotals is what all jobs came to together, a line each.
func batchTotals(s *batch.Summary) [][]string {
	rows := [][]string{{"jobs", countsText(len(s.Jobs), &s.Counts)}}
	if best, ok := bestOf(s); ok {
		rows = append(rows, []string{"best", best})
	}
	return append(rows,
		[]string{"makespan", s.Makespan.Text()},
		[]string{"on average", fmt.Sprintf("waited %s, ran %s", s.Waited.Text(), s.Ran.Text())},
		[]string{"activations", fmt.Sprintf("%d: %.1f %% cold", s.Activations, 100*s.ColdShare())},
		[]string{"pool", poolOver(&s.Pool)},
		[]string{"cost", fmt.Sprintf("%.2f GB-s, and evaluations %.2f GB-s", s.CostGBs, s.Evaluations)})
}

// bestOf is the job that is the best by what the batch is compared by, false where none succeeded.
func bestOf(s *batch.Summary) (string, bool) {
	if s.Succeeded == 0 {
		return "", false
	}
	r := &s.Jobs[0]
	p, ok := r.Result()
	if !ok {
		return "", false
	}
	text := r.Name + prefixed(" ", choicesText(r))
	switch {
	case p.Accuracy != nil && s.By == batch.ByAccuracy:
		text += ": accuracy " + optional(p.Accuracy)
	case p.Loss != nil:
		text += ": held-out loss " + optional(p.Loss)
	default:
		text += fmt.Sprintf(": train loss %.4f", p.TrainLoss)
	}
	return text + prefixed(", ", r.Model), true
}

func countsText(all int, c *batch.Counts) string {
	var parts []string
	for _, n := range []struct {
		n    int
		what string
	}{{c.Succeeded, "succeeded"}, {c.Behind, "stopped early"}, {c.Failed, "failed"}, {c.Canceled, "canceled"}} {
		if n.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	return fmt.Sprintf("%d: %s", all, strings.Join(parts, ", "))
}

// poolOver says what a batch had of the pool.
func poolOver(p *batch.Pool) string {
	text := fmt.Sprintf("reserved %v at most", p.MostReserved)
	if p.Bytes > 0 {
		text += fmt.Sprintf(" of %v", p.Bytes)
	}
	text += fmt.Sprintf(", resident %v; over time %.2f and %.2f GB-s", p.MostResident, p.ReservedGBs, p.ResidentGBs)
	return text
}

func tenantText(t *batch.Tenant) string {
	return fmt.Sprintf("%s; waited %s on average; %.2f GB-s, and evaluations %.2f GB-s", countsText(t.Jobs, &t.Counts),
		t.Waited.Text(), t.CostGBs, t.Evaluations)
}

// started is the jobs of a summary that were in the queue, in the order in which they left it.
func started(s *batch.Summary) []batch.Row {
	out := slices.DeleteFunc(slices.Clone(s.Jobs), func(r batch.Row) bool { return r.Ended == 0 || r.Job == "" })
	slices.SortStableFunc(out, func(a, b batch.Row) int {
		return cmp.Or(cmp.Compare(begun(&a), begun(&b)), cmp.Compare(a.Submitted, b.Submitted))
	})
	return out
}

// begun is when a job began to run, or ended without.
func begun(r *batch.Row) disdel.Millis { return cmp.Or(r.Started, r.Ended) }
