package fullscreen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// jobs is a client of one job that never ends, and what it was asked for.
type jobs struct {
	client.Jobs
	client.Records
	asked chan disdel.Status
	told  chan struct{} // closed once its events are read
}

func (j *jobs) List(context.Context, history.Query) ([]disdel.Record, error) {
	return []disdel.Record{record(1, "one")}, nil
}

func (j *jobs) Watch(_ context.Context, job string) (client.Run, error) {
	if job == "none" {
		return nil, &disdel.Error{Kind: disdel.NotFound, Msg: "there is no job"}
	}
	return run{told: j.told}, nil
}

func (j *jobs) RequestStop(_ context.Context, _ string, to disdel.Status, _ string) error {
	j.asked <- to
	return nil
}

type run struct {
	client.Run
	told chan struct{}
}

func (run) ID() disdel.JobID { return record(1, "one").ID }

func (r run) EventsAfter(ctx context.Context, _ int) iter.Seq[service.Event] {
	return func(yield func(service.Event) bool) {
		yield(service.Event{What: service.Planned{Record: record(1, "the one")}})
		close(r.told)
		<-ctx.Done()
	}
}

// terminalOf is what was written, for who waits for it.
type terminalOf struct {
	wrote *sync.Cond
	buf   bytes.Buffer
}

func (o *terminalOf) Write(p []byte) (int, error) {
	o.wrote.L.Lock()
	defer o.wrote.L.Unlock()
	defer o.wrote.Broadcast()
	return o.buf.Write(p)
}

// await waits until a text was written.
func (o *terminalOf) await(text string) {
	o.wrote.L.Lock()
	defer o.wrote.L.Unlock()
	for !strings.Contains(o.buf.String(), text) {
		o.wrote.Wait()
	}
}

// Keys open a job from the list and ask for its end; who quits leaves nothing behind.
func TestKeysDrive(t *testing.T) {
	j := &jobs{asked: make(chan disdel.Status, 1), told: make(chan struct{})}
	out := &terminalOf{wrote: sync.NewCond(&sync.Mutex{})}
	w := &watcher{
		at: client.Client{Jobs: j, Records: j}, screen: NewScreen(), news: make(chan happening), out: out,
		size: func() (int, int) { return 90, 12 },
	}
	ctx, stop := context.WithCancel(t.Context())
	in, keys := io.Pipe()
	over := make(chan error, 1)
	go func() { over <- w.loop(ctx, pressed(ctx, in)) }()
	out.await("> one")
	io.WriteString(keys, "\r") //nolint:errcheck // a pipe
	<-j.told
	io.WriteString(keys, "cy") //nolint:errcheck // the same
	if to := <-j.asked; to != disdel.StatusCanceled {
		t.Errorf("%v was asked for", to)
	}
	for _, want := range []string{"the one", "cancel this job?", "is asked to become canceled"} {
		out.await(want)
	}
	io.WriteString(keys, "qq") //nolint:errcheck // the same
	if err := <-over; err != nil {
		t.Error(err)
	}
	stop()
	keys.Close()
}

// Without a terminal there is no screen, and a job that is not there is said before it is taken.
func TestNoScreen(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	j := &jobs{told: make(chan struct{})}
	u := terminal.New(in, io.Discard, io.Discard)
	if err := Watch(t.Context(), u, client.Client{Jobs: j, Records: j}, ""); !errors.Is(err, disdel.Invalid) {
		t.Errorf("%v", err)
	}
	if err := Watch(t.Context(), u, client.Client{Jobs: j, Records: j}, "none"); !errors.Is(err, disdel.NotFound) {
		t.Errorf("%v", err)
	}
}
