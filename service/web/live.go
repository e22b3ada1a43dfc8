package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/service"
)

// How often a page gets events at most, how long small events wait for large ones, and the time between lines
// that keep a quiet connection open. A page that is loaded for a small event is late for the round that ends meanwhile.
const (
	tellEvery = 50 * time.Millisecond
	smallWait = 400 * time.Millisecond
	heartbeat = 15 * time.Second
)

// stream sends server-sent events to a browser.
type stream struct {
	w   http.ResponseWriter
	out *http.ResponseController
}

func (v *visit) stream() *stream {
	v.w.Header().Set("Content-Type", "text/event-stream")
	v.w.WriteHeader(http.StatusOK)
	return &stream{v.w, http.NewResponseController(v.w)}
}

func (s *stream) send(kind string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.line("event: %s\ndata: %s\n\n", kind, text)
}

func (s *stream) line(format string, args ...any) error {
	s.out.SetWriteDeadline(time.Now().Add(slow)) //nolint:errcheck // there is none then
	if _, err := fmt.Fprintf(s.w, format, args...); err != nil {
		return err
	}
	return s.out.Flush()
}

// lasting returns a context that ends when the browser goes away or the server shuts down.
func (v *visit) lasting() (context.Context, func()) {
	ctx, stop := context.WithCancel(v.Context())
	unlink := context.AfterFunc(v.site.Drains, stop)
	return ctx, func() { unlink(); stop() }
}

// action is the progress of a running action on the page of its job.
type action struct {
	Task     string `json:"task"`
	Member   int    `json:"member"`
	Round    int    `json:"round"`
	Epoch    int    `json:"epoch"`
	Batch    int    `json:"batch"`
	Batches  int    `json:"batches"`
	Loss     string `json:"loss"`
	Resident string `json:"resident"`
	Peak     string `json:"peak"`
}

func actionsOf(p service.Progress) []action {
	out := []action{}
	for _, a := range p.Actions {
		out = append(out, action{
			Task: string(a.Task), Member: a.Member, Round: a.Round + 1, Epoch: a.Epoch, Batch: a.Batch, Batches: a.Batches,
			Loss: a.LossText(), Resident: a.Resident.String(), Peak: a.Peak.String(),
		})
	}
	return out
}

// liveJob tells the page of a job about its events, and the progress of its actions.
func liveJob(v *visit) error {
	ctx, stop := v.lasting()
	defer stop()
	run, free, err := v.site.Watch(ctx, v.s, v.PathValue("job"))
	if err != nil {
		return err
	}
	defer free()
	news := newNews()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for e := range run.EventsAfter(ctx, 0) {
			news.add(e)
		}
	}()
	defer func() { stop(); <-over }()
	out := v.stream()
	if news.follow(out, over) {
		news.tell(out)             //nolint:errcheck // the browser went away
		out.send("over", run.ID()) //nolint:errcheck // the same
	}
	return nil
}

// news is what has happened since the last message to the browser. Begins and ends of actions wait a while for the end
// of a round, so that the page is not loaded for each of them. The progress of actions is told at once: no page is
// loaded for it.
type news struct {
	moved chan struct{} // actions have come further
	small chan struct{} // something has changed that can wait
	large chan struct{} // something has changed that cannot wait

	mu       sync.Mutex
	happened string            // guarded by mu: the newest event's text, "" for none
	progress *service.Progress // guarded by mu: the newest picture, nil for none
}

func newNews() *news {
	return &news{moved: make(chan struct{}, 1), small: make(chan struct{}, 1), large: make(chan struct{}, 1)}
}

func (n *news) add(e service.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch what := e.What.(type) {
	case service.Progress:
		n.progress = &what
		signal(n.moved)
	case service.Invoked, service.Ended, service.Forecast:
		n.happened = what.String()
		signal(n.small)
	default:
		n.happened = what.String()
		signal(n.large)
	}
}

// follow tells the browser what happens until the job is over, and says whether the browser is still there then.
func (n *news) follow(out *stream, over <-chan struct{}) bool {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	var wait <-chan time.Time // until small events are told, nil where there are none
	for {
		var err error
		select {
		case <-n.small:
			if wait == nil {
				wait = time.After(smallWait)
			}
			continue
		case <-beat.C:
			err = out.line(": still here\n\n")
		case <-n.moved:
			err = n.tellProgress(out)
		case <-n.large:
			wait, err = nil, n.tell(out)
		case <-wait:
			wait, err = nil, n.tell(out)
		case <-over:
			return true
		}
		if err != nil {
			return false
		}
		time.Sleep(tellEvery)
	}
}

// signal wakes the goroutine that waits, or waits next.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// tellProgress sends how far the running actions are.
func (n *news) tellProgress(out *stream) error {
	n.mu.Lock()
	progress := n.progress
	n.progress = nil
	n.mu.Unlock()
	if progress == nil {
		return nil
	}
	return out.send("progress", actionsOf(*progress))
}

// tell sends all that is new.
func (n *news) tell(out *stream) error {
	if err := n.tellProgress(out); err != nil {
		return err
	}
	n.mu.Lock()
	happened := n.happened
	n.happened = ""
	n.mu.Unlock()
	if happened == "" {
		return nil
	}
	return out.send("changed", happened)
}

// How often a watched list of jobs is read at most, and which part of the time that takes at most.
const (
	lookEvery = 100 * time.Millisecond
	lookShare = 20
)

// boards watch the lists of jobs for changes, one for each tenant with an open list.
type boards struct {
	rows  *history.RecordCache[row]
	parts *history.RecordCache[report.ComparedJob]

	mu  sync.Mutex
	all map[*service.Service]*board // guarded by mu
}

// board watches the jobs of a tenant for all of its open lists.
type board struct {
	readers int // guarded by the boards' mu
	stop    context.CancelFunc
	over    chan struct{}
	looked  chan struct{} // closed after the first look: only later changes are told

	mu      sync.Mutex
	changed chan struct{} // guarded by mu: closed with the next change
}

// join begins to watch, unless the tenant has a board already.
func (b *boards) join(s *service.Service) *board {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.all[s]
	if one == nil {
		ctx, stop := context.WithCancel(context.Background())
		one = &board{
			stop: stop, over: make(chan struct{}), looked: make(chan struct{}), changed: make(chan struct{}),
		}
		b.all[s] = one
		go one.look(ctx, s, b)
	}
	one.readers++
	return one
}

// leave ends the board with its last reader.
func (b *boards) leave(s *service.Service, one *board) {
	b.mu.Lock()
	one.readers--
	last := one.readers == 0
	if last {
		delete(b.all, s)
	}
	b.mu.Unlock()
	if last {
		one.stop()
		<-one.over
	}
}

// seen is what a list shows of a job that may change.
type seen struct {
	id     disdel.JobID
	status disdel.Status
	rounds int
	model  bool
}

func (b *board) look(ctx context.Context, s *service.Service, all *boards) {
	defer close(b.over)
	var ahead sync.WaitGroup
	defer ahead.Wait()
	again := time.NewTimer(0)
	defer again.Stop()
	<-again.C
	var before []seen
	for first := true; ; first = false {
		began := time.Now()
		if now, err := newest(ctx, s, all.rows); err == nil {
			if !first && !slices.Equal(before, now) {
				b.wake()
			}
			before = now
		}
		if first {
			close(b.looked)
			ahead.Go(func() { all.readAhead(ctx, s) })
		}
		again.Reset(max(lookEvery, lookShare*time.Since(began)))
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// readAhead caches what the user is likely to open next: the longest list of jobs, and the curves of the newest ones.
func (b *boards) readAhead(ctx context.Context, s *service.Service) {
	list, err := listRows(ctx, s, b.rows, history.Query{Limit: mostJobs})
	if err != nil {
		return // the page that needs it says what is wrong
	}
	h, err := s.History(ctx)
	if err != nil {
		return
	}
	ids := make([]disdel.JobID, min(len(list), usualJobs))
	for i := range ids {
		ids[i] = list[i].ID
	}
	b.parts.Find(ctx, h, ids) //nolint:errcheck // as above
}

// mostWatched bounds the watched jobs: unfinished jobs are among the newest.
const mostWatched = 50

func newest(ctx context.Context, s *service.Service, rows *history.RecordCache[row]) ([]seen, error) {
	list, err := listRows(ctx, s, rows, history.Query{Limit: mostWatched})
	out := make([]seen, len(list))
	for i := range list {
		out[i] = seen{list[i].ID, list[i].Status, list[i].Rounds, list[i].Model != ""}
	}
	return out, err
}

func (b *board) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *board) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// liveJobs tells a list of jobs that it has changed.
func liveJobs(v *visit) error {
	ctx, stop := v.lasting()
	defer stop()
	b := v.site.boards.join(v.s)
	defer v.site.boards.leave(v.s, b)
	out := v.stream()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	next := b.next()
	select {
	case <-b.looked:
	case <-ctx.Done():
		return nil
	}
	if out.line(": here\n\n") != nil {
		return nil
	}
	for {
		select {
		case <-next:
			next = b.next()
			if out.send("changed", "jobs") != nil {
				return nil
			}
		case <-beat.C:
			if out.line(": still here\n\n") != nil {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}
