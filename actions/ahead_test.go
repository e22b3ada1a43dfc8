package actions

import (
	"slices"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// onAnother is the native backend as one whose engines take batches ahead.
type onAnother struct {
	native.Backend
	ahead *int // batches that came while a step was made
}

func (onAnother) Name() string { return "another" }

func (b onAnother) New(s engine.Spec) (engine.Engine, error) {
	e, err := b.Backend.New(s)
	return &aheadEngine{Engine: e, ahead: b.ahead}, err
}

// aheadEngine has the next batch come before it computes: whoever trains on what lies in the caller's memory trains on
// that.
type aheadEngine struct {
	engine.Engine
	ahead  *int
	during bool
	staged dataset.Batch
}

func (e *aheadEngine) Ahead() engine.Ahead { return e }

func (e *aheadEngine) Stage(b dataset.Batch) error {
	if e.during {
		*e.ahead++
	}
	e.staged = b
	e.staged.Input.Values, e.staged.Target.Classes = slices.Clone(b.Input.Values), slices.Clone(b.Target.Classes)
	return nil
}

func (e *aheadEngine) StepStaged(during func() error) (disdel.Metrics, error) {
	of := e.staged
	if e.staged = (dataset.Batch{}); of.Input.Rows == 0 {
		return disdel.Metrics{}, &disdel.Error{Kind: disdel.Invalid, Op: "train", Msg: "no batch was staged"}
	}
	e.during = true
	failed := during()
	e.during = false
	m, err := e.Step(of)
	if err == nil {
		err = failed
	}
	return m, err
}

// An engine that takes batches ahead gets all of an epoch but the first while it computes, and comes to the same bits,
// in one leg or in several of the same process, whose engine has a batch left that is nobody's.
func TestBatchesComeAhead(t *testing.T) {
	b := setUp(t)
	plain := NewHost(probe, engine.Table{Backends: []engine.Backend{native.Backend{}}})
	defer plain.Close()
	ahead := 0
	h := NewHost(probe, engine.Table{Backends: []engine.Backend{onAnother{ahead: &ahead}}})
	defer h.Close()
	req := b.train(0)
	req.Epochs = 3
	want := b.leg(plain, req, time.Hour)
	update := b.fetch(0, plain)
	b.forget()
	req.Attempt = 2
	got := b.leg(h, req, time.Hour)
	if !slices.Equal(got.Losses, want.Losses) || got.Rows != want.Rows {
		t.Errorf("losses %v of %d rows, want %v of %d", got.Losses, got.Rows, want.Losses, want.Rows)
	}
	if diff := weightsDiff(update.Weights, b.fetch(0, h).Weights); diff != "" {
		t.Errorf("weights differ:\n%.300s", diff)
	}
	if batches := 3 * 7; ahead != batches-3 { // 100 rows, 16 a batch
		t.Errorf("%d of %d batches came ahead", ahead, batches)
	}
	b.forget()
	req.Attempt = 3
	rows, legs := 0, 0
	for paused := true; paused; legs++ {
		res := b.leg(h, req, 60*time.Millisecond)
		paused, req.Leg = res.Paused, req.Leg+1
		rows += res.Rows
	}
	if legs < 2 || rows != want.Rows {
		t.Errorf("%d legs of %d rows, want %d", legs, rows, want.Rows)
	}
	if diff := weightsDiff(update.Weights, b.fetch(0, h).Weights); diff != "" {
		t.Errorf("weights differ after %d legs:\n%.300s", legs, diff)
	}
}
