package scheduler

import (
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// onDevice are the backends of this program as they would be with their slab on an accelerator.
type onDevice struct{ estimator.Engines }

func (e onDevice) Footprint(asked string, s footprint.Spec) (footprint.Footprint, error) {
	f, err := e.Engines.Footprint(asked, s)
	f.Parts = append([]footprint.Part(nil), f.Parts...)
	for i := range f.Parts {
		if f.Parts[i].Memory == footprint.Host {
			f.Parts[i].Memory = footprint.Device
		}
	}
	return f, err
}

// What lies on an accelerator is planned by the accelerator's memory, and by the pool's no more.
func TestAnAcceleratorsMemoryIsPlanned(t *testing.T) {
	in := planInput(t)
	host, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Estimator = estimator.Planned(onDevice{backends.Standard(nil)})
	in.Job.Distribution.Workers = 4
	in.Platform.MaxDevice = 16 * disdel.GB
	wide, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	was, _ := host.Action(disdel.TaskTrain)
	train, _ := wide.Action(disdel.TaskTrain)
	if train.Limits.Device == 0 || train.Estimate.Total >= was.Estimate.Total || wide.Parallel != 4 {
		t.Fatalf("limits %+v (on the host %+v), %d at once", train.Limits, was.Limits, wide.Parallel)
	}
	each := train.Limits.Device
	for _, c := range []struct {
		has      disdel.Bytes
		parallel int
		refusal  string
	}{
		{4 * each, 4, ""},
		{3*each + 1, 3, ""},
		{each, 1, ""},
		{each - 1, 0, "of an accelerator's memory, and the platform's has"},
		{0, 0, "of an accelerator's memory, and the platform has none"},
	} {
		in.Platform.MaxDevice = c.has
		p, err := NewPlan(in)
		switch {
		case c.refusal != "":
			if disdel.KindOf(err) != disdel.OverLimit || !strings.Contains(err.Error(), c.refusal) {
				t.Errorf("%v: %v", c.has, err)
			}
		case err != nil || p.Parallel != c.parallel:
			t.Errorf("%v: %d at once, %v; want %d", c.has, p.Parallel, err, c.parallel)
		}
	}
}
