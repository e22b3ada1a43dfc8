package platform

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"

	"github.com/disdel/disdel"
)

// Device is an accelerator that containers may share.
type Device struct {
	ID     string       // as in CUDA_VISIBLE_DEVICES
	Memory disdel.Bytes // that containers may use
}

// devices are a pool's accelerators and their use, guarded by the pool's lock. A container whose action has the
// annotation gpu-memory (in MB) gets a share of one device until it is removed, and sees only that device. Nothing
// enforces the share, because only the driver could.
//
// A share is taken from the device with the most free memory, so that containers spread over the devices.
type devices struct {
	all   []Device
	taken []disdel.Bytes
	users []map[string]int // for each device: containers by package
}

// deviceShare is a container's share of a device; the zero value is none.
type deviceShare struct {
	device int
	memory disdel.Bytes
	pkg    string
}

// deviceNeed is what an action asks for.
type deviceNeed struct {
	memory     disdel.Bytes
	maxDevices int // devices that its package may use; 0: any number
	pkg        string
}

func newDevices(all []Device) *devices {
	d := &devices{all: all, taken: make([]disdel.Bytes, len(all)), users: make([]map[string]int, len(all))}
	for i := range d.users {
		d.users[i] = map[string]int{}
	}
	return d
}

// needOf is what an action asks for. An action that asks for more than any device has gets no device and fails by
// itself: otherwise it would block the queue forever.
func (d *devices) needOf(a *action) deviceNeed {
	w := deviceNeed{
		memory:     disdel.Bytes(intAnnotation(a.Annotations, disdel.AnnotationGPUMemory)) * disdel.MB,
		maxDevices: intAnnotation(a.Annotations, disdel.AnnotationGPUCount), pkg: path.Dir(a.path()),
	}
	for _, device := range d.all {
		if w.memory > 0 && w.memory <= device.Memory {
			return w
		}
	}
	return deviceNeed{}
}

// intAnnotation is the value of an annotation that is a whole number; else 0.
func intAnnotation(list []keyValue, key string) int {
	for _, a := range list {
		var n int
		if a.Key == key && json.Unmarshal(a.Value, &n) == nil {
			return max(0, n)
		}
	}
	return 0
}

// find returns the share that an action would get now.
func (d *devices) find(w deviceNeed) (deviceShare, bool) {
	if w.memory == 0 {
		return deviceShare{}, true
	}
	spread := 0
	for _, users := range d.users {
		if users[w.pkg] > 0 {
			spread++
		}
	}
	best, maximum := -1, disdel.Bytes(-1)
	for i, device := range d.all {
		free := device.Memory - d.taken[i]
		closed := w.maxDevices > 0 && spread >= w.maxDevices && d.users[i][w.pkg] == 0
		if !closed && free >= w.memory && free > maximum {
			best, maximum = i, free
		}
	}
	return deviceShare{best, w.memory, w.pkg}, best >= 0
}

// take and release count a share as taken or free.
func (d *devices) take(p deviceShare)    { d.count(p, 1) }
func (d *devices) release(p deviceShare) { d.count(p, -1) }

func (d *devices) count(p deviceShare, by int) {
	if p.memory == 0 {
		return
	}
	d.taken[p.device] += disdel.Bytes(by) * p.memory
	d.users[p.device][p.pkg] += by
}

// reclaim returns how many of the idle containers, oldest first, have to go until an action gets its share. ok is false
// if all are not enough.
func (d *devices) reclaim(w deviceNeed, idle []*container) (gone int, ok bool) {
	trial := newDevices(d.all)
	copy(trial.taken, d.taken)
	for i, users := range d.users {
		maps.Copy(trial.users[i], users)
	}
	for gone = 0; ; gone++ {
		if _, ok := trial.find(w); ok {
			return gone, true
		}
		if gone == len(idle) {
			return 0, false
		}
		trial.release(idle[gone].device)
	}
}

// status is the use of each device.
func (d *devices) status() (out []DeviceStatus) {
	for i, device := range d.all {
		s := DeviceStatus{Device: device, Used: d.taken[i]}
		for _, n := range d.users[i] {
			s.Containers += n
		}
		out = append(out, s)
	}
	return out
}

// environment shows a container only its own device, or none. It is empty if the platform has no devices.
func (d *devices) environment(p deviceShare) []string {
	switch {
	case len(d.all) == 0:
		return nil
	case p.memory == 0:
		return []string{"CUDA_VISIBLE_DEVICES="}
	}
	out := []string{"CUDA_VISIBLE_DEVICES=" + d.all[p.device].ID}
	if where := os.Getenv("LD_LIBRARY_PATH"); where != "" { // finds the driver's library in an unusual folder
		out = append(out, "LD_LIBRARY_PATH="+where)
	}
	return out
}

// takeDevice takes a share for an action and removes as many idle containers as that needs. The caller has checked that
// they are enough.
func (p *pool) takeDevice(w deviceNeed) deviceShare {
	gone, _ := p.devices.reclaim(w, p.free)
	keep := p.free[:0:0]
	for i, c := range p.free {
		if i < gone && c.device.memory > 0 {
			p.remove(c)
		} else {
			keep = append(keep, c)
		}
	}
	p.free = keep
	at, _ := p.devices.find(w)
	p.devices.take(at)
	return at
}

// discardSlot is discard for a slot whose container may have a device share.
func (p *pool) discardSlot(s *containerSlot) {
	device := s.device
	if s.container != nil {
		device = s.container.device
	}
	p.mu.Lock()
	p.devices.release(device)
	p.mu.Unlock()
	p.discard(s.action)
}

// checkDevices refuses devices without a name or memory, and duplicate names.
func (c *Config) checkDevices() error {
	seen := map[string]bool{}
	for _, d := range c.Devices {
		if d.ID == "" || seen[d.ID] || d.Memory <= 0 {
			return fmt.Errorf("device %q has no name, no memory (%v) or the name of another device", d.ID, d.Memory)
		}
		seen[d.ID] = true
	}
	return nil
}
