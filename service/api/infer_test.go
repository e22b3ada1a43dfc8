package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/service/infer"
)

// answersForData asks for answers for the rows of digits: what is known of them comes first, then each in its place,
// then the end; what is wrong before the first has the status of any other failure, and nothing of it is another's.
func (h *house) answersForData(model string) {
	h.t.Helper()
	path := "/api/v1/models/" + model + "/infer?dataset="
	status, data := h.ask("ann submit", "POST", path+"digits", nil)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if status != 200 || len(lines) != 1797+2 {
		h.t.Fatalf("%d, %d lines: %.300s", status, len(lines), data)
	}
	for i, text := range lines {
		var line apitypes.AnswerLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			h.t.Fatalf("line %d: %v", i, err)
		}
		switch {
		case i == 0:
			if line.Head == nil || line.Head.Rows != 1797 || line.Head.Classes != 10 {
				h.t.Errorf("it begins with %s", text)
			}
		case i == len(lines)-1:
			if line.End == nil || line.End.Right == 0 || line.End.Address != "" {
				h.t.Errorf("it ends with %.300s", text)
			}
		case line.Row == nil || line.Row.Row != i-1 || len(line.Row.Probabilities) != 10:
			h.t.Fatalf("line %d: %s", i, text)
		}
	}
	for ask, want := range map[string]int{"nothing": 404, "digits&part=half": 400, "digits@00": 409} {
		if status, data := h.ask("ann submit", "POST", path+ask, nil); status != want {
			h.t.Errorf("%s: %d %s, not %d", ask, status, data, want)
		}
	}
	for _, query := range []string{"tokens=x", "tokens=3", "topP=2", "seed=1.5"} { // it is no language model
		asked := strings.Replace(path, "dataset=", query, 1)
		if status, data := h.ask("ann submit", "POST", asked, map[string]any{"inputs": []string{"a"}}); status != 400 {
			h.t.Errorf("%s: %d %s", query, status, data)
		}
	}
	if status, _ := h.ask("bob submit", "POST", path+"digits", nil); status != 404 {
		h.t.Errorf("bob asks ann's model: %d", status)
	}
}

// A row of which a model says no number ends the lines with that, and not with what JSON has against it.
func TestARowWithoutNumbersIsTold(t *testing.T) {
	w := httptest.NewRecorder()
	out := &lines{w: w, to: json.NewEncoder(w), control: http.NewResponseController(w)}
	if err := out.Begin(infer.DataHead{Rows: 1}); err != nil || !w.Flushed {
		t.Errorf("%v, and its head is on its way: %v", err, w.Flushed)
	}
	was := w.Body.Len()
	row := infer.DataRow{Classified: &infer.Classified{Probabilities: []float32{float32(math.NaN())}}}
	if err := out.Take(row); !errors.Is(err, disdel.Diverged) || w.Body.Len() != was {
		t.Errorf("%v, and %q", err, w.Body.String()[was:])
	}
}

// A connection that no answer goes over for a while gets an empty line every fifteen seconds, from its first line on,
// and what was told before goes out with the beat; readers of JSON pass over empty lines.
func TestQuietAnswersAreKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		out := &lines{w: w, to: json.NewEncoder(w), control: http.NewResponseController(w)}
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); out.beat(ctx) }()
		time.Sleep(2*heartbeat + time.Second)
		if w.Body.Len() > 0 {
			t.Errorf("before the head: %q", w.Body)
		}
		if err := out.Begin(infer.DataHead{Model: "m:v1", Rows: 2}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * heartbeat) // one beat finds the head, two nothing
		if err := out.Take(infer.DataRow{Row: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(heartbeat)
		stop()
		<-over
		text := w.Body.String()
		if n := strings.Count(text, "\n\n"); strings.Count(text, "\n") != 4 || n != 1 {
			t.Errorf("%q", text)
		}
		for dec := json.NewDecoder(w.Body); ; {
			var line apitypes.AnswerLine
			if err := dec.Decode(&line); errors.Is(err, io.EOF) {
				break
			} else if err != nil || line.Head == nil && line.Row == nil {
				t.Fatalf("%+v, %v", line, err)
			}
		}
	})
}
