package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/wire"
	"github.com/disdel/disdel/service"
)

// inferData answers for the rows of a data set, line by line as the answers come.
func inferData(c *call) (int, any, error) {
	m, err := c.Service.Trained(c.Context(), c.PathValue("model"))
	if err != nil {
		return 0, nil, err
	}
	q := c.URL.Query()
	ask := service.DataQuestion{Dataset: q.Get("dataset"), Part: disdel.DataPart(q.Get("part"))}
	out := &lines{w: c.w, to: json.NewEncoder(c.w), control: http.NewResponseController(c.w)}
	ctx, stop := c.lasting()
	defer stop()
	out.control.SetReadDeadline(time.Time{}) //nolint:errcheck // there is none then: the answers take as long as they take
	var beats sync.WaitGroup
	beating, still := context.WithCancel(ctx)
	beats.Go(func() { out.beat(beating) })
	end, err := render.AnswerData(ctx, c.Service, m, ask, out)
	still()
	beats.Wait()
	switch {
	case !out.begun:
		return 0, nil, err
	case err != nil: // the status is gone already; a client that went away does not read this one
		out.write(wire.AnswerLine{Error: disdel.AsError(err)}) //nolint:errcheck // see above
	default:
		out.write(wire.AnswerLine{End: &end}) //nolint:errcheck // who reads on finds that it is missing
	}
	out.control.Flush()                       //nolint:errcheck // the same
	out.control.SetWriteDeadline(time.Time{}) //nolint:errcheck // the connection may serve another request
	return 0, nil, nil
}

// lines sends answers as lines. One that is empty says nothing, and keeps a connection that nothing else goes over:
// proxies cut those that are quiet for a while, and an action may take minutes.
type lines struct {
	control *http.ResponseController

	mu     sync.Mutex
	w      http.ResponseWriter // guarded by mu, as all below
	to     *json.Encoder
	begun  bool
	told   bool // something, since the last beat
	lately time.Time
}

// beat sends an empty line whenever there was no other one for a while, until ctx ends.
func (l *lines) beat(ctx context.Context) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.quiet()
		}
	}
}

// quiet is the beat of a connection. What was told since the last one goes out with it.
func (l *lines) quiet() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun {
		return
	}
	l.control.SetWriteDeadline(time.Now().Add(slow)) //nolint:errcheck // there is none then
	if !l.told {
		io.WriteString(l.w, "\n") //nolint:errcheck // who writes the next answer finds out
	}
	l.told = false
	l.control.Flush() //nolint:errcheck // the same
}

func (l *lines) Begin(head service.DataHead) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = true
	l.w.Header().Set("Content-Type", wire.AnswersType)
	l.w.WriteHeader(http.StatusOK)
	err := l.line(wire.AnswerLine{Head: &head})
	l.control.Flush() //nolint:errcheck // answers may be minutes away, and who writes the next one finds out
	return err
}

func (l *lines) Take(row service.Answered) error { return l.write(wire.AnswerLine{Row: &row}) }

func (l *lines) write(line wire.AnswerLine) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line(line)
}

// line gives a client a while to read, counted anew from time to time; the caller holds the lock.
func (l *lines) line(line wire.AnswerLine) error {
	l.told = true
	if now := time.Now(); now.Sub(l.lately) > time.Second {
		l.control.SetWriteDeadline(now.Add(slow)) //nolint:errcheck // there is none then
		l.lately = now
	}
	err := l.to.Encode(line)
	if odd := new(json.UnsupportedValueError); errors.As(err, &odd) {
		return &disdel.Error{
			Kind: disdel.Diverged, Op: "write answers", Msg: "the model says no number of a row",
			Hint: "ask a model whose training did not diverge",
		}
	}
	return err
}
