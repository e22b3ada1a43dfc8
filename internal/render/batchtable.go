package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/batch"
)

// BatchTable shows a batch while it runs: on a terminal one table that is rewritten, elsewhere a line whenever a job
// becomes something else.
type BatchTable struct {
	picture
	last time.Time
	said map[int]string // by job: the newest line
}

// NewBatchTable is one that has seen nothing.
func NewBatchTable(u *terminal.UI) *BatchTable {
	return &BatchTable{picture: picture{ui: u}, said: map[int]string{}}
}

// redrawEvery is the time between two pictures: nobody reads faster.
const redrawEvery = 100 * time.Millisecond

// Follow takes what the batch is now.
func (t *BatchTable) Follow(v *batch.View) {
	switch {
	case t.ui.Quiet:
	case !t.ui.Live:
		t.say(v)
	case time.Since(t.last) >= redrawEvery:
		t.last = time.Now()
		t.erase()
		t.show(t.lines(v))
	}
}

// Done takes the last picture back.
func (t *BatchTable) Done() { t.erase() }

// say writes the lines of jobs that have become something else.
func (t *BatchTable) say(v *batch.View) {
	for i := range v.Rows {
		r := &v.Rows[i]
		line := becameText(r, v.Now.At)
		if state := r.Status.String() + r.Behind; line != "" && t.said[i] != state {
			t.said[i] = state
			t.ui.Say("%s", line)
		}
	}
}

// becameText is the line of a job that has become what it is, "" for what is not worth one.
func becameText(r *batch.Row, now disdel.Millis) string {
	name := r.Name + prefixed(" ", choicesText(r))
	switch {
	case r.Ended == 0 && r.Behind != "":
		return "" // it is about to end
	case r.Status == disdel.StatusQueued:
		return fmt.Sprintf("%s  queued as %s", name, r.Job)
	case r.Status == disdel.StatusAdmitted:
		return fmt.Sprintf("%s  starts after %s in the queue", name, seconds(time.Duration(r.Waited(now))))
	case r.Ended == 0:
		return ""
	}
	text := fmt.Sprintf("%s  %s after %s", name, batchStatus(r), seconds(time.Duration(r.Ran(now))))
	if p, ok := r.Result(); ok {
		text += fmt.Sprintf("  %s  train loss %.4f", terminal.Counted(p.Epochs, "epoch"), p.TrainLoss)
		if p.Accuracy != nil {
			text += fmt.Sprintf("  held-out loss %s  accuracy %s", optional(p.Loss), optional(p.Accuracy))
		}
	}
	return text + prefixed("  ", whyText(r))
}

// lines is the table with a line for all jobs together. Where the terminal is too low for all jobs, those that run are
// in it first.
func (t *BatchTable) lines(v *batch.View) []string {
	columns, height := t.ui.Size()
	rows := slices.Clone(v.Rows)
	if height > 0 && len(rows) > height-4 {
		slices.SortStableFunc(rows, func(a, b batch.Row) int { return standing(&a) - standing(&b) })
	}
	cells := [][]string{append(append([]string{"JOB"}, choiceNames(rows)...), "STATUS", "ROUND", "LOSS", "ACCURACY",
		"WAITED", "TIME", "POOL")}
	for i := range rows {
		r := &rows[i]
		p, ok := r.Result()
		room := "-"
		if r.Started > 0 && r.Ended == 0 {
			room = r.Room.String()
		}
		cells = append(cells, append(append([]string{r.Name}, choiceValues(rows, r)...), batchStatus(r), roundText(r),
			Decimals(p.TrainLoss, ok), optional(p.Accuracy), seconds(time.Duration(r.Waited(v.Now.At))),
			seconds(time.Duration(r.Ran(v.Now.At))), room))
	}
	page := &terminal.Page{Buffer: &bytes.Buffer{}, Columns: columns}
	terminal.Table(page, terminal.Fitted(page, cells, "WAITED", "POOL", "LOSS")...)
	out := strings.Split(strings.TrimRight(page.String(), "\n"), "\n")
	all := poolText(v)
	if height > 2 && len(out) > height-3 { // the last line is of all jobs
		left := len(out) - (height - 4)
		out = append(out[:height-4], fmt.Sprintf("and %d more", left))
	}
	return append(out, all)
}

// standing puts jobs that run first, then those that wait, then those that have ended.
func standing(r *batch.Row) int {
	switch {
	case r.Ended > 0:
		return 2
	case r.Started > 0:
		return 0
	default:
		return 1
	}
}

// poolText is the line of all jobs together.
func poolText(v *batch.View) string {
	ended := 0
	for i := range v.Rows {
		if v.Rows[i].Ended > 0 {
			ended++
		}
	}
	text := fmt.Sprintf("%s: %d of %d have ended, %d run, %d wait; reserved %v", seconds(time.Duration(v.Now.At)), ended,
		len(v.Rows), v.Now.Running, v.Now.Waiting, v.Now.Reserved)
	if v.Pool > 0 {
		text += fmt.Sprintf(" of %v", v.Pool)
	}
	return text + fmt.Sprintf(", resident %v", v.Now.Resident)
}

// batchStatus is what a job is, in few words.
func batchStatus(r *batch.Row) string {
	switch {
	case r.Refused:
		return "refused"
	case r.Behind != "":
		return "stopped"
	case r.Status == disdel.StatusUnknown:
		return "-"
	case r.Status == disdel.StatusQueued && r.Ahead > 0:
		return fmt.Sprintf("queued behind %d", r.Ahead)
	default:
		return r.Status.String()
	}
}

// whyText is why a job did not come to its end, "" where it did.
func whyText(r *batch.Row) string {
	switch {
	case r.Behind != "":
		return r.Behind
	case r.Status == disdel.StatusFailed && r.Failure != nil:
		return r.Failure.Error()
	default:
		return ""
	}
}

func roundText(r *batch.Row) string {
	if r.Of == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", r.Rounds, r.Of)
}

func optional(v *float64) string {
	if v == nil {
		return "-"
	}
	return Decimals(*v, true)
}

// choicePaths is every field that a matrix gave to some of the jobs, in the order of the jobs.
func choicePaths(rows []batch.Row) (out []string) {
	for i := range rows {
		for _, c := range rows[i].Choices {
			if !slices.Contains(out, c.Path) {
				out = append(out, c.Path)
			}
		}
	}
	return out
}

// choiceNames is the last names of these fields, where they tell them apart.
func choiceNames(rows []batch.Row) []string {
	out := choicePaths(rows)
	seen := map[string]int{}
	for _, path := range out {
		seen[lastName(path)]++
	}
	for i, path := range out {
		if seen[lastName(path)] == 1 {
			out[i] = lastName(path)
		}
	}
	return out
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// choiceValues is a job's values of these fields.
func choiceValues(rows []batch.Row, r *batch.Row) []string {
	out := choicePaths(rows)
	for i, path := range out {
		out[i] = "-"
		for _, c := range r.Choices {
			if c.Path == path {
				out[i] = c.Value
			}
		}
	}
	return out
}

// choicesText is what a matrix gave a job: "(batchSize 32, epochs 3)".
func choicesText(r *batch.Row) string {
	parts := make([]string, len(r.Choices))
	for i, c := range r.Choices {
		parts[i] = lastName(c.Path) + " " + c.Value
	}
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
