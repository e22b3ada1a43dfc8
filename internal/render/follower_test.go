package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

// screen is a terminal of some columns that understands what a follower writes: lines, and taking rows back.
type screen struct {
	columns int
	rows    []string
}

func (s *screen) Write(data []byte) (int, error) {
	text := string(data)
	if up, rest, ok := strings.Cut(text, "A\x1b[J"); ok {
		var n int
		fmt.Sscanf(up, "\x1b[%d", &n)
		s.rows = s.rows[:max(0, len(s.rows)-n)]
		text = rest
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		for utf8.RuneCountInString(line) > s.columns {
			s.rows, line = append(s.rows, string([]rune(line)[:s.columns])), string([]rune(line)[s.columns:])
		}
		s.rows = append(s.rows, line)
	}
	return len(data), nil
}

func progressOf(workers, batch int) service.Event {
	var list []disdel.Progress
	for i := range workers {
		list = append(list, disdel.Progress{
			Task: disdel.TaskTrain, Member: i, Epoch: 1, Batch: batch, Batches: 100,
			Loss: 0.1234, Resident: 40 * disdel.MB,
		})
	}
	return service.Event{What: service.Progress{Actions: list}}
}

// However narrow or low the terminal is, progress takes its own lines back and leaves none behind.
func TestProgressLeavesNoStaleLines(t *testing.T) {
	for _, columns := range []int{20, 40, 60, 80, 200} {
		s := &screen{columns: columns}
		u := terminal.New(nil, nil, s)
		u.Live, u.Size = true, func() (int, int) { return columns, 10 }
		f := NewFollower(u)
		for batch := range 5 {
			f.Follow(progressOf(12, batch))
			if len(s.rows) > 9 {
				t.Errorf("%d columns: %d rows of 10", columns, len(s.rows))
			}
		}
		f.Done()
		if len(s.rows) > 0 {
			t.Errorf("%d columns: left behind:\n%s", columns, strings.Join(s.rows, "\n"))
		}
	}
}

// A terminal that is made narrower while a job runs has wrapped the lines that are taken back.
func TestProgressCountsTheRowsOfANarrowerTerminal(t *testing.T) {
	var out bytes.Buffer
	u := terminal.New(nil, nil, &out)
	columns := 200
	u.Live, u.Size = true, func() (int, int) { return columns, 50 }
	f := NewFollower(u)
	f.Follow(progressOf(2, 1))
	width := f.shown[0]
	columns = width/2 + 1
	out.Reset()
	f.erase()
	if got := out.String(); got != "\x1b[4A\x1b[J" {
		t.Errorf("%q", got)
	}
}

// Without a terminal an action that has nothing new to say is not repeated.
func TestFinishedWorkersAreNotRepeated(t *testing.T) {
	var out bytes.Buffer
	f := NewFollower(terminal.New(nil, nil, &out))
	for range 3 {
		f.last = time.Time{}
		f.Follow(progressOf(2, 100))
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}
