package platform

import "github.com/disdel/disdel"

// Status is what the container pool holds at one moment.
type Status struct {
	Running   int          // serve an activation, or start for one
	Ready     int          // idle
	Paused    int          // idle and stopped
	Prewarmed int          // started, of no action yet
	Queued    int          // activations that wait
	Used      disdel.Bytes // reserved for containers: their limits
	Resident  disdel.Bytes // that they really hold
	Busy      disdel.Bytes // of Used, by containers that serve an activation, or start for one
	Memory    disdel.Bytes // of the pool

	Devices []DeviceStatus // accelerators
}

// DeviceStatus is an accelerator, and what containers have of it.
type DeviceStatus struct {
	Device
	Used       disdel.Bytes
	Containers int
}

// Status tells what the container pool holds.
func (p *Platform) Status() Status {
	s := p.pool.status()
	s.Resident = p.resident()
	return s
}

func (p *pool) status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		Running: p.busy, Prewarmed: len(p.prewarmed), Queued: len(p.queue), Used: p.used, Busy: p.used, Memory: p.total,
	}
	s.Devices = p.devices.status()
	for _, c := range p.prewarmed {
		s.Busy -= c.memory
	}
	for size, n := range p.coming {
		s.Busy -= disdel.Bytes(n) * size.memory
	}
	for _, c := range p.free {
		s.Busy -= c.memory
		if c.paused {
			s.Paused++
		} else {
			s.Ready++
		}
	}
	return s
}
