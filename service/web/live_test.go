package web

import (
	"bytes"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/service"
)

// told is a browser's connection that notes when which event came.
type told struct {
	http.ResponseWriter
	began time.Time
	kinds []string
	at    []time.Duration
}

func (c *told) Write(line []byte) (int, error) {
	kind, _, _ := bytes.Cut(bytes.TrimPrefix(line, []byte("event: ")), []byte("\n"))
	c.kinds, c.at = append(c.kinds, string(kind)), append(c.at, time.Since(c.began))
	return len(line), nil
}

func (c *told) Flush() {}

// What is small is told a little later, together with what is not if that comes meanwhile; the rest is told at once.
// Progress is told at once and does not tell what can wait: a page is loaded for that.
func TestSmallEventsWaitForOthers(t *testing.T) {
	const later = 60 * time.Millisecond
	for _, c := range []struct {
		first, then service.EventData
		kinds       []string
		at          []time.Duration
	}{
		{service.Invoked{}, nil, []string{"changed"}, []time.Duration{smallWait}},
		{service.Ended{}, service.Invoked{}, []string{"changed"}, []time.Duration{smallWait}},
		{service.Ended{}, service.RoundEnded{}, []string{"changed"}, []time.Duration{later}},
		{service.Forecast{}, service.Progress{}, []string{"progress", "changed"}, []time.Duration{later, smallWait}},
		{service.RoundEnded{}, nil, []string{"changed"}, []time.Duration{0}},
		{service.RoundEnded{}, service.RoundEnded{}, []string{"changed", "changed"}, []time.Duration{0, later}},
		{service.Progress{}, nil, []string{"progress"}, []time.Duration{0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			browser := &told{began: time.Now()}
			over := make(chan struct{})
			n := newNews()
			go func() {
				defer close(over)
				n.add(service.Event{What: c.first})
				time.Sleep(later)
				if c.then != nil {
					n.add(service.Event{What: c.then})
				}
				time.Sleep(time.Second)
			}()
			if !n.follow(&stream{browser, http.NewResponseController(browser)}, over) {
				t.Error("the browser counts as gone")
			}
			if !slices.Equal(browser.kinds, c.kinds) || !slices.Equal(browser.at, c.at) {
				t.Errorf("%T, then %T: told %v at %v, want %v at %v", c.first, c.then, browser.kinds, browser.at, c.kinds, c.at)
			}
		})
	}
}

// A browser that went away ends the following.
func TestAGoneBrowserIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNews()
		n.add(service.Event{What: service.RoundEnded{}})
		if n.follow(&stream{gone{}, http.NewResponseController(gone{})}, nil) {
			t.Error("it counts as there")
		}
	})
}

type gone struct{ http.ResponseWriter }

func (gone) Write([]byte) (int, error) { return 0, http.ErrHandlerTimeout }

// While somebody looks at the home page, what is likely to be opened next is read: opening it reads nothing anew.
func TestWhatIsOpenedNextIsReadAhead(t *testing.T) {
	h := newHouse(t)
	h.save(job("ann", "one", 1), job("bob", "other", 2), job("ann", "two", 3))
	read := map[string]int{}
	all := &boards{
		rows: history.NewRecordCache(10, func(r *disdel.Record) row { read["row"]++; return rowOf(r) }),
		parts: history.NewRecordCache(10, func(r *disdel.Record) report.ComparedJob {
			read["curves"]++
			return report.ComparedJobOf(r)
		}),
	}
	ann := h.s.Tenant("ann")
	for range 2 {
		all.readAhead(t.Context(), ann)
		list, err := listRows(t.Context(), ann, all.rows, history.Query{Limit: mostJobs})
		if err != nil || len(list) != 2 {
			t.Fatalf("%d jobs, %v", len(list), err)
		}
		if read["row"] < 2 || read["row"] > 3 || read["curves"] != 2 {
			t.Errorf("read %v, want each of ann's jobs once", read)
		}
	}
}

// The first browser that watches a list has its next pages read ahead, and the last one that leaves ends the reading.
func TestAWatchedListReadsAhead(t *testing.T) {
	h := newHouse(t)
	h.save(job("ann", "one", 1), job("ann", "two", 2))
	read := make(chan string, 100)
	all := &boards{
		rows: history.NewRecordCache(10, rowOf),
		parts: history.NewRecordCache(10, func(r *disdel.Record) report.ComparedJob {
			read <- r.Job.Metadata.Name
			return report.ComparedJobOf(r)
		}),
		all: map[*service.Service]*board{},
	}
	ann := h.s.Tenant("ann")
	first, second := all.join(ann), all.join(ann)
	names := []string{<-read, <-read}
	if slices.Sort(names); !slices.Equal(names, []string{"one", "two"}) || first != second {
		t.Errorf("read the curves of %q, one board: %v", names, first == second)
	}
	all.leave(ann, first)
	all.leave(ann, second)
	if len(read) > 0 || len(all.all) > 0 {
		t.Errorf("read %d curves more, %d boards are left", len(read), len(all.all))
	}
}
