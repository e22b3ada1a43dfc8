package controller

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

// diary is a house that does nothing and keeps the order of what it was asked for.
type diary struct {
	asked []string
	sweep error
}

func (d *diary) wrote(what string) { d.asked = append(d.asked, what) }

func (d *diary) Limits(context.Context) (p disdel.PlatformLimits, err error) { return p, nil }

func (d *diary) Prepare(context.Context, string, []disdel.ActionPlan) error {
	d.wrote("prepare")
	return &disdel.Error{Kind: disdel.Denied, Msg: "no"} // that is all this job is for
}

func (d *diary) Invoke(context.Context, disdel.Invocation) (disdel.ActivationID, error) {
	d.wrote("invoke")
	return "", nil
}

func (d *diary) Wait(context.Context, disdel.Invocation, disdel.ActivationID) (a disdel.Activation, err error) {
	return a, nil
}

func (d *diary) Remove(context.Context, string) error { return nil }

func (d *diary) Save(context.Context, *disdel.Record) error {
	d.wrote("save")
	return nil
}

func (d *diary) Similar(context.Context, disdel.Job) ([]disdel.Record, error) { return nil, nil }

func (d *diary) Progress(context.Context, disdel.JobID) ([]disdel.Progress, error) { return nil, nil }

func (d *diary) Cancel(context.Context, disdel.JobID) error { return nil }

func (d *diary) Forget(context.Context, disdel.JobID, int) error { return nil }

func (d *diary) Sweep(context.Context, disdel.JobID) (int, error) {
	d.wrote("sweep")
	return 0, d.sweep
}

func (d *diary) Commit(context.Context, *disdel.Record, disdel.Network, disdel.ModelRef) (m disdel.ModelRef, err error) {
	return m, nil
}

func (d *diary) Discard(context.Context, string) error { return nil }

// A store that outlived the controller has rounds after the checkpoint, which would count as done without what came of them:
// a job that is taken up again begins with an empty one, or not at all.
func TestResumeSweepsTheStoreFirst(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	for name, c := range map[string]struct {
		sweep error
		want  []string
	}{
		"swept":           {nil, []string{"sweep", "save", "prepare"}},
		"not to be swept": {&disdel.Error{Kind: disdel.Unavailable}, []string{"sweep"}},
	} {
		d := &diary{sweep: c.sweep}
		_, err := New(Config{Invoker: d, Recorder: d, Board: d, Shelf: d, Log: log}).Resume(t.Context(), Spec{ID: "job-1"}, disdel.Record{ID: "job-1"})
		if diff := cmp.Diff(c.want, d.asked[:min(len(d.asked), len(c.want))]); diff != "" || !errors.Is(err, c.sweep) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if c.sweep != nil && len(d.asked) > 1 {
			t.Errorf("%s: %v", name, d.asked)
		}
	}
}
