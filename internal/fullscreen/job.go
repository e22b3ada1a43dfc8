package fullscreen

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service"
)

// mostLog is how many lines of a job's log are kept for the screen.
const mostLog = 1000

// Job is one job on the screen, as its events tell of it.
type Job struct {
	ID     disdel.JobID
	rec    disdel.Record
	total  int // rounds
	ahead  *disdel.Forecast
	work   []disdel.Progress
	limits map[disdel.Task]disdel.Bytes
	news   string // what is to be known of it now
	log    []string
	follow *render.LogFollower
	logs   bool // the log is shown and not the picture
	back   int  // lines of the log that were scrolled back
}

// NewJob is a job of which nothing is known yet.
func NewJob(id disdel.JobID) *Job {
	return &Job{ID: id, limits: map[disdel.Task]disdel.Bytes{}, follow: render.NewLogFollower(render.LogFilter{})}
}

// Happened takes what happened next.
func (j *Job) Happened(e service.Event) {
	switch what := e.What.(type) {
	case service.Planned:
		j.rec, j.total = what.Record, what.Plan.Rounds
	case service.Finished:
		j.rec, j.total, j.work, j.ahead, j.news = what.Record, max(j.total, what.Plan.Rounds), nil, nil, ""
	case service.RoundEnded:
		if !slices.ContainsFunc(j.rec.Rounds, func(r disdel.Round) bool { return r.Round == what.Round.Round }) {
			j.rec.Rounds = append(slices.Clip(j.rec.Rounds), what.Round)
		}
		j.rec.Status, j.news = disdel.StatusRunning, ""
	case service.StageBegan:
		j.total = what.End()
	case service.Forecast:
		j.ahead = &what.Forecast
	case service.Progress:
		j.work = slices.Clone(what.Actions)
		slices.SortFunc(j.work, func(a, b disdel.Progress) int {
			return cmp.Or(cmp.Compare(b.Task, a.Task), a.Level-b.Level, a.Member-b.Member)
		})
	case service.Invoked:
		j.limits[what.Task] = what.Limits.Memory
	case service.Queued, service.Outage, service.Waiting, service.Throttled, service.Adjusted,
		service.Noted, service.Admitted:
		j.news = e.What.String()
	}
	for _, l := range j.follow.Follow(e) {
		j.log = append(j.log, l.String())
	}
	if n := len(j.log); n > 2*mostLog {
		j.log = slices.Clone(j.log[n-mostLog:])
	}
}

// key is a key while the job is looked at.
func (j *Job) key(key string) {
	switch key {
	case "l":
		j.logs, j.back = !j.logs, 0
	case "d":
		j.logs = false
	case keyUp, "k":
		j.back = min(j.back+1, max(0, len(j.log)-1))
	case keyDown, "j":
		j.back = max(0, j.back-1)
	}
}

// lines is the job on so many columns and rows.
func (j *Job) lines(columns, rows int, now time.Time) []string {
	out := j.head(now)
	if j.logs {
		last := max(0, len(j.log)-j.back)
		first := max(0, last-max(1, rows-len(out)))
		return append(out, j.log[first:last]...)
	}
	out = append(out, j.curves(columns)...)
	out = append(out, j.actions()...)
	if height := rows - len(out) - 2; height > 0 && len(j.rec.Rounds) > 0 {
		out = append(out, "")
		for _, r := range j.rec.Rounds[max(0, len(j.rec.Rounds)-height):] {
			out = append(out, render.RoundLine(r, j.total))
		}
	}
	return out
}

// head says what job it is and how far.
func (j *Job) head(now time.Time) []string {
	const width = 20
	r := &j.rec
	if r.ID == "" {
		return []string{string(j.ID), "", ""}
	}
	took := time.Duration(r.Phases.Total)
	if r.Status.Unfinished() && !r.Created.IsZero() {
		took = now.Sub(r.Created)
	}
	done := 0
	if j.total > 0 {
		done = min(width, len(r.Rounds)*width/j.total)
	}
	line := fmt.Sprintf("round %d/%d [%s%s]  %v", len(r.Rounds), j.total, strings.Repeat("#", done),
		strings.Repeat(".", width-done), took.Round(time.Second))
	if j.ahead != nil && r.Status.Unfinished() {
		line += fmt.Sprintf("  about %v left", time.Duration(j.ahead.Duration.Likely).Round(time.Second))
	}
	if r.CostGBs > 0 {
		line += fmt.Sprintf("  %.2f GB-s", r.CostGBs)
	}
	return []string{
		fmt.Sprintf("%s  %s  %s  %s on %s, %s", r.Job.Metadata.Name, j.ID, statusText(r),
			cmp.Or(r.Job.Model.NetworkName(), "own layers"), r.Data.Name, disdel.Counted(r.Plan.Workers, "worker")),
		line, j.message(),
	}
}

// message is what is to be known of the job now: why it failed, or what it waits for.
func (j *Job) message() string {
	if j.rec.Failure != nil {
		return j.rec.Failure.Error()
	}
	return j.news
}

// curves are the job's figures by round, a line each.
func (j *Job) curves(columns int) (out []string) {
	for _, c := range []struct {
		name  string
		value func(*disdel.Round) *float64
	}{
		{"train loss", func(r *disdel.Round) *float64 { return &r.TrainLoss }},
		{"loss", func(r *disdel.Round) *float64 { return r.Loss }},
		{"accuracy", func(r *disdel.Round) *float64 { return r.Accuracy }},
		{"RMSE", func(r *disdel.Round) *float64 {
			m, _ := disdel.FindMetric(disdel.MetricRMSE)
			return m.Value(r.Figures())
		}},
		{"F1", func(r *disdel.Round) *float64 { return r.F1 }},
		{"perplexity", func(r *disdel.Round) *float64 {
			m, _ := disdel.FindMetric(disdel.MetricPerplexity)
			return m.Value(r.Figures())
		}},
		{"top-5", func(r *disdel.Round) *float64 { return r.Top5 }},
	} {
		var values []float64
		for i := range j.rec.Rounds {
			if v := c.value(&j.rec.Rounds[i]); v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) {
				values = append(values, *v)
			}
		}
		if len(values) > 0 {
			out = append(out, fmt.Sprintf("%-10s %8.4f  %s  %.4f to %.4f", c.name, values[len(values)-1],
				spark(values, max(10, min(60, columns-46))), slices.Min(values), slices.Max(values)))
		}
	}
	return out
}

// levels are the heights of a curve on a line.
var levels = []rune("▁▂▃▄▅▆▇█")

// spark is a curve of at most so many characters: each is the mean of a stretch of it.
func spark(values []float64, width int) string {
	low, high := slices.Min(values), slices.Max(values)
	n := min(width, len(values))
	out := make([]rune, n)
	for i := range out {
		part := values[i*len(values)/n : (i+1)*len(values)/n]
		mean := 0.0
		for _, v := range part {
			mean += v / float64(len(part))
		}
		at := 0
		if high > low {
			at = int((mean - low) / (high - low) * float64(len(levels)))
		}
		out[i] = levels[max(0, min(at, len(levels)-1))]
	}
	return string(out)
}

// actions are those at work, a line each.
func (j *Job) actions() (out []string) {
	const width = 20
	for _, p := range j.work {
		slot, done := disdel.Slot{Task: p.Task, Level: p.Level, Member: p.Member}, 0
		if p.Batches > 0 {
			done = min(width, p.Batch*width/p.Batches)
		}
		out = append(out, fmt.Sprintf("%-13s [%s%s]  epoch %d  loss %s  memory %d/%d MB", slot.Name(),
			strings.Repeat("#", done), strings.Repeat(".", width-done), p.Epoch, p.LossText(), p.Resident.MB(),
			j.limits[p.Task].MB()))
	}
	return out
}
