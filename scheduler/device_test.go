package scheduler

import (
	"fmt"
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

// A job says how much of an accelerator each action takes, and on how many they lie; what cannot be is refused with the
// share and the batch that would pass.
func TestAJobsShareOfAccelerators(t *testing.T) {
	in := planInput(t)
	in.Estimator = estimator.Planned(onDevice{backends.Standard(nil)})
	in.Job.Distribution.Workers = 8
	in.Platform.MaxDevice, in.Platform.Devices = disdel.GB, 3
	first, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := first.Action(disdel.TaskTrain)
	needs := train.Limits.Device
	for name, c := range map[string]struct {
		gpu      disdel.GPUs
		parallel int
		share    disdel.Bytes // that one counts as
		refusal  string
		hint     string
	}{
		"auto":            {parallel: 8, share: DeviceShare(disdel.GB, needs)},
		"halves":          {gpu: disdel.GPUs{Memory: disdel.GB / 2}, parallel: 6, share: disdel.GB / 2},
		"halves of one":   {gpu: disdel.GPUs{Count: 1, Memory: disdel.GB / 2}, parallel: 2, share: disdel.GB / 2},
		"no third fits":   {gpu: disdel.GPUs{Count: 2, Memory: 400 * disdel.MB}, parallel: 4, share: disdel.GB / 2},
		"more than are":   {gpu: disdel.GPUs{Count: 9, Memory: disdel.GB}, parallel: 3, share: disdel.GB},
		"less than needs": {gpu: disdel.GPUs{Memory: needs / 2}, refusal: "resources.gpu.memory is", hint: "batchSize="},
		"more than there": {gpu: disdel.GPUs{Memory: 2 * disdel.GB}, refusal: "and the platform's has", hint: "=1024MB"},
	} {
		in.Job.Resources.GPU = c.gpu
		p, err := NewPlan(in)
		if c.refusal != "" {
			typed := disdel.AsError(err)
			if disdel.KindOf(err) != disdel.OverLimit || typed.Code != disdel.CodeDeviceMemory ||
				!strings.Contains(err.Error(), c.refusal) || !strings.Contains(typed.Hint, c.hint) {
				t.Errorf("%s: %v, hint %q", name, err, typed.Hint)
			}
			continue
		}
		if err != nil || p.Parallel != c.parallel {
			t.Errorf("%s: %d at once, %v; want %d", name, p.Parallel, err, c.parallel)
			continue
		}
		_, round := gangs(p) // what is kept for the job's life has an evaluation beside, whose share may be too much
		if each := round[0].Each; each.Device != c.share || each.Devices != 0 {
			t.Errorf("%s: one counts as %+v, want %v", name, each, c.share)
		}
		if whole := CapacityOf(in.Platform); !whole.Holds(round.Room()) {
			t.Errorf("%s: %s", name, whole.Shortfall(round.Room()))
		}
	}
}

// The batch and the share of a refusal's hint do pass.
func TestWhatARefusalAdvisesPasses(t *testing.T) {
	in := planInput(t)
	in.Estimator = estimator.Planned(onDevice{backends.Standard(nil)})
	in.Job.Distribution.Workers = 2
	in.Platform.MaxDevice = 16 * disdel.GB
	p, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := p.Action(disdel.TaskTrain)
	in.Job.Resources.GPU.Memory = train.Limits.Device - disdel.MB
	_, err = NewPlan(in)
	var share, batch int
	if _, scan := fmt.Sscanf(disdel.AsError(err).Hint, "--set resources.gpu.memory=%dMB, or --set training.batchSize=%d",
		&share, &batch); scan != nil {
		t.Fatalf("%v: %q", scan, disdel.AsError(err).Hint)
	}
	smaller := in
	smaller.Job.Training = in.Job.Training.Resized(batch)
	if _, err := NewPlan(smaller); err != nil {
		t.Errorf("a batch of %d: %v", batch, err)
	}
	smaller.Job.Training = in.Job.Training.Resized(batch + 1)
	if _, err := NewPlan(smaller); err == nil {
		t.Errorf("a batch of %d would have passed, too", batch+1)
	}
	in.Job.Resources.GPU.Memory = disdel.Bytes(share) * disdel.MB
	if _, err := NewPlan(in); err != nil {
		t.Errorf("a share of %d MB: %v", share, err)
	}
}

// Equal parts of an accelerator leave nothing that one more of them would fit: so many as are granted find room.
func TestDeviceShares(t *testing.T) {
	for _, c := range []struct{ whole, each, want disdel.Bytes }{
		{100, 100, 100},
		{100, 51, 100},
		{100, 50, 50},
		{100, 40, 50},
		{100, 33, 33},
		{100, 1, 1},
		{100, 0, 0},
		{100, 101, 101},
		{0, 5, 5},
	} {
		if got := DeviceShare(c.whole, c.each); got != c.want {
			t.Errorf("%d of %d counts as %d, want %d", c.each, c.whole, got, c.want)
		}
	}
}

// What ran out of an accelerator's memory gets more of that, and none of the host's; at the most there is, its batch is
// halved.
func TestDecideOnADevicesMemory(t *testing.T) {
	for name, c := range map[string]struct {
		limit, own, whole disdel.Bytes
		batch             int
		want              string
	}{
		"a larger share":    {1000 * disdel.MB, 0, 4 * disdel.GB, 64, "deviceMemory 1000MB 1250MB"},
		"up to all of it":   {1000 * disdel.MB, 0, 1100 * disdel.MB, 64, "deviceMemory 1000MB 1100MB"},
		"all of it":         {disdel.GB, 0, disdel.GB, 64, "batchSize 64 32"},
		"the user's":        {1000 * disdel.MB, 1000 * disdel.MB, 4 * disdel.GB, 64, "batchSize 64 32"},
		"nobody counted":    {0, 0, 0, 64, "batchSize 64 32"},
		"nothing is left":   {disdel.GB, 0, disdel.GB, 1, "no"},
		"an older platform": {disdel.GB, 0, 0, 64, "batchSize 64 32"},
	} {
		in := remedyInput(disdel.OutcomeOutOfMemory, disdel.OOM)
		in.Activation.Failure.Code = disdel.CodeDeviceMemory
		in.Activation.Limits.Device, in.Plan.Platform.MaxDevice = c.limit, c.whole
		in.Job.Resources.GPU.Memory, in.Job.Training.BatchSize = c.own, c.batch
		r := FindRemedy(in)
		got := "no"
		if a := r.Adjustment; a != nil {
			got = fmt.Sprintf("%s %v %v", a.Field, a.From, a.To)
		}
		same := r.Limits.Memory == in.Activation.Limits.Memory && r.Limits.Timeout == in.Activation.Limits.Timeout
		if got != c.want || !same {
			t.Errorf("%s: %s (%s), limits %+v", name, got, r.Why, r.Limits)
		}
	}
	in := remedyInput(disdel.OutcomeOutOfMemory, disdel.OOM)
	in.Activation.Limits.Device = disdel.GB
	if r := FindRemedy(in); r.Limits.Device != disdel.GB {
		t.Errorf("more of the host's memory loses the device's: %+v", r.Limits)
	}
}

// The next job of the kind begins with the share that an earlier one had come to.
func TestTheHistoryKnowsAShareThatWasTooLittle(t *testing.T) {
	in := planInput(t)
	in.Estimator = estimator.Planned(onDevice{backends.Standard(nil)})
	in.Job.Distribution.Workers = 2
	in.Platform.MaxDevice = 16 * disdel.GB
	p, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := p.Action(disdel.TaskTrain)
	short := disdel.Activation{Outcome: disdel.OutcomeOutOfMemory, Failure: &disdel.Error{
		Kind: disdel.OOM, Code: disdel.CodeDeviceMemory,
	}}
	short.Task, short.Limits = disdel.TaskTrain, train.Limits
	enough := disdel.Activation{Outcome: disdel.OutcomeSuccess}
	enough.Task, enough.Limits = disdel.TaskTrain, train.Limits
	enough.Limits.Device = train.Limits.Device + 100*disdel.MB
	r := disdel.Record{
		ID: "job-0", Job: in.Job, Data: in.Data, Plan: p, Status: disdel.StatusSucceeded,
		Activations: []disdel.Activation{short, enough},
	}
	in.History = []disdel.Record{r}
	next, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	now, _ := next.Action(disdel.TaskTrain)
	if now.Limits.Device != enough.Limits.Device || now.Limits.Memory != train.Limits.Memory {
		t.Errorf("limits %+v, want %v of the device", now.Limits, enough.Limits.Device)
	}
}
