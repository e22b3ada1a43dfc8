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
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service/infer"
)

// inferData answers for the rows of a data set, one line for each row as the answers come.
func inferData(c *call) (int, any, error) {
	m, err := c.Service.Trained(c.Context(), c.PathValue("model"))
	if err != nil {
		return 0, nil, err
	}
	q := c.URL.Query()
	ask := infer.DataRequest{Dataset: q.Get("dataset"), Part: disdel.DataPart(q.Get("part"))}
	out := &lines{w: c.w, to: json.NewEncoder(c.w), control: http.NewResponseController(c.w)}
	ctx, stop := c.lasting()
	defer stop()
	out.control.SetReadDeadline(time.Time{}) //nolint:errcheck // there is none then: the answers take as long as they take
	var beats sync.WaitGroup
	beating, still := context.WithCancel(ctx)
	beats.Go(func() { out.beat(beating) })
	end, err := render.AnswerData(ctx, c.Service.Predictor, m, ask, out)
	still()
	beats.Wait()
	switch {
	case !out.begun:
		return 0, nil, err
	case err != nil: // the status was sent already; a client that went away does not read this line
		out.write(apitypes.AnswerLine{Error: disdel.AsError(err)}) //nolint:errcheck // see above
	default:
		out.write(apitypes.AnswerLine{End: &end}) //nolint:errcheck // who reads on finds that it is missing
	}
	out.control.Flush()                       //nolint:errcheck // the same
	out.control.SetWriteDeadline(time.Time{}) //nolint:errcheck // the connection may serve another request
	return 0, nil, nil
}

// lines sends answers as lines. An empty line means nothing; it keeps a quiet connection open, since proxies close
// those that are quiet while an action takes minutes.
type lines struct {
	control *http.ResponseController

	mu     sync.Mutex
	w      http.ResponseWriter // guarded by mu, as all below
	to     *json.Encoder
	begun  bool
	wrote  bool // since the last call of quiet
	lately time.Time
}

// beat sends an empty line if there was no other one for a while, until ctx ends.
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

// quiet sends an empty line if nothing was written since the last call, and flushes.
func (l *lines) quiet() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun {
		return
	}
	l.control.SetWriteDeadline(time.Now().Add(slow)) //nolint:errcheck // there is none then
	if !l.wrote {
		io.WriteString(l.w, "\n") //nolint:errcheck // who writes the next answer finds out
	}
	l.wrote = false
	l.control.Flush() //nolint:errcheck // the same
}

func (l *lines) Begin(head infer.DataHead) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = true
	l.w.Header().Set("Content-Type", apitypes.AnswersType)
	l.w.WriteHeader(http.StatusOK)
	err := l.line(apitypes.AnswerLine{Head: &head})
	l.control.Flush() //nolint:errcheck // answers may be minutes away, and who writes the next one finds out
	return err
}

func (l *lines) Take(row infer.DataRow) error { return l.write(apitypes.AnswerLine{Row: &row}) }

func (l *lines) write(line apitypes.AnswerLine) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line(line)
}

// line writes a line, and gives the client time to read it; the caller holds the lock.
func (l *lines) line(line apitypes.AnswerLine) error {
	l.wrote = true
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
