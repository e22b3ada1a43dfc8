package main

import (
	"cmp"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
)

// follower shows a job while it runs: a line a round that stays, and on a terminal a line an action that is rewritten.
type follower struct {
	ui    *ui
	plan  disdel.Plan
	total int // rounds
	shown int // lines that the next picture replaces
	peaks map[string]disdel.Bytes
	last  time.Time
}

func newFollower(u *ui) *follower { return &follower{ui: u, peaks: map[string]disdel.Bytes{}} }

// notice takes what the controller tells; it is called from one goroutine.
func (f *follower) notice(n controller.Notice) {
	switch {
	case n.Planned != nil:
		f.plan, f.total = n.Planned.Plan, n.Planned.Plan.Rounds
		if !f.ui.quiet {
			printPlan(f.ui.err, n.Planned)
		}
	case n.Progress != nil:
		f.progress(n.Progress)
	case n.Round != nil:
		f.erase()
		f.ui.say("%s", f.roundLine(*n.Round))
	case n.Ended != nil && n.Ended.Outcome != disdel.OutcomeSuccess && n.Ended.Outcome != disdel.OutcomeCanceled:
		f.erase()
		f.ui.say("%s ended as %s", n.Ended.Invocation.ID, n.Ended.Outcome)
	}
}

func (f *follower) roundLine(r disdel.Round) string {
	line := fmt.Sprintf("round %*d/%d  train loss %.4f", len(fmt.Sprint(f.total)), r.Round+1, f.total, r.TrainLoss)
	if r.Accuracy != nil {
		line += fmt.Sprintf("  held-out loss %.4f  accuracy %.4f", *r.Loss, *r.Accuracy)
	}
	return line + "  " + seconds(time.Duration(r.Duration))
}

// plainEvery is the time between pictures where lines cannot be rewritten.
const plainEvery = 5 * time.Second

func (f *follower) progress(list []disdel.Progress) {
	if f.ui.quiet || len(list) == 0 {
		return
	}
	if !f.ui.live {
		if now := time.Now(); now.Sub(f.last) < plainEvery {
			return
		}
		f.last = time.Now()
	}
	sort.Slice(list, func(i, j int) bool {
		return list[i].Task > list[j].Task || list[i].Task == list[j].Task && list[i].Member < list[j].Member
	})
	f.erase()
	for _, p := range list {
		fmt.Fprintln(f.ui.err, "  "+f.progressLine(p))
		f.shown++
	}
	if !f.ui.live {
		f.shown = 0
	}
}

func (f *follower) progressLine(p disdel.Progress) string {
	const width = 20
	done := 0
	if p.Batches > 0 {
		done = min(width, p.Batch*width/p.Batches)
	}
	a, _ := f.plan.Action(p.Task)
	line := fmt.Sprintf("%-8s %d  [%s%s]", p.Task, p.Member, strings.Repeat("#", done), strings.Repeat(".", width-done))
	if p.Task == disdel.TaskTrain {
		line += fmt.Sprintf("  epoch %d  loss %.4f", p.Epoch, p.Loss)
	}
	return line + fmt.Sprintf("  memory %d/%d MB", p.Resident.MB(), a.Limits.Memory.MB())
}

// erase takes back the lines of the last picture.
func (f *follower) erase() {
	if f.shown > 0 {
		fmt.Fprintf(f.ui.err, "\x1b[%dA\x1b[J", f.shown)
		f.shown = 0
	}
}

func (f *follower) done() { f.erase() }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func printPlan(w io.Writer, r *disdel.Record) {
	p := r.Plan
	fmt.Fprintf(w, "job    %s (%s)\n", clean(r.Job.Metadata.Name), r.ID)
	network := cmp.Or(r.Job.Model.Name, r.Job.Model.Custom)
	if network == "" {
		network = fmt.Sprintf("%d layers", len(r.Job.Model.Layers))
	}
	fmt.Fprintf(w, "learn  %s on %s: %d rows, %d held out, batch %d, %d epochs, %s\n",
		network, clean(r.Data.Name), r.Data.Train, r.Data.HeldOut, r.Job.Training.BatchSize, r.Job.Training.Epochs, r.Job.Training.Optimizer.Name())
	fmt.Fprintf(w, "plan   %d train actions, %d at once, %d rounds of %d epochs, %s\n", p.Workers, p.Parallel, p.Rounds, p.Epochs, levelsText(p.Levels))
	for _, a := range p.Actions {
		fmt.Fprintf(w, "       %-9s estimate %s, limit %d MB, timeout %s\n", a.Task, a.Estimate.Total, a.Limits.Memory.MB(), a.Limits.Timeout)
	}
}

func levelsText(levels []disdel.Level) string {
	parts := make([]string, len(levels))
	for i, l := range levels {
		parts[i] = fmt.Sprintf("%d at level %d", len(l.Clusters), l.Height)
	}
	return "aggregation " + strings.Join(parts, ", ")
}
