package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

// Follower shows a running job: one lasting line a round, and on a terminal one redrawn line an action.
type Follower struct {
	picture
	plan       disdel.Plan
	total      int // rounds
	last       time.Time
	newestLine map[string]string // where lines stay: the newest of each action

	legs    map[int]int                  // of train actions: the newest leg of a worker
	limits  map[disdel.Task]disdel.Bytes // of the newest invocation: failures may have raised them
	eta     *disdel.Forecast             // of what is left; nil: unknown
	trouble trouble
	pruned  []string
	queued  bool // it was said that the job waits
}

// queuedText says what a job waits for.
func queuedText(q service.Queued) string {
	text := "until other jobs have given back what it needs"
	if q.Ahead > 0 {
		text = "behind " + disdel.Counted(q.Ahead, "job")
	}
	if q.Why != "" {
		text += ": " + q.Why
	}
	return text
}

// NewFollower is a follower without events.
func NewFollower(u *terminal.UI) *Follower {
	return &Follower{
		picture: picture{ui: u}, legs: map[int]int{}, limits: map[disdel.Task]disdel.Bytes{}, newestLine: map[string]string{},
	}
}

// Follow shows the next event. It must be called from one goroutine.
func (f *Follower) Follow(e service.Event) {
	if line := f.trouble.notice(e.What); line != "" {
		f.erase()
		f.ui.Say("%s", line)
	}
	switch what := e.What.(type) {
	case service.Noted:
		f.ui.Say("note   %s", what.Text)
	case service.Probed:
		f.ui.Say("probe  %.0f rows a second, ready after %v, peak %v", what.RowsPerSecond, what.StartUp, what.Peak)
	case service.Resumed:
		f.ui.Say("%s", resumedText(e.Job, what))
	case service.Outage, service.Waiting:
		f.erase()
		f.ui.Say("%s", silence(what))
	case service.Planned:
		f.plan, f.total = what.Plan, what.Plan.Rounds
		f.ui.Tell(func(w io.Writer) { PrintPlan(w, &what.Record) })
	case service.Queued:
		f.queued = true
		f.ui.Say("queued %s", queuedText(what))
	case service.Admitted:
		if f.queued {
			f.ui.Say("starts after %s in the queue", seconds(what.Waited))
		}
	case service.Invoked:
		f.limits[what.Task] = what.Limits.Memory
		if what.Task == disdel.TaskTrain {
			f.legs[what.Member] = what.Leg
		}
	case service.Progress:
		f.progress(slices.Clone(what.Actions))
	case service.Forecast:
		f.eta = &what.Forecast
	case service.StageBegan:
		f.total = what.End()
		f.erase()
		f.ui.Say("stage  %s", terminal.Clean(what.Stage.Text()))
	case service.RoundEnded:
		f.erase()
		f.ui.Say("%s%s", RoundLine(what.Round, f.total), f.etaText(what.Round))
	case service.Pruned:
		f.pruned = append(f.pruned, fmt.Sprintf("removed %s (output.keep: %d)", strings.Join(what.Models, ", "), what.Keep))
	}
}

// Notes are messages for after the job's result.
func (f *Follower) Notes() []string { return f.pruned }

// resumedText says where a job continues.
func resumedText(id disdel.JobID, r service.Resumed) string {
	switch {
	case r.Fresh && !r.Halfway:
		return fmt.Sprintf("resume %s from the start: it has no checkpoint", id)
	case r.Round >= r.Rounds:
		return fmt.Sprintf("resume %s: all of it is trained, and what is left is the end", id)
	case r.Halfway:
		return fmt.Sprintf("resume %s in round %d of %d, with what was done of it", id, r.Round+1, r.Rounds)
	default:
		return fmt.Sprintf("resume %s from round %d of %d", id, r.Round+1, r.Rounds)
	}
}

// etaText is when the job is expected to end, "" where nobody knows.
func (f *Follower) etaText(r disdel.Round) string {
	if f.eta == nil || r.Round+1 >= f.total {
		return ""
	}
	if g := f.eta.Goal; g != nil {
		return "  " + g.String()
	}
	return "  eta " + roughly(time.Duration(f.eta.Duration.Likely))
}

// roughly is a duration with as many digits as a forecast deserves.
func roughly(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return seconds(d)
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	default:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
}

// RoundLine is the line of a finished round.
func RoundLine(r disdel.Round, total int) string {
	line := fmt.Sprintf("round %*d/%d  train loss %.4f", len(fmt.Sprint(total)), r.Round+1, total, r.TrainLoss)
	if r.Loss != nil {
		line += fmt.Sprintf("  held-out loss %.4f", *r.Loss)
	}
	if r.Accuracy != nil {
		line += fmt.Sprintf("  accuracy %.4f", *r.Accuracy)
	}
	if s := r.Scores.Text(); s != "" {
		line += "  " + s
	}
	if r.NotEvaluated != "" {
		line += "  not evaluated"
	}
	return line + "  " + seconds(time.Duration(r.Duration))
}

// plainEvery is the time between pictures where lines cannot be rewritten.
const plainEvery = 5 * time.Second

func (f *Follower) progress(list []disdel.Progress) {
	if f.ui.Quiet || len(list) == 0 {
		return
	}
	if !f.ui.Live {
		if now := time.Now(); now.Sub(f.last) < plainEvery {
			return
		}
		f.last = time.Now()
	}
	slices.SortFunc(list, func(a, b disdel.Progress) int {
		return cmp.Or(cmp.Compare(b.Task, a.Task), a.Level-b.Level, a.Member-b.Member)
	})
	f.erase()
	if f.ui.Live {
		f.draw(list)
		return
	}
	for _, p := range list {
		slot, line := fmt.Sprintf("%s %d", p.Task, p.Member), f.progressLine(p)
		if f.newestLine[slot] != line { // who has finished has nothing new to say
			fmt.Fprintln(f.ui.Err, "  "+line)
		}
		f.newestLine[slot] = line
	}
}

// draw shows a line an action, as many as the terminal has room for.
func (f *Follower) draw(list []disdel.Progress) {
	lines := make([]string, len(list))
	for i, p := range list {
		lines[i] = "  " + f.progressLine(p)
	}
	f.show(lines)
}

func (f *Follower) progressLine(p disdel.Progress) string {
	const width = 20
	memory := fmt.Sprintf("  memory %d/%d MB", p.Resident.MB(), f.limits[p.Task].MB())
	if p.Task == disdel.TaskAggregate { // as in the tables; how far it is it does not say
		return fmt.Sprintf("aggregate %d.%d", p.Level, p.Member) + memory
	}
	done := 0
	if p.Batches > 0 {
		done = min(width, p.Batch*width/p.Batches)
	}
	line := fmt.Sprintf("%-8s %d  [%s%s]", p.Task, p.Member, strings.Repeat("#", done), strings.Repeat(".", width-done))
	if p.Task == disdel.TaskTrain {
		line += f.legText(p.Member) + fmt.Sprintf("  epoch %d  loss %s", p.Epoch, p.LossText())
	}
	return line + memory
}

// legText is which leg of its round a worker is in, "" where a round is one activation.
func (f *Follower) legText(worker int) string {
	switch leg := f.legs[worker]; {
	case f.plan.Legs > 1:
		return fmt.Sprintf("  leg %d of about %d", leg+1, max(f.plan.Legs, leg+1))
	case leg > 0:
		return fmt.Sprintf("  leg %d", leg+1)
	default:
		return ""
	}
}

// Done erases the last picture.
func (f *Follower) Done() {
	f.erase()
	if line := f.trouble.rest(); line != "" {
		f.ui.Say("%s", line)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// PrintPlan prints the plan of a job.
func PrintPlan(w io.Writer, r *disdel.Record) {
	p := r.Plan
	fmt.Fprintf(w, "job    %s (%s)\n", terminal.Clean(r.Job.Metadata.Name), r.ID)
	fmt.Fprintf(w, "learn  %s on %s: %d rows, %d held out, batch %s, %s, %s\n",
		terminal.Clean(modelText(&r.Job.Model)), terminal.Clean(r.Data.Name), r.Data.Train, r.Data.HeldOut, p.BatchText(&r.Job),
		disdel.Counted(r.Job.Training.Epochs, "epoch"), r.Job.Training.Optimizer.Name())
	fmt.Fprintf(w, "plan   %s, %d at once, %s, %s\n", disdel.Counted(p.Workers, "train action"), p.Parallel,
		roundsText(p), levelsText(p.Levels))
	if wire := r.Job.Distribution.Aggregation.Wire; wire != "" && wire != disdel.WireFloat32 {
		fmt.Fprintf(w, "       wire      %s: %d x %s a round; float32 would be %s each\n", wire, p.Workers, p.Update(wire),
			p.Update(disdel.WireFloat32))
	}
	for _, a := range p.Actions {
		fmt.Fprintf(w, "       %-9s estimate %s, limit %d MB, timeout %s\n",
			a.Task, a.Estimate.Expected(), a.Limits.Memory.MB(), a.Limits.Timeout)
	}
	if p.Saves() {
		fmt.Fprintf(w, "       memory    saved by %s\n", p.SavedBy())
	}
	if p.Legs > 1 {
		fmt.Fprintf(w, "       a worker's round takes about %d legs: activations one after another, each going on where "+
			"the one before stopped\n", p.Legs)
	}
	if f := p.Forecast; f != nil {
		fmt.Fprintf(w, "expect %s; %s (%s, %s)\n", timeText(f.Duration), costText(f.Cost), basisText(f),
			disdel.Counted(f.Samples, "activation"))
		if f.Note != "" {
			fmt.Fprintf(w, "       %s\n", f.Note)
		}
	}
}

// roundsText says how the epochs are divided.
func roundsText(p disdel.Plan) string {
	if p.Batches > 0 {
		return disdel.Counted(p.Rounds, "round") + fmt.Sprintf(" of %d batches", p.Batches)
	}
	return disdel.Counted(p.Rounds, "round") + " of " + disdel.Counted(p.Epochs, "epoch")
}

// timeText is the time of a forecast: "41 to 58 s, likely 50 s".
func timeText(d disdel.Interval[disdel.Millis]) string {
	u := unitFor(d.High)
	return fmt.Sprintf("%s to %s %s, likely %s %s", u.Text(d.Low), u.Text(d.High), u.Name, u.Text(d.Likely), u.Name)
}

func costText(c disdel.Interval[float64]) string {
	return fmt.Sprintf("%s to %s GB-s, likely %s GB-s", twoDigits(c.Low), twoDigits(c.High), twoDigits(c.Likely))
}

// levelsText says how updates are aggregated.
func levelsText(levels []disdel.Level) string {
	parts := make([]string, len(levels))
	for i, l := range levels {
		parts[i] = fmt.Sprintf("%d at level %d", len(l.Clusters), l.Height)
		switch {
		case l.Shards > 1:
			parts[i] += fmt.Sprintf(" (%d shards)", l.Shards)
		case l.JoinShards:
			parts[i] += " (joins the shards)"
		}
	}
	return "aggregation " + strings.Join(parts, ", ")
}

// picture is lines on a terminal that the next picture replaces.
type picture struct {
	ui    *terminal.UI
	shown []int // widths of the lines
}

// show prints as many lines as the terminal has room for, cut at its width, because a wrapped line could not be erased.
// The last picture must be erased first.
func (p *picture) show(lines []string) {
	columns, rows := p.ui.Size()
	height := len(lines)
	if rows > 0 {
		height = min(height, max(1, rows-2))
	}
	for i, line := range lines[:height] {
		if remaining := len(lines) - height; remaining > 0 && i == height-1 {
			line = fmt.Sprintf("  and %d more", remaining+1)
		}
		line = terminal.Cut(line, columns)
		fmt.Fprintln(p.ui.Err, line)
		p.shown = append(p.shown, utf8.RuneCountInString(line))
	}
}

// erase removes the last picture, also on a terminal that has become narrower.
func (p *picture) erase() {
	rows, columns := 0, 0
	if len(p.shown) > 0 {
		columns, _ = p.ui.Size()
	}
	for _, width := range p.shown {
		rows++
		if columns > 0 && width > columns {
			rows += (width - 1) / columns
		}
	}
	if rows > 0 {
		fmt.Fprintf(p.ui.Err, "\x1b[%dA\x1b[J", rows)
	}
	p.shown = p.shown[:0]
}

// silence says that OpenWhisk, the store, or an action gives no sign; "" for anything else.
func silence(what service.EventData) string {
	switch n := what.(type) {
	case service.Outage:
		name, since := terminal.Clean(n.Name()), n.For.Round(time.Second)
		switch {
		case n.Over:
			return fmt.Sprintf("%s answers again after %s", name, since)
		case n.Until.IsZero():
			return fmt.Sprintf("%s does not answer (%s) since %s; the job waits for it", name, terminal.Clean(n.Why), since)
		}
		return fmt.Sprintf("%s does not answer (%s) since %s; waiting until %s", name, terminal.Clean(n.Why), since,
			n.Until.Local().Format(time.TimeOnly))
	case service.Waiting:
		return waitingText(n)
	case service.Throttled:
		return throttledText(n)
	default:
		return ""
	}
}

// waitingText is honest about what nobody can know: OpenWhisk shows neither its queue nor what it starts.
func waitingText(w service.Waiting) string {
	if w.Stopped {
		return stoppedText(w)
	}
	text := fmt.Sprintf("%s: no sign for %s; behind other actions in OpenWhisk's queue, or still starting: OpenWhisk "+
		"gives no record of either; it tells that an image dies at start only after the action's timeout",
		waitingFor(w.Invocations), w.For.Round(time.Second))
	if w.Pool > 0 && w.Found > 0 {
		text += fmt.Sprintf("; doctor found a container pool of %v on %s, which may have shrunk", w.Found,
			w.FoundAt.Local().Format(time.DateOnly))
	}
	if w.Pool > 0 {
		text += fmt.Sprintf("; with less than %d MB in its container pool they would wait for ever (--pool-memory SIZE "+
			"tells disdel how much there is)", w.Pool.MB())
	}
	return text
}

// throttledText is for actions that were not sent, since OpenWhisk would refuse them.
func throttledText(t service.Throttled) string {
	if t.Crowded {
		return crowdedText(t)
	}
	quota := "the namespace's invocations of this minute are used up"
	if t.PerMinute > 0 {
		quota = fmt.Sprintf("the namespace's %d invocations of this minute are used up", t.PerMinute)
	}
	return fmt.Sprintf("%s: %s; waiting until %s", waitingFor(t.Invocations), quota,
		t.Until.Local().Format(time.TimeOnly))
}

// crowdedText is for actions that wait until others end.
func crowdedText(t service.Throttled) string {
	quota := "the namespace's concurrent invocations are all in use"
	if t.Concurrent > 0 {
		quota = fmt.Sprintf("all %d concurrent invocations of the namespace are in use", t.Concurrent)
	}
	return fmt.Sprintf("%s: not sent for %s; %s; waiting until one ends", waitingFor(t.Invocations),
		t.For.Round(time.Second), quota)
}

// stoppedText is for actions that had sent heartbeats.
func stoppedText(w service.Waiting) string {
	who, since := waitingFor(w.Invocations), w.For.Round(time.Second)
	switch {
	case w.Over:
		return fmt.Sprintf("%s: heartbeats again after %s", who, since)
	case w.All > 0 && w.Done >= w.All:
		return fmt.Sprintf("%s has done all batches and has not ended for %s; the store may be slow, or the container "+
			"frozen or gone", who, since)
	case w.All > 0:
		who += fmt.Sprintf(" stopped at %d %% of the work", 100*w.Done/w.All)
	}
	return fmt.Sprintf("%s: no heartbeat for %s; the container may be frozen, killed or without processor time, and "+
		"OpenWhisk has no record of its end yet", who, since)
}

// waitingFor names invocations by task: "train 0, 1, 2 and 5 more".
func waitingFor(list []disdel.Invocation) string {
	const maximum = 4
	var tasks []disdel.Task
	members := map[disdel.Task][]string{}
	for _, i := range list {
		if !slices.Contains(tasks, i.Task) {
			tasks = append(tasks, i.Task)
		}
		members[i.Task] = append(members[i.Task], fmt.Sprint(i.Member))
	}
	var parts []string
	for _, t := range tasks {
		m := members[t]
		text := string(t) + " " + strings.Join(m[:min(maximum, len(m))], ", ")
		if more := len(m) - maximum; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
