package service

import (
	"errors"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// Limits have the smallest GPU's memory, of this machine's platform alone, and of a program with an engine for GPUs.
func TestLimitsHaveTheSmallestGPU(t *testing.T) {
	two := func() ([]backends.GPU, error) {
		return []backends.GPU{{Memory: 80 * disdel.GB}, {Memory: 16 * disdel.GB}}, nil
	}
	none := func() ([]backends.GPU, error) { return nil, errors.New("none") }
	for name, c := range map[string]struct {
		gpus func() ([]backends.GPU, error)
		host string
		want disdel.Bytes
	}{
		"two": {two, "", 16 * disdel.GB}, "none": {none, "", 0}, "a cluster": {two, "https://whisk.example", 0},
	} {
		s := &core{gpus: c.gpus, log: logrus.New()}
		s.cfg.OpenWhisk.Host = c.host
		want := c.want
		if !backends.WithGPUs {
			want = 0
		}
		if got := s.accelerated(disdel.PlatformLimits{}).MaxDevice; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// A job on a GPU is refused where the program has no engine for it, or the machine no GPU.
func TestAJobOnAGPUNeedsOne(t *testing.T) {
	s := &core{gpus: func() ([]backends.GPU, error) { return nil, errors.New("no device") }, log: logrus.New()}
	want := disdel.Invalid
	if backends.WithGPUs {
		want = disdel.Unavailable
	}
	if err := s.onGPU(disdel.Job{Resources: disdel.Resources{Device: disdel.DeviceGPU}}); !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
	for _, device := range []string{"", disdel.DeviceCPU} {
		if err := s.onGPU(disdel.Job{Resources: disdel.Resources{Device: device}}); err != nil {
			t.Errorf("%q: %v", device, err)
		}
	}
}
