package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/emulated"
	"github.com/disdel/disdel/service"
)

// emulatedMemory is what an emulated device of a program with the tag emulated has; there are two.
// Of it, a context is taken to hold something, which an emulation has not.
const (
	emulatedMemory  = 256 * disdel.MB
	emulatedContext = 16 * disdel.MB
)

// onEmulated is a program whose engine for GPUs has devices that are the processor's: all but the driver of real ones
// is what bin/disdel-cuda has.
func onEmulated(t *testing.T) *tool {
	t.Helper()
	d := build(t)
	once, err := emulatedProgram()
	if errors.Is(err, emulated.ErrNoCompiler) {
		t.Skip("left out: ", err)
	}
	if err == nil {
		const device = "emulated-device"
		err = errors.Join(os.Remove(d.path), link(once, d.path),
			link(filepath.Join(filepath.Dir(once), device), filepath.Join(filepath.Dir(d.path), device)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// emulatedProgram is compiled once for all tests, with the program of its devices beside it.
var emulatedProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp(programFolder, "emulated-")
	if err != nil {
		return "", err
	}
	made, err := emulated.Compile(dir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "disdel")
	// Other flags would compile all anew, and so would a standard library without the Makefile's tags.
	return path, errors.Join(os.Rename(made, filepath.Join(dir, "emulated-device")),
		compile(path, []string{"GOFLAGS=" + os.Getenv("GOFLAGS") + " -tags=emulated,netgo,osusergo", "CGO_ENABLED=0"}))
})

// held has others take so much of each device's memory.
func (d *tool) held(n disdel.Bytes) {
	d.t.Helper()
	file := filepath.Join(filepath.Dir(d.path), "emulated-held")
	if err := os.WriteFile(file, fmt.Append(nil, int64(n)), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

const deviceJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: on-device}
model:
  layers:
    - conv: {filters: 8, kernel: 3, activation: relu}
    - maxPool: {kernel: 2}
    - flatten: {}
    - dense: {units: 10, activation: softmax}
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 1, batchSize: 128, optimizer: {adam: {learningRate: 0.002}}}
distribution: {workers: 2, aggregation: {optimizer: average}}
reliability: {retries: {limit: 6, perWorker: 3, backoff: {initial: 20ms, max: 100ms}}}
`

// trains are the train activations of a record.
func trains(r *disdel.Record) (out []disdel.Activation) {
	for _, a := range r.Activations {
		if a.Task == disdel.TaskTrain {
			out = append(out, a)
		}
	}
	return out
}

// A job trains on devices from its estimate to its record, which name the device's memory, and comes to what it comes
// to on the processor; with most of a device for each and one device for all, one worker waits for the other.
func TestAJobTrainsOnADevice(t *testing.T) {
	t.Parallel()
	d := onEmulated(t)
	job := d.file(deviceJob)
	said, errs, code := d.run("estimate", job)
	if code != 0 || !strings.Contains(said, "of a GPU's memory (") || !strings.Contains(said, "of 2 x 256 MB") {
		t.Fatalf("exit %d: %s\n%s", code, said, errs)
	}
	if _, errs, code := d.run("submit", job, "-q"); code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	r := d.record()
	plan, _ := r.Plan.Action(disdel.TaskTrain)
	if r.Job.Resources.Device != disdel.DeviceGPU || r.Job.Training.Backend != disdel.BackendCUDA ||
		plan.Estimate.Device == 0 || plan.Limits.Device < plan.Estimate.Device || r.Plan.Platform.Devices != 2 ||
		r.Plan.Platform.MaxDevice != emulatedMemory || !strings.Contains(r.Plan.Platform.Kernels, "cuda") {
		t.Errorf("device %q, backend %q, plan %+v on %+v", r.Job.Resources.Device, r.Job.Training.Backend, plan,
			r.Plan.Platform)
	}
	for _, a := range trains(&r) {
		if a.DevicePeak != plan.Estimate.Device || a.Limits.Device != plan.Limits.Device || len(a.Beats) == 0 ||
			a.Beats[len(a.Beats)-1].Device != a.DevicePeak {
			t.Errorf("%s: took %v of %v, estimated %v; beats %+v", a.Invocation.ID, a.DevicePeak, a.Limits.Device,
				plan.Estimate.Device, a.Beats)
		}
	}
	if told, _, _ := d.run("report", "@last"); !strings.Contains(told, "of a GPU of 256 MB, and took ") {
		t.Errorf("the report:\n%s", told)
	}
	d.alikeOnTheProcessor(job, &r)
	d.waitsForADevice(job)
	d.nothingStays()
}

// alikeOnTheProcessor holds a job's losses against those that the processor comes to.
func (d *tool) alikeOnTheProcessor(job string, on *disdel.Record) {
	d.t.Helper()
	if _, errs, code := d.run("submit", job, "-q", "--set", "resources.device=cpu"); code != 0 {
		d.t.Fatalf("exit %d\n%s", code, errs)
	}
	r := d.record()
	want, got := trains(&r), trains(on)
	if len(want) != len(got) || len(got) == 0 {
		d.t.Fatalf("%d train activations, and %d on the processor", len(got), len(want))
	}
	for i := range want {
		if want[i].DevicePeak != 0 || want[i].Loss == nil || got[i].Loss == nil {
			d.t.Fatalf("%+v beside %+v", want[i], got[i])
		}
	}
	sum := func(of []disdel.Activation) (s float64) { // workers end in any order
		for _, a := range of {
			s += *a.Loss
		}
		return s
	}
	if a, b := sum(want), sum(got); math.Abs(a-b) > 1e-3*(1+a) {
		d.t.Errorf("losses come to %v, and %v on the processor", b, a)
	}
}

// waitsForADevice sees that two actions of which only one fits the device that the job may have come one after the
// other.
func (d *tool) waitsForADevice(job string) {
	d.t.Helper()
	if _, errs, code := d.run("submit", job, "-q", "--set", "resources.device=gpu", "--set", "resources.gpu.memory=200MB",
		"--set", "resources.gpu.count=1", "--set", "training.epochs=1"); code != 0 {
		d.t.Fatalf("exit %d\n%s", code, errs)
	}
	r := d.record()
	all := slices.DeleteFunc(trains(&r), func(a disdel.Activation) bool { // a busy machine may need retries
		return a.Outcome != disdel.OutcomeSuccess
	})
	if r.Plan.Parallel != 1 || len(all) != 2 {
		d.t.Fatalf("%d at once, %d train activations", r.Plan.Parallel, len(all))
	}
	a, b := all[0], all[1]
	if b.Start.Before(a.Start) {
		a, b = b, a
	}
	if b.Start.Before(a.Start.Add(time.Duration(a.Duration))) {
		d.t.Errorf("one ran %v from %v on, the other from %v", time.Duration(a.Duration), a.Start, b.Start)
	}
}

// Where others hold a device's memory the action says that it is the device's; a job that has asked for a share goes on
// with half of the batch, and one that has not gets more until there is no more to try, and says what would help.
func TestALackOfADevicesMemoryIsRemedied(t *testing.T) {
	t.Parallel()
	d := onEmulated(t)
	job := d.file(deviceJob)
	out, errs, code := d.run("estimate", job, "-o", "json", "--set", "resources.device=gpu")
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	var foretold service.Estimation
	if err := json.Unmarshal([]byte(out), &foretold); err != nil {
		t.Fatal(err)
	}
	train, _ := foretold.Plan.Action(disdel.TaskTrain)
	needs := train.Estimate.Device
	d.held(emulatedMemory - (needs-emulatedContext)*3/4)
	_, errs, code = d.run("submit", job, "--set", "resources.device=gpu", "--set", "resources.gpu.memory=64MB")
	r := d.record()
	if code != 0 || !strings.Contains(errs, "memory") {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	first := trains(&r)[0]
	if !first.LackedDevice() || first.Failure.Kind != disdel.OOM || !strings.Contains(first.Failure.Msg, "allocation") {
		t.Errorf("%+v, %v", first.Outcome, first.Failure)
	}
	if n := len(r.Adjustments); n == 0 || r.Adjustments[0].Field != disdel.FieldBatchSize ||
		r.Adjustments[0].To.Count != 64 {
		t.Errorf("adjustments %+v", r.Adjustments)
	}

	d.held(emulatedMemory)
	_, errs, code = d.run("submit", job, "--set", "resources.device=gpu", "--set", "reliability.retries.limit=2")
	r = d.record()
	if code == 0 || r.Failure == nil || r.Failure.Kind != disdel.OOM || r.Failure.Code != disdel.CodeDeviceMemory {
		t.Errorf("exit %d, %v\n%s", code, r.Failure, errs)
	}
	for _, a := range r.Adjustments {
		if a.Field != disdel.FieldDevice || a.To.Memory <= a.From.Memory {
			t.Errorf("adjusted %+v", a)
		}
	}
	if len(r.Adjustments) == 0 {
		t.Error("no larger share was tried")
	}
	if told, _, _ := d.run("report", "@last"); !strings.Contains(told, "resources.gpu.memory=") {
		t.Errorf("the report does not say what would help:\n%s", told)
	}
	d.nothingStays()
}
