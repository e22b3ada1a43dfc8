package service

import (
	"errors"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/gpu"
)

func twoGPUs() ([]gpu.Device, error) {
	return []gpu.Device{{ID: "GPU-a", Memory: 80 * disdel.GB}, {ID: "GPU-b", Memory: 16 * disdel.GB}}, nil
}

func noGPU() ([]gpu.Device, error) { return nil, errors.New("no device") }

func anyNetwork(*model.Graph) error { return nil }

// Limits have the number of GPUs and the smallest one's memory: of this machine's platform, as far as the program's
// engine sees them, or as they were told.
func TestLimitsHaveTheSmallestGPU(t *testing.T) {
	for name, c := range map[string]struct {
		gpus  func() ([]gpu.Device, error)
		host  string
		said  GPUs
		lacks bool // an engine for GPUs
		count int
		want  disdel.Bytes
	}{
		"two":            {gpus: twoGPUs, count: 2, want: 16 * disdel.GB},
		"none":           {gpus: noGPU},
		"no engine":      {gpus: twoGPUs, lacks: true},
		"told here":      {gpus: noGPU, said: GPUs{3, 8 * disdel.GB}, count: 3, want: 8 * disdel.GB},
		"told elsewhere": {gpus: twoGPUs, host: "http://127.0.0.1:1", said: GPUs{4, disdel.GB}, count: 4, want: disdel.GB},
		"a cluster":      {gpus: twoGPUs, host: "http://127.0.0.1:1"},
	} {
		s := &core{ctx: t.Context(), gpus: c.gpus, log: logrus.New(), gpuEngine: anyNetwork}
		if c.lacks {
			s.gpuEngine = nil
		}
		s.cfg.OpenWhisk.Host, s.cfg.GPUs = c.host, c.said
		l := s.withGPUs(t.Context(), disdel.PlatformLimits{})
		if l.Accelerators() != c.count || l.MaxDevice != c.want {
			t.Errorf("%s: %d of %v, want %d of %v", name, l.Accelerators(), l.MaxDevice, c.count, c.want)
		}
		if here := s.devices(); c.host == "" && len(here) != c.count {
			t.Errorf("%s: containers are given %v", name, here)
		}
	}
}

// A job on a GPU is refused, before anything starts, where the program has no engine for it, or the platform no GPU.
func TestAJobOnAGPUNeedsOne(t *testing.T) {
	on := func(device string) disdel.Job { return disdel.Job{Resources: disdel.Resources{Device: device}} }
	here := &core{gpus: noGPU, log: logrus.New(), gpuEngine: anyNetwork}
	there := &core{gpus: noGPU, log: logrus.New(), gpuEngine: anyNetwork}
	there.cfg.OpenWhisk.Host = "http://127.0.0.1:1"
	none, some := disdel.PlatformLimits{}, disdel.PlatformLimits{MaxDevice: disdel.GB}
	for name, c := range map[string]struct {
		s      *core
		device string
		l      disdel.PlatformLimits
		want   disdel.Kind
		says   string
	}{
		"no engine":       {&core{}, disdel.DeviceGPU, some, disdel.Invalid, "no engine for GPUs"},
		"none here":       {here, disdel.DeviceGPU, none, disdel.Unavailable, "this machine has none"},
		"none known":      {there, disdel.DeviceGPU, none, disdel.Unavailable, "nobody said"},
		"one":             {here, disdel.DeviceGPU, some, 0, ""},
		"auto":            {here, "", none, 0, ""},
		"the processor's": {here, disdel.DeviceCPU, none, 0, ""},
	} {
		err := c.s.checkGPU(on(c.device), c.l)
		if c.want == 0 && err != nil || c.want != 0 && (!errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// auto takes a GPU where there is one for the network, and else the processor, with the reason.
func TestAutoTakesWhatThereIs(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	auto := disdel.Job{Training: disdel.Training{Backend: disdel.BackendNative}}
	processor, other := auto, auto
	processor.Resources.Device, other.Training.Backend = disdel.DeviceCPU, disdel.BackendGorgonia
	unknown := func(*model.Graph) error { return errors.New("no such layer") }
	for name, c := range map[string]struct {
		s      *core
		job    disdel.Job
		device string
		why    string
	}{
		"a GPU":           {&core{gpus: twoGPUs, gpuEngine: anyNetwork}, auto, disdel.DeviceGPU, ""},
		"no GPU":          {&core{gpus: noGPU, gpuEngine: anyNetwork}, auto, disdel.DeviceCPU, "there is no GPU"},
		"not the layers":  {&core{gpus: twoGPUs, gpuEngine: unknown}, auto, disdel.DeviceCPU, "no such layer"},
		"no engine":       {&core{gpus: twoGPUs}, auto, "", ""},
		"the processor":   {&core{gpus: twoGPUs, gpuEngine: anyNetwork}, processor, "", ""},
		"another backend": {&core{gpus: twoGPUs, gpuEngine: anyNetwork}, other, "", ""},
	} {
		c.s.log = logrus.New()
		device, why := c.s.deviceOf(t.Context(), c.job, g)
		if device != c.device || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s: %q, %q", name, device, why)
		}
	}
}
