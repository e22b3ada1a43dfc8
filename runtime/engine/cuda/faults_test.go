package cuda_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/emulated"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// faulty is a driver whose device goes wrong at the n-th of its calls of a kind, and counts what is asked of it.
type faulty struct {
	driver driver.Driver
	call   string // "open", "alloc", "write", "write ahead", "read", "prepare" or "run"; "" never
	at     int    // from 1
	cause  driver.Cause

	calls  map[string]int
	taken  []disdel.Bytes
	closed int
}

func (f *faulty) fault(call string) error {
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[call]++
	if call == f.call && f.calls[call] == f.at {
		return &driver.Fault{Cause: f.cause, Device: 0, Call: call, Number: f.at, Said: "injected"}
	}
	return nil
}

// Devices implements driver.Driver.
func (f *faulty) Devices() ([]driver.Info, error) { return f.driver.Devices() }

// Open implements driver.Driver.
func (f *faulty) Open(index int) (driver.Device, error) {
	if err := f.fault("open"); err != nil {
		return nil, err
	}
	d, err := f.driver.Open(index)
	if err != nil {
		return nil, err
	}
	return &faultyDevice{f, d}, nil
}

type faultyDevice struct {
	f *faulty
	driver.Device
}

// Alloc implements driver.Device, as the others do.
func (d *faultyDevice) Alloc(n disdel.Bytes) (driver.Pointer, error) {
	if err := d.f.fault("alloc"); err != nil {
		return 0, err
	}
	d.f.taken = append(d.f.taken, n)
	return d.Device.Alloc(n)
}

func (d *faultyDevice) Write(dst driver.Pointer, src []byte, turn driver.Turn) error {
	call := "write"
	if turn == driver.Ahead {
		call = "write ahead"
	}
	if err := d.f.fault(call); err != nil {
		return err
	}
	return d.Device.Write(dst, src, turn)
}

func (d *faultyDevice) Read(dst []byte, src driver.Pointer) error {
	if err := d.f.fault("read"); err != nil {
		return err
	}
	return d.Device.Read(dst, src)
}

func (d *faultyDevice) Prepare(launches []driver.Launch) (driver.Program, error) {
	if err := d.f.fault("prepare"); err != nil {
		return 0, err
	}
	return d.Device.Prepare(launches)
}

func (d *faultyDevice) Run(p driver.Program) error {
	if err := d.f.fault("run"); err != nil {
		return err
	}
	return d.Device.Run(p)
}

func (d *faultyDevice) Close() error {
	d.f.closed++
	return d.Device.Close()
}

func small(t *testing.T) engine.Spec {
	t.Helper()
	g := build(t, "dense", func(b *model.Builder) int { return b.Dense("a", b.Flatten("f", 0), 4) }, model.OpSoftmax)
	return engine.Spec{
		Graph: g, BatchSize: 2, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}, Training: true,
	}
}

// used makes an engine and uses all of it once; it is closed however far it came.
func used(t *testing.T, b engine.Backend, s engine.Spec) error {
	t.Helper()
	e, err := b.New(s)
	if err != nil {
		return err
	}
	defer e.Close() //nolint:errcheck // what went wrong before is what matters
	if err := e.Init(disdel.Init{Seed: 1}); err != nil {
		return err
	}
	if _, err := e.Step(batch(s.Graph, 2, 1)); err != nil {
		return err
	}
	if _, err := e.Predict(batch(s.Graph, 2, 1)); err != nil {
		return err
	}
	_, err = e.Evaluate(batch(s.Graph, 1, 1))
	return err
}

// Whichever call of a device goes wrong, the error is of the fault's kind, has the fault as its cause with its
// evidence, and the device is closed.
func TestEveryCallMayFail(t *testing.T) {
	d := emulation(t)
	sound := &faulty{driver: d}
	s := small(t)
	if err := used(t, cuda.Backend{Driver: sound}, s); err != nil {
		t.Fatal(err)
	}
	for call, cause := range map[string]driver.Cause{
		"open": driver.NoDevice, "alloc": driver.NoMemory, "write": driver.DeviceLost,
		"write ahead": driver.DeviceLost, "read": driver.DeviceLost,
		"prepare": driver.BadLaunch, "run": driver.BadLaunch,
	} {
		if sound.calls[call] == 0 {
			t.Errorf("nothing calls %s", call)
		}
		for at := 1; at <= sound.calls[call]; at++ {
			f := &faulty{driver: d, call: call, at: at, cause: cause}
			err := used(t, cuda.Backend{Driver: f}, s)
			var fault *driver.Fault
			var typed *disdel.Error
			if !errors.As(err, &fault) || fault.Number != at || fault.Cause != cause || !errors.As(err, &typed) ||
				!errors.Is(err, cause.Kind()) {
				t.Errorf("%s %d: %v", call, at, err)
			}
			if opened := f.calls["open"] > 0 && call != "open"; opened && f.closed != 1 {
				t.Errorf("%s %d: the device was closed %d times", call, at, f.closed)
			}
			if memory := typed != nil && typed.Code == disdel.CodeDeviceMemory; memory != (cause == driver.NoMemory) {
				t.Errorf("%s %d: code %q", call, at, typed.Code)
			}
		}
	}
}

// Once a device is lost, every call says so, and what is read of it is no number.
func TestWhatIsLostIsNoWeight(t *testing.T) {
	s := small(t)
	f := &faulty{driver: emulation(t), call: "read", cause: driver.DeviceLost}
	e := made(t, cuda.Backend{Driver: f}, s)
	f.at = f.calls["read"] + 1
	x := batch(s.Graph, 2, 1)
	_, first := e.Step(x)
	if _, again := e.Step(x); first == nil || !errors.Is(again, disdel.Unavailable) {
		t.Errorf("%v, and then %v", first, again)
	}
	if _, err := e.Evaluate(x); !errors.Is(err, disdel.Unavailable) {
		t.Errorf("an evaluation: %v", err)
	}
	if err := e.Reset(engine.Moment); !errors.Is(err, disdel.Unavailable) {
		t.Errorf("a reset: %v", err)
	}
	for _, v := range engine.Weights(e)[0].Data {
		if !math.IsNaN(float64(v)) {
			t.Fatalf("a weight of a device that is lost is %v", v)
		}
	}
}

// A device that has too little says how little.
func TestTooLittleDeviceMemoryIsToldInNumbers(t *testing.T) {
	d := emulation(t)
	d.Memory = disdel.KB
	_, err := cuda.Backend{Driver: d}.New(small(t))
	var fault *driver.Fault
	if !errors.As(err, &fault) || fault.Wanted <= disdel.KB || fault.Free != disdel.KB || !errors.Is(err, disdel.OOM) {
		t.Fatalf("%v", err)
	}
	if !strings.Contains(err.Error(), fault.Wanted.String()) {
		t.Errorf("%v does not say that %v were wanted", err, fault.Wanted)
	}
}

// A step whose gradient is not finite changes nothing where its norm is asked for.
func TestAGradientThatIsNotFiniteMovesNothing(t *testing.T) {
	s := small(t)
	s.Loss, s.ClipNorm = "mse", 1
	s.Graph = build(t, "dense", func(b *model.Builder) int { return b.Dense("a", b.Flatten("f", 0), 4) }, model.OpUnknown)
	e := made(t, cuda.Backend{Driver: emulation(t)}, s)
	x := batch(s.Graph, 2, 1)
	for i := range x.Input.Values {
		x.Input.Values[i] *= 3e37 // the outputs' squares are finite in double, their slopes times the inputs are not in float
	}
	before := engine.Weights(e)
	_, err := e.Step(x)
	if !errors.Is(err, disdel.Diverged) {
		t.Fatalf("%v, want Diverged", err)
	}
	for i, w := range engine.Weights(e) {
		for k, v := range w.Data {
			if v != before[i].Data[k] {
				t.Fatalf("%s[%d] went from %v to %v", w.Name, k, before[i].Data[k], v)
			}
		}
	}
}

// What the driver takes of the host is in the footprint, and an action that has not as much is refused before a device
// is opened.
func TestTheDriversShareOfTheHostCounts(t *testing.T) {
	b, s := cuda.Backend{Driver: &faulty{}, Host: 100 * disdel.MB}, small(t)
	f, err := b.Footprint(s)
	if err != nil || f.In(footprint.Host) != 100*disdel.MB {
		t.Errorf("%v of the host, %v", f.In(footprint.Host), err)
	}
	s.Memory = 64 * disdel.MB
	if _, err := b.New(s); !errors.Is(err, disdel.OOM) {
		t.Errorf("%v, want OOM", err)
	}
}

// What the driver takes of the device is in the footprint, and a share that is too small for both is refused before a
// device is opened, with what would do.
func TestAShareOfADeviceIsKept(t *testing.T) {
	d := emulation(t)
	f := &faulty{driver: d}
	b, s := cuda.Backend{Driver: f, Context: 10 * disdel.MB}, small(t)
	needs, err := b.Footprint(s)
	if err != nil || needs.In(footprint.Device) <= 10*disdel.MB {
		t.Fatalf("%v of the device, %v", needs.In(footprint.Device), err)
	}
	s.Device = needs.In(footprint.Device) - 1
	_, err = b.New(s)
	typed := disdel.AsError(err)
	if typed == nil || typed.Kind != disdel.OOM || typed.Code != disdel.CodeDeviceMemory || f.calls["open"] > 0 ||
		!strings.Contains(typed.Hint, "resources.gpu.memory=11MB") {
		t.Errorf("%v (%+v)", err, typed)
	}
	s.Device++
	e := made(t, b, s)
	if e.Footprint().In(footprint.Device) != s.Device {
		t.Errorf("the engine holds %v, want %v", e.Footprint().In(footprint.Device), s.Device)
	}
}

// Several engines share a device for as long as its memory lasts; the next one is told how much is free, and has its
// turn once another has gone.
func TestEnginesShareADevice(t *testing.T) {
	d := emulation(t)
	d.Shared = &emulated.Shared{}
	s := small(t)
	needs, err := cuda.Backend{Driver: d}.Footprint(s)
	if err != nil {
		t.Fatal(err)
	}
	each := needs.In(footprint.Device)
	d.Memory = 2*each + each/2
	b := cuda.Backend{Driver: d}
	first, second := made(t, b, s), made(t, b, s)
	_, err = b.New(s)
	var fault *driver.Fault
	if !errors.As(err, &fault) || fault.Cause != driver.NoMemory || fault.Wanted != each || fault.Free != d.Memory-2*each {
		t.Fatalf("%v", err)
	}
	x := batch(s.Graph, 2, 1)
	one, err := first.Step(x)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := second.Step(x); err != nil || other.Loss != one.Loss {
		t.Errorf("%v beside %v, %v", other.Loss, one.Loss, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	made(t, b, s)
}

// The workers of a process that sees several devices are spread over them, and it stays on the one that it has taken.
func TestAProcessKeepsItsDevice(t *testing.T) {
	d := emulation(t)
	d.Count, d.Shared = 3, &emulated.Shared{}
	visible := "2,1"
	d.Visible = &visible
	for place, number := range []int{2, 1, 2} {
		b, s := cuda.Backend{Driver: d, Choice: &cuda.Choice{}}, small(t)
		for _, s.Place = range []int{place, place + 1} {
			e, err := b.New(s)
			if err != nil {
				t.Fatal(err)
			}
			if d.Shared.Taken(number) == 0 {
				t.Errorf("worker %d is not on device %d", s.Place, number)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	visible = ""
	_, err := cuda.Backend{Driver: d, Choice: &cuda.Choice{}}.New(small(t))
	var fault *driver.Fault
	if !errors.As(err, &fault) || fault.Cause != driver.NoDevice || !strings.Contains(fault.Said, "CUDA_VISIBLE_DEVICES") {
		t.Errorf("without a device: %v", err)
	}
}
