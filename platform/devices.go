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
type part struct {
	device int
	memory disdel.Bytes
	bundle string
}

// deviceNeed is what an action asks for.
type want struct {
	memory disdel.Bytes
	most   int // devices that its package may use; 0: any number
	bundle string
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
func (d *devices) of(a *action) want {
	w := want{
		memory: disdel.Bytes(numbered(a.Annotations, disdel.AnnotationGPUMemory)) * disdel.MB,
		most:   numbered(a.Annotations, disdel.AnnotationGPUCount), bundle: path.Dir(a.path()),
	}
	for _, device := range d.all {
		if w.memory > 0 && w.memory <= device.Memory {
			return w
		}
	}
	return want{}
}

// intAnnotation is the value of an annotation that is a whole number; else 0.
func numbered(list []keyValue, key string) int {
	for _, a := range list {
		var n int
		if a.Key == key && json.Unmarshal(a.Value, &n) == nil {
			return max(0, n)
		}
	}
	return 0
}

// find returns the share that an action would get now.
func (d *devices) find(w want) (part, bool) {
	if w.memory == 0 {
		return part{}, true
	}
	spread := 0
	for _, users := range d.users {
		if users[w.bundle] > 0 {
			spread++
		}
	}
	best, most := -1, disdel.Bytes(-1)
	for i, device := range d.all {
		free := device.Memory - d.taken[i]
		closed := w.most > 0 && spread >= w.most && d.users[i][w.bundle] == 0
		if !closed && free >= w.memory && free > most {
			best, most = i, free
		}
	}
	return part{best, w.memory, w.bundle}, best >= 0
}

// take and release count a share as taken or free.
func (d *devices) take(p part) { d.count(p, 1) }
func (d *devices) give(p part) { d.count(p, -1) }

func (d *devices) count(p part, by int) {
	if p.memory == 0 {
		return
	}
	d.taken[p.device] += disdel.Bytes(by) * p.memory
	d.users[p.device][p.bundle] += by
}

// reclaim returns how many of the idle containers, oldest first, have to go until an action gets its share; ok is false
// if all are not enough.
func (d *devices) reclaim(w want, idle []*container) (gone int, ok bool) {
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
		trial.give(idle[gone].part)
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
func (d *devices) environment(p part) []string {
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
func (p *pool) clear(w want) part {
	gone, _ := p.devices.reclaim(w, p.free)
	keep := p.free[:0:0]
	for i, c := range p.free {
		if i < gone && c.part.memory > 0 {
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
func (p *pool) abandon(s *seat) {
	of := s.part
	if s.container != nil {
		of = s.container.part
	}
	p.mu.Lock()
	p.devices.give(of)
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
