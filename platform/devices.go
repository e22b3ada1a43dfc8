package platform

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"

	"github.com/disdel/disdel"
)

// Device is an accelerator that containers may be given.
type Device struct {
	ID     string       // as CUDA_VISIBLE_DEVICES names it
	Memory disdel.Bytes // that containers may take of it
}

// devices are a pool's accelerators and what is taken of them, under the pool's lock. A container whose action asks for
// memory of one (annotation gpu-memory, in MB) gets a part of one device, sees that device alone, and has it until it
// is removed: a warm action stays where its engine is. Parts are what was asked for; nobody sees to it that a process
// takes no more, as nobody can but the driver.
//
// A part is taken where most is free, so that what may run at the same time does.
type devices struct {
	all   []Device
	taken []disdel.Bytes
	users []map[string]int // by device: containers of each package
}

// part is what a container has of a device; the zero value is none.
type part struct {
	device int
	memory disdel.Bytes
	bundle string
}

// want is what an action asks for.
type want struct {
	memory disdel.Bytes
	most   int // devices of its package; 0: any number
	bundle string
}

func newDevices(all []Device) *devices {
	d := &devices{all: all, taken: make([]disdel.Bytes, len(all)), users: make([]map[string]int, len(all))}
	for i := range d.users {
		d.users[i] = map[string]int{}
	}
	return d
}

// of is what an action asks for. One that asks for more than any device has gets none, and says so itself: it would
// wait for ever, and all behind it.
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

// numbered is the value of an annotation that is a whole number, 0 where it is none.
func numbered(list []keyValue, key string) int {
	for _, a := range list {
		var n int
		if a.Key == key && json.Unmarshal(a.Value, &n) == nil {
			return max(0, n)
		}
	}
	return 0
}

// find is the part that an action would get of what is free.
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

// take and give count a part as taken, or as free again.
func (d *devices) take(p part) { d.count(p, 1) }
func (d *devices) give(p part) { d.count(p, -1) }

func (d *devices) count(p part, by int) {
	if p.memory == 0 {
		return
	}
	d.taken[p.device] += disdel.Bytes(by) * p.memory
	d.users[p.device][p.bundle] += by
}

// reclaim says how many of the idle containers, oldest first, have to go until an action gets its part; none of them
// does where all would not do.
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

// status is what is taken of each.
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

// environment is what a container with a part sees of devices: that one alone, and one without a part none, whatever
// its machine has. Where the platform has none it says nothing.
func (d *devices) environment(p part) []string {
	switch {
	case len(d.all) == 0:
		return nil
	case p.memory == 0:
		return []string{"CUDA_VISIBLE_DEVICES="}
	}
	out := []string{"CUDA_VISIBLE_DEVICES=" + d.all[p.device].ID}
	if where := os.Getenv("LD_LIBRARY_PATH"); where != "" { // of the driver's library, where that is at no usual place
		out = append(out, "LD_LIBRARY_PATH="+where)
	}
	return out
}

// clear takes a part of a device, for which it removes as many idle containers, oldest first, as it takes. That they
// are enough has been looked at.
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

// abandon is discard, of a place whose container may have had a part of a device.
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

// checkDevices refuses devices that cannot be told apart, or that have no memory.
func (c *Config) checkDevices() error {
	seen := map[string]bool{}
	for _, d := range c.Devices {
		if d.ID == "" || seen[d.ID] || d.Memory <= 0 {
			return fmt.Errorf("device %q is named twice, or has no name or no memory (%v)", d.ID, d.Memory)
		}
		seen[d.ID] = true
	}
	return nil
}
