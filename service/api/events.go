package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/service"
)

// heartbeat is the time between lines that keep a quiet connection open. slow is how long a client may take to read.
const (
	heartbeat = 15 * time.Second
	slow      = 20 * time.Second
)

// events sends the events of a job after Last-Event-ID. If that id is of another run of the job or of another server, a
// reset with the job's record comes first, and then all events.
func events(c *call) (int, any, error) {
	ctx, stop := c.lasting()
	defer stop()
	run, err := c.watch(ctx)
	if err != nil {
		return 0, nil, err
	}
	after := 0
	out := http.NewResponseController(c.w)
	send := func(id, kind string, data any) error {
		text, err := json.Marshal(data)
		if err != nil {
			return err
		}
		out.SetWriteDeadline(time.Now().Add(slow)) //nolint:errcheck // there is none then
		if id != "" {
			fmt.Fprintf(c.w, "id: %s\n", id)
		}
		if _, err := fmt.Fprintf(c.w, "event: %s\ndata: %s\n\n", kind, text); err != nil {
			return err
		}
		return out.Flush()
	}
	last := c.Header.Get("Last-Event-ID")
	series, number, _ := strings.Cut(last, ".")
	lost := last != "" && series != run.Series()
	if last != "" && !lost {
		if after, err = strconv.Atoi(number); err != nil || after < 0 {
			return 0, nil, invalid("Last-Event-ID is no id of an event", err)
		}
	}
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.WriteHeader(http.StatusOK)
	if lost {
		if _, rec, err := c.record(http.StatusOK, string(run.ID())); err == nil && send("", apitypes.Reset, rec) != nil {
			return 0, nil, nil
		}
	}
	next := make(chan service.Event)
	go func() {
		defer close(next)
		for e := range run.EventsAfter(ctx, after) {
			select {
			case next <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case e, more := <-next:
			if !more || tell(run.Series(), e, send) != nil {
				return 0, nil, nil
			}
		case <-beat.C:
			out.SetWriteDeadline(time.Now().Add(slow)) //nolint:errcheck // there is none then
			if _, err := fmt.Fprint(c.w, ": still here\n\n"); err != nil || out.Flush() != nil {
				return 0, nil, nil
			}
		}
	}
}

// watch opens the job of the request, and reserves memory for it until the request is answered.
func (c *call) watch(ctx context.Context) (*service.Run, error) {
	run, free, err := c.server.watch(ctx, c.Service, c.PathValue("job"))
	if err == nil {
		c.frees = append(c.frees, free)
	}
	return run, err
}

// tell sends an event.
func tell(series string, e service.Event, send func(id, kind string, data any) error) error {
	what, err := json.Marshal(e.What)
	if err != nil {
		return err
	}
	kind := service.EventKind(e.What)
	return send(fmt.Sprintf("%s.%d", series, e.Number), kind, apitypes.Event{
		Number: e.Number, Job: e.Job, Kind: kind, Text: e.What.String(), What: what,
	})
}
