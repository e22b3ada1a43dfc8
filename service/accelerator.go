package service

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// accelerated is a platform's limits with the memory of this machine's smallest GPU, where the platform is embedded and
// the program has an engine for GPUs. No API tells of a cluster's.
func (s *core) accelerated(l disdel.PlatformLimits) disdel.PlatformLimits {
	if !backends.WithGPUs || !s.embedded() {
		return l
	}
	found, err := s.gpus()
	if err != nil {
		s.log.WithError(err).Debug("no GPU is planned with")
	}
	for _, g := range found {
		if l.MaxDevice == 0 || g.Memory < l.MaxDevice {
			l.MaxDevice = g.Memory
		}
	}
	return l
}

// onGPU returns Invalid for a job that asks for a GPU where the program has no engine for one, and Unavailable where
// the machine of an embedded platform has none.
func (s *core) onGPU(job disdel.Job) error {
	if job.Resources.Device != disdel.DeviceGPU {
		return nil
	}
	if !backends.WithGPUs {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "plan job", Msg: "resources.device is gpu, and this program has no engine for GPUs",
			Hint: "--set resources.device=cpu, or a program that make cuda has built; disdel doctor gpu says what is there",
		}
	}
	if !s.embedded() {
		return nil
	}
	if _, err := s.gpus(); err != nil {
		return &disdel.Error{
			Kind: disdel.Unavailable, Op: "plan job", Msg: "resources.device is gpu, and this machine has none that can be used",
			Hint: "--set resources.device=cpu; disdel doctor gpu says what is missing", Err: err,
		}
	}
	return nil
}
