package service

import (
	"context"
	"strconv"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/runtime/engine/gpu"
)

// withGPUs adds the platform's GPUs to its limits: those of Config, else those of this machine if the platform is
// embedded, else those that a platform of disdel reports. OpenWhisk's API does not report GPUs. MaxDevice is the memory
// of the smallest GPU.
func (s *core) withGPUs(ctx context.Context, l disdel.PlatformLimits) disdel.PlatformLimits {
	count := func(memory disdel.Bytes) {
		l.Devices++
		if l.MaxDevice == 0 || memory < l.MaxDevice {
			l.MaxDevice = memory
		}
	}
	if s.embedded() {
		for _, d := range s.devices() {
			count(d.Memory)
		}
		return l
	}
	if gpus := s.cfg.GPUs; gpus.Count > 0 {
		l.Devices, l.MaxDevice = gpus.Count, gpus.Memory
		return l
	}
	if status := s.platformStatus(ctx); status != nil {
		for _, g := range status.GPUs {
			count(g.Bytes)
		}
	}
	return l
}

// devices are the GPUs of this machine that the embedded platform gives to containers: those of Config, numbered as
// CUDA does, or those that the engine sees, by their names.
func (s *core) devices() []platform.Device {
	if c := s.cfg.GPUs; c.Count > 0 || s.gpuEngine == nil {
		return configuredDevices(c)
	}
	found, err := s.gpus()
	if err != nil {
		s.log.WithError(err).Debug("no GPU is planned with")
	}
	return foundDevices(found)
}

// Devices returns the GPUs of this machine that a platform gives to containers: the configured ones, numbered as CUDA
// does, or if none are configured those that the program's engine sees, by their names.
func Devices(configured GPUs) []platform.Device {
	if configured.Count > 0 {
		return configuredDevices(configured)
	}
	found, _ := gpu.Devices() // an error means no engine, driver or device; doctor gpu says which
	return foundDevices(found)
}

func configuredDevices(configured GPUs) (out []platform.Device) {
	for i := range configured.Count {
		out = append(out, platform.Device{ID: strconv.Itoa(i), Memory: configured.Memory})
	}
	return out
}

func foundDevices(found []gpu.Device) (out []platform.Device) {
	for _, g := range found {
		id := g.ID
		if id == "" {
			id = strconv.Itoa(g.Index)
		}
		out = append(out, platform.Device{ID: id, Memory: g.Memory})
	}
	return out
}

// checkGPU returns Invalid for a job that needs a GPU if the program has no engine for GPUs, and Unavailable if the
// platform has no GPU.
func (s *core) checkGPU(job disdel.Job, l disdel.PlatformLimits) error {
	if job.Resources.Device != disdel.DeviceGPU {
		return nil
	}
	if s.gpuEngine == nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "plan job", Msg: "resources.device is gpu, and this program has no engine for GPUs",
			Hint: "--set resources.device=cpu, or a program that make cuda has built; disdel doctor gpu says what is there",
		}
	}
	if l.Accelerators() > 0 {
		return nil
	}
	if !s.embedded() {
		return &disdel.Error{
			Kind: disdel.Unavailable, Op: "plan job", Msg: "resources.device is gpu, and nobody said that the platform has one",
			Hint: "--gpus N --gpu-memory SIZE say what it has; or --set resources.device=cpu",
		}
	}
	_, err := s.gpus()
	return &disdel.Error{
		Kind: disdel.Unavailable, Op: "plan job", Msg: "resources.device is gpu, and this machine has none that can be used",
		Hint: "--set resources.device=cpu; disdel doctor gpu says what is missing", Err: err,
	}
}

// supportsGPUs returns a function that reports why the engine for GPUs cannot compute a network; nil if the program has
// no such engine.
func supportsGPUs() func(g *model.Graph) error {
	if !gpu.Built {
		return nil
	}
	return func(g *model.Graph) error {
		b, err := backends.Standard(nil).Find(disdel.BackendCUDA, g)
		if err != nil {
			return err
		}
		return b.Supports(g)
	}
}

// chooseDevice replaces the device "auto" of a job. It is a GPU if the program has an engine for GPUs, the platform has
// a GPU, and the engine supports the network's layers. Otherwise it is the processor, and a note says why. In a program
// without such an engine "auto" stays, and trains on the processor.
func (p *planner) chooseDevice(ctx context.Context, r controller.Resolved) controller.Resolved {
	device, why := p.deviceOf(ctx, r.Job, r.Graph)
	if device == "" {
		return r
	}
	if r.Job.Resources.Device = device; device == disdel.DeviceGPU {
		r.Job.Training.Backend = disdel.BackendCUDA
		return r
	}
	p.journal.add(Noted{"trained by the processor: " + why})
	return r
}

// deviceOf returns the device for "auto", and why it is no GPU. device is "" if there is nothing to decide.
func (s *core) deviceOf(ctx context.Context, job disdel.Job, g *model.Graph) (device, why string) {
	if job.Resources.Device != "" || s.gpuEngine == nil || job.Training.Backend != disdel.BackendNative ||
		g.Sparse() != nil || g.Custom() != nil {
		return "", ""
	}
	if s.withGPUs(ctx, disdel.PlatformLimits{}).Accelerators() == 0 {
		return disdel.DeviceCPU, "there is no GPU, and disdel doctor gpu says what is missing"
	}
	if err := s.gpuEngine(g); err != nil {
		return disdel.DeviceCPU, err.Error()
	}
	return disdel.DeviceGPU, ""
}
