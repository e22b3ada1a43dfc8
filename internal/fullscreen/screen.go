package fullscreen

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// Screen is what is shown: a list of jobs, or one job of it.
type Screen struct {
	jobs   []disdel.Record // newest first
	failed string          // why they are not up to date; "": they are
	at     int             // the job of the list, as filtered, that is marked
	filter string
	typing bool // the filter
	job    *Job // that is looked at; nil: the list is
	alone  bool // there is no list behind the job

	complete func(string) string // gives commands in news of a job the flags of the place; nil: it leaves them

	asked  disdel.Status // what is asked about before it is done; unknown: nothing is
	answer string        // what came of the last wish
}

// Wish is what a key asks for beyond the screen itself.
type Wish struct {
	Kind WishKind
	Job  disdel.JobID
	To   disdel.Status // of Ask
}

// WishKind is what a Wish asks for.
type WishKind int

// The kinds of wishes.
const (
	Nothing WishKind = iota
	Quit
	Open  // look at a job
	Close // look at it no longer
	Ask   // have it become paused or canceled
)

// The keys that are no characters.
const (
	keyUp, keyDown, keyEnter, keyEscape, keyBack = "up", "down", "enter", "escape", "backspace"
	keyInterrupt                                 = "interrupt"
)

// NewScreen begins with the list.
func NewScreen() *Screen { return &Screen{} }

// Listed is the newest jobs, and why they could not be had.
func (s *Screen) Listed(jobs []disdel.Record, err error) {
	if s.failed = ""; err != nil {
		s.failed = err.Error()
		return
	}
	marked, was := s.marked()
	s.jobs = jobs
	if was {
		for i, r := range s.shown() {
			if r.ID == marked {
				s.at = i
			}
		}
	}
	s.at = max(0, min(s.at, len(s.shown())-1))
}

// Opened looks at a job; alone: there is no list to go back to.
func (s *Screen) Opened(id disdel.JobID, alone bool) { s.job, s.alone = NewJob(id), alone }

// Answered is what came of a wish.
func (s *Screen) Answered(text string) { s.answer = text }

// shown is the jobs that have every word of the filter.
func (s *Screen) shown() (out []disdel.Record) {
	for _, r := range s.jobs {
		cells := []any{r.ID, " ", r.Job.Metadata.Name, " ", r.Status, " ", r.Job.Model.NetworkName(), " ", r.Data.Name}
		text := strings.ToLower(fmt.Sprint(cells...))
		matches := true
		for word := range strings.FieldsSeq(strings.ToLower(s.filter)) {
			matches = matches && strings.Contains(text, word)
		}
		if matches {
			out = append(out, r)
		}
	}
	return out
}

// marked is the job that keys are about.
func (s *Screen) marked() (disdel.JobID, bool) {
	if s.job != nil {
		return s.job.ID, true
	}
	if list := s.shown(); s.at < len(list) {
		return list[s.at].ID, true
	}
	return "", false
}

// Key does what a key means.
func (s *Screen) Key(key string) Wish {
	switch {
	case key == keyInterrupt:
		return Wish{Kind: Quit}
	case s.typing:
		s.typed(key)
		return Wish{}
	case s.asked != disdel.StatusUnknown:
		to := s.asked
		s.asked = disdel.StatusUnknown
		if id, ok := s.marked(); ok && key == "y" {
			return Wish{Ask, id, to}
		}
		return Wish{}
	}
	s.answer = ""
	id, marked := s.marked()
	switch key {
	case "q", keyEscape:
		return s.leave()
	case "c", "p":
		if marked {
			s.asked = map[string]disdel.Status{"c": disdel.StatusCanceled, "p": disdel.StatusPaused}[key]
		}
	}
	if s.job != nil {
		s.job.key(key)
		return Wish{}
	}
	switch key {
	case keyUp, "k":
		s.at = max(0, s.at-1)
	case keyDown, "j":
		s.at = max(0, min(s.at+1, len(s.shown())-1))
	case "/":
		s.typing = true
	case keyEnter, "d", "l":
		if marked {
			s.Opened(id, false)
			s.job.logs = key == "l"
			return Wish{Kind: Open, Job: id}
		}
	}
	return Wish{}
}

// leave goes from a job to the list, and from the list away.
func (s *Screen) leave() Wish {
	if s.job == nil || s.alone {
		return Wish{Kind: Quit}
	}
	id := s.job.ID
	s.job = nil
	return Wish{Kind: Close, Job: id}
}

// typed is a key while a filter is typed.
func (s *Screen) typed(key string) {
	switch key {
	case keyEnter:
		s.typing = false
	case keyEscape:
		s.typing, s.filter = false, ""
	case keyBack:
		if text := []rune(s.filter); len(text) > 0 {
			s.filter = string(text[:len(text)-1])
		}
	default:
		if utf8.RuneCountInString(key) == 1 {
			s.filter += key
		}
	}
	s.at = 0
}

// Lines is the screen on so many columns and rows.
func (s *Screen) Lines(columns, rows int, now time.Time) []string {
	body := max(0, rows-1)
	var lines []string
	if s.job != nil {
		lines = s.job.lines(columns, body, now)
		for i := range lines {
			if s.complete != nil && !s.job.logs {
				lines[i] = s.complete(lines[i])
			}
		}
	} else {
		lines = s.list(body, now)
	}
	for len(lines) < body {
		lines = append(lines, "")
	}
	lines = append(lines[:body], s.foot())
	for i := range lines {
		lines[i] = terminal.Cut(terminal.OneLine(lines[i]), columns)
	}
	return lines
}

// foot is the last line: a question, what came of an answer, or the keys.
func (s *Screen) foot() string {
	switch {
	case s.asked == disdel.StatusCanceled:
		return "cancel this job? y: yes, any other key: no"
	case s.asked == disdel.StatusPaused:
		return "pause this job until it is resumed? y: yes, any other key: no"
	case s.typing:
		return "/" + s.filter + "_   enter: keep the filter, escape: show all"
	case s.answer != "":
		return s.answer
	case s.failed != "":
		return "not up to date: " + s.failed
	case s.job != nil:
		return "l: log or picture   c: cancel   p: pause   q: back"
	default:
		return "up, down: choose   enter: look at it   /: filter   c: cancel   p: pause   q: quit"
	}
}

// list is the table of jobs, of which the marked one stays on the screen.
func (s *Screen) list(rows int, now time.Time) []string {
	list := s.shown()
	results := make([]string, len(list))
	for i := range list {
		results[i] = "-"
		if kept := list[i].ModelRounds(); len(kept) > 0 {
			results[i] = kept[len(kept)-1].Figures().Text()
		}
	}
	metric, results := disdel.MetricColumn(results)
	head := fmt.Sprintf("  %-24s %-10s %-16s %-12s %8s %7s %8s %8s", "JOB", "STATUS", "MODEL", "DATA", "TIME", "ROUNDS",
		"LOSS", strings.ToUpper(metric))
	out := []string{fmt.Sprintf("disdel  %s", disdel.Counted(len(list), "job")), head}
	if s.filter != "" {
		out[0] += "  with " + s.filter
	}
	height := max(1, rows-len(out))
	first := max(0, min(s.at-height/2, len(list)-height))
	for i := first; i < min(len(list), first+height); i++ {
		mark := "  "
		if i == s.at {
			mark = "> "
		}
		out = append(out, mark+jobRow(&list[i], results[i], now))
	}
	return out
}

// jobRow is a job in the list, with the result of its model.
func jobRow(r *disdel.Record, result string, now time.Time) string {
	took := time.Duration(r.Phases.Total)
	if r.Status.Unfinished() && !r.Created.IsZero() {
		took = now.Sub(r.Created)
	}
	loss := "-"
	if kept := r.ModelRounds(); len(kept) > 0 {
		loss = figure(kept[len(kept)-1].Loss)
	}
	name, network := terminal.OneLine(r.Job.Metadata.Name), terminal.OneLine(r.Job.Model.NetworkName())
	return strings.TrimRight(fmt.Sprintf("%-24s %-10s %-16s %-12s %8s %7s %8s %8s", terminal.Cut(name, 24),
		r.Status, terminal.Cut(network, 16), terminal.Cut(terminal.OneLine(r.Data.Name), 12),
		took.Round(time.Second), fmt.Sprintf("%d/%d", len(r.Rounds), r.Plan.Rounds), loss, result)+"  "+r.Verdict(), " ")
}

// statusText is the status of a job, and what is wrong with its result.
func statusText(r *disdel.Record) string {
	if verdict := r.Verdict(); verdict != "" {
		return r.Status.String() + ", " + verdict
	}
	return r.Status.String()
}

func figure(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *v)
}
