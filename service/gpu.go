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

// withGPUs is a platform's limits with its GPUs: those that Config tells of, else those that this machine's engine
// sees where the platform is embedded, else those that a platform of disdel tells of. The smallest one's memory counts.
// No API tells of a cluster's.
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
	if said := s.cfg.GPUs; said.Count > 0 {
		l.Devices, l.MaxDevice = said.Count, said.Memory
		return l
	}
	if told := s.platformStatus(ctx); told != nil {
		for _, g := range told.GPUs {
			count(g.Bytes)
		}
	}
	return l
}

// devices are the GPUs of this machine that the embedded platform hands to containers: as many as Config says, numbered
// as CUDA numbers them, or those that the engine sees, by their own names.
func (s *core) devices() []platform.Device {
	if said := s.cfg.GPUs; said.Count > 0 || s.gpuEngine == nil {
		return configuredDevices(said)
	}
	found, err := s.gpus()
	if err != nil {
		s.log.WithError(err).Debug("no GPU is planned with")
	}
	return foundDevices(found)
}

// Devices are the GPUs of this machine that a platform hands to containers: as many as are said, numbered as CUDA
// numbers them, or, where nothing is said, those that the program's engine for GPUs sees, by their own names.
func Devices(said GPUs) []platform.Device {
	if said.Count > 0 {
		return configuredDevices(said)
	}
	found, _ := gpu.Devices() // none where there is no engine, no driver or no device: doctor gpu says which
	return foundDevices(found)
}

func configuredDevices(said GPUs) (out []platform.Device) {
	for i := range said.Count {
		out = append(out, platform.Device{ID: strconv.Itoa(i), Memory: said.Memory})
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

// checkGPU returns Invalid for a job that asks for a GPU where the program has no engine for one, and Unavailable where
// the platform has none.
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

// supportsGPUs asks the program's engine for GPUs whether it computes a network; nil where it has none.
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

// chooseDevice is a job whose device is auto with the one that trains it: a GPU where the program has an engine for it, the
// platform a GPU, and the engine the network's layers; else the processor, with a note that says why. In a program
// without such an engine auto is the processor, and nobody waits for a GPU: it stays auto, and nothing is noted.
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

// deviceOf is the device that auto stands for, "" where there is nothing to decide, and why it is no GPU.
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
