package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// done is the number of finished rounds. A killed controller may not have saved the last round that its checkpoint has.
func (r *Report) done() int {
	n := 0
	if len(r.Rounds) > 0 {
		n = r.Rounds[len(r.Rounds)-1].Round + 1
	}
	if c := r.record.Checkpoint; c != nil {
		n = max(n, c.Round)
	}
	return n
}

// headline is status, time, cost and accuracy in one line.
func (r *Report) headline() string {
	parts := []string{r.statusText()}
	if r.CostGBs > 0 {
		parts = append(parts, r.costText())
	}
	if r.Accuracy != nil {
		parts = append(parts, r.accuracyText())
	}
	if s := r.record.Scores.Text(); s != "" {
		parts = append(parts, s)
	}
	if r.Status == disdel.StatusRunning || r.Status == disdel.StatusFailed || r.Status == disdel.StatusCanceled {
		parts = append(parts, fmt.Sprintf("%d of %s done", r.done(), disdel.Counted(r.record.Plan.Rounds, "round")))
	}
	return strings.Join(parts, ", ")
}

// costText is the cost by Eq. 6, and the cost of evaluations.
func (r *Report) costText() string {
	if r.EvaluationGBs > 0 {
		return fmt.Sprintf("%.2f GB-s and %.2f for evaluations", r.CostGBs, r.EvaluationGBs)
	}
	return fmt.Sprintf("%.2f GB-s", r.CostGBs)
}

func (r *Report) statusText() string {
	word := map[disdel.Status]string{
		disdel.StatusSucceeded: "in", disdel.StatusFailed: "after", disdel.StatusCanceled: "after",
		disdel.StatusRunning: "for",
	}[r.Status]
	if r.Duration == 0 || word == "" {
		return r.Status.String()
	}
	return r.Status.String() + " " + word + " " + span(r.Duration) + withVerdict(r.record.Verdict())
}

// withVerdict is a verdict as it follows a status.
func withVerdict(verdict string) string {
	if verdict == "" {
		return ""
	}
	return ", " + verdict
}

func (r *Report) accuracyText() string {
	text := fmt.Sprintf("accuracy %.4f", *r.Accuracy)
	if b := r.record.Best; b != nil {
		text += fmt.Sprintf(", kept from round %d", b.Round+1)
	}
	if r.Best != nil && r.Best.Accuracy > *r.Accuracy {
		text += fmt.Sprintf(" (best %.4f, round %d)", r.Best.Accuracy, r.Best.Round+1)
	}
	return text
}

// learns says which network was trained on which data.
func (r *Report) learns() string {
	j := r.Job
	network := cmp.Or(j.Model.NetworkName(), disdel.Counted(len(j.Model.Layers), "layer"))
	text := fmt.Sprintf("%s on %s: %d rows, %d held out, batch %s, %s, %s", network, cmp.Or(r.Data.Name, j.Data.Source),
		r.Data.Train, r.Data.HeldOut,
		r.record.Plan.BatchText(&j), disdel.Counted(j.Training.Epochs, "epoch"),
		cmp.Or(j.Training.Optimizer.Name(), "no optimiser"))
	if !j.Training.Precision.Plain() {
		text += ", " + string(j.Training.Precision)
	}
	if p := r.record.Plan; p.Saves() {
		text += ", " + p.SavedBy()
	}
	return text
}

// planText says how the work was distributed.
func (r *Report) planText() string {
	p := r.record.Plan
	text := disdel.Counted(p.Workers, "worker")
	if n := len(p.Stages); n > 0 {
		text += fmt.Sprintf(" (%s in %d stages)", disdel.Counted(p.Replicas(), "network"), n)
	}
	if p.Parallel > 0 && p.Parallel < p.Workers {
		text += fmt.Sprintf(" (%d at once)", p.Parallel)
	}
	text += ", " + disdel.Counted(p.Rounds, "round")
	switch {
	case p.Batches > 0:
		text += fmt.Sprintf(" of %d batches", p.Batches)
	case p.Epochs > 0:
		text += " of " + disdel.Counted(p.Epochs, "epoch")
	}
	if wire := r.Job.Distribution.Aggregation.Wire; wire != "" && wire != disdel.WireFloat32 {
		text += fmt.Sprintf(", wire %s: %d x %v a round", wire, p.Workers, p.Update(wire))
	}
	if p.Legs > 1 {
		text += fmt.Sprintf(", a worker's round in %d legs", p.Legs)
	}
	if p.TimeoutSource != "" {
		text += ", timeouts from " + string(p.TimeoutSource)
	}
	if c := r.record.Continued; c != nil {
		text += "; " + c.Text(r.Job.Training.Epochs)
	}
	return text
}

// notes are the problems of a job and their cost, one sentence each.
func (t Troubles) notes() []string {
	var out []string
	if t.Attempts > 0 {
		out = append(out, fmt.Sprintf("%s failed, which took %s and %.2f GB-s", disdel.Counted(t.Attempts, "attempt"),
			span(t.Duration), t.Cost))
	}
	for _, m := range t.Missing {
		out = append(out, fmt.Sprintf("round %d: the mean was taken without %s", m.Round+1, workersText(m.Missing)))
	}
	if t.Duplicates > 0 {
		out = append(out, disdel.Counted(t.Duplicates, "result")+" came twice or too late, and changed nothing")
	}
	if n := len(t.Outages); n > 0 {
		var away time.Duration
		for _, o := range t.Outages {
			away += max(0, o.Until.Sub(o.Since))
		}
		text := fmt.Sprintf("OpenWhisk did not answer %s", disdel.Counted(n, "time"))
		if away > 0 {
			text += ", for " + span(disdel.Millis(away)) + " in all"
		}
		out = append(out, text+" ("+t.Outages[n-1].Why+")")
	}
	if t.Resumes > 0 {
		out = append(out, "the job was taken up again "+disdel.Counted(t.Resumes, "time"))
	}
	if c := t.Checkpoint; c != nil {
		out = append(out, fmt.Sprintf("newest checkpoint: %v before round %d, at %s", c.Size, c.Round+1, c.Path))
	}
	return out
}

func workersText(list []int) string {
	parts := make([]string, len(list))
	for i, w := range list {
		parts[i] = fmt.Sprint(w)
	}
	if len(list) == 1 {
		return "worker " + parts[0]
	}
	return "workers " + strings.Join(parts, ", ")
}

// adjusted says what was changed during the job, and why.
func (r *Report) adjusted() []string {
	var out []string
	for _, a := range r.Troubles.Adjustments {
		who := a.Invocation
		if failed := newest(r.record,
			func(v *disdel.Activation) bool { return v.Invocation.ID == a.Invocation }); failed != nil {
			who = "the " + place(&failed.Invocation)
		}
		out = append(out, fmt.Sprintf("%s %s -> %s after %s of %s: %s", a.Field, a.From, a.To, words(a.Cause.String()), who,
			a.Why))
	}
	return out
}

// words splits a name in camel case: "outOfMemory" is "out of memory".
func words(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte(' ')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// beatText is a heartbeat as text.
func beatText(b *disdel.Beat) string {
	text := fmt.Sprintf("%v resident, peak %v", b.Resident, b.Peak)
	if b.Epoch > 0 {
		text += fmt.Sprintf(", epoch %d", b.Epoch)
	}
	if b.Batches > 0 {
		text += fmt.Sprintf(", batch %d of %d", b.Batch, b.Batches)
	}
	if b.Loss != 0 {
		text += fmt.Sprintf(", loss %.4g", b.Loss)
	}
	return text
}

// facts is the evidence of a failure, strongest first.
func (f *Failure) facts() []string {
	var out []string
	if f.Invocation != "" {
		out = append(out, fmt.Sprintf("activation %s, attempt %d, ended as %s after %s",
			cmp.Or(string(f.Activation), "unknown"), max(1, f.Attempt),
			words(f.Outcome.String()), span(f.Duration)))
	}
	out = append(out, f.Evidence...)
	if f.Limit > 0 && f.Peak > 0 {
		out = append(out, fmt.Sprintf("memory: peak %v of a limit of %v (%.0f %%); %s", f.Peak, f.Limit,
			100*float64(f.Peak)/float64(f.Limit), f.estimateText()))
	} else if f.Limit > 0 {
		out = append(out, fmt.Sprintf("memory: limit %v, peak not known; %s", f.Limit, f.estimateText()))
	}
	if f.Timeout > 0 {
		out = append(out, fmt.Sprintf("time: %s of a timeout of %s", span(f.Duration), span(f.Timeout)))
	}
	if f.LastBeat != nil {
		out = append(out, fmt.Sprintf("last heartbeat %s before the end: %s", span(f.BeatAge), beatText(f.LastBeat)))
	} else if f.Invocation != "" {
		out = append(out, "no heartbeat was seen")
	}
	return out
}

func (f *Failure) estimateText() string {
	if f.Estimate == 0 {
		return "no estimate"
	}
	return fmt.Sprintf("estimated %v", f.Estimate)
}

// forecastText compares a forecast with the result.
func (c *Compared) forecastText(actual disdel.Millis, cost float64) []string {
	d, g := c.Duration, c.Cost
	time := fmt.Sprintf("time %s to %s, likely %s", span(d.Low), span(d.High), span(d.Likely))
	if c.DurationErrorPct != nil {
		time += fmt.Sprintf("; it took %s: %s", span(actual),
			againstForecast(actual.Seconds(), d.Low.Seconds(), d.Likely.Seconds(), d.High.Seconds(), "longer", "shorter"))
	}
	spent := fmt.Sprintf("cost %.2f to %.2f GB-s, likely %.2f", g.Low, g.High, g.Likely)
	if c.CostErrorPct != nil {
		spent += fmt.Sprintf("; it was %.2f: %s", cost, againstForecast(cost, g.Low, g.Likely, g.High, "more", "less"))
	}
	if u := c.Used; u.Likely > 0 {
		spent += fmt.Sprintf("; by use %.2f to %.2f, likely %.2f", u.Low, u.High, u.Likely)
	}
	out := []string{time, spent, fmt.Sprintf("from %s, %s", c.Source, disdel.Counted(c.Samples, "measured activation"))}
	if c.Goal != nil {
		out = append(out, c.Goal.String())
	}
	return out
}

// againstForecast relates a result to a forecast: "1.8 times the likely one, within the interval".
func againstForecast(actual, low, likely, high float64, more, less string) string {
	where := "within the interval"
	switch {
	case actual > high:
		where = "above the interval"
	case actual < low:
		where = "below the interval"
	}
	switch ratio := actual / likely; {
	case ratio >= 1.995:
		return fmt.Sprintf("%.1f times the likely, %s", ratio, where)
	case ratio >= 1.005:
		return fmt.Sprintf("%.0f %% %s than likely, %s", 100*(ratio-1), more, where)
	case ratio > 0.995:
		return "as likely"
	default:
		return fmt.Sprintf("%.0f %% %s than likely, %s", 100*(1-ratio), less, where)
	}
}

// signed is an error in percent with its sign, "-" if unknown.
func signed(pct *float64) string {
	if pct == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", *pct)
}

// checksums identify the data and the model.
func (r *Report) checksums() []string {
	var out []string
	if r.Data.Checksum != "" {
		out = append(out, fmt.Sprintf("data set %s, checksum %s", r.Data.Name, r.Data.Checksum))
	}
	if m := r.record.Model; m != nil {
		out = append(out, fmt.Sprintf("model %s:v%d, %v, checksum %s", m.Name, m.Version, m.Size, m.Checksum))
	}
	return out
}
