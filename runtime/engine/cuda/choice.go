package cuda

import "sync"

// Choice is the device that a process computes on once it has computed on one: a warm action stays on its device, where
// its driver has a context and its kernels. The zero value has not chosen. It is safe for concurrent use.
//
// A process that sees one device takes that. Where it sees several, which is so where nobody divides a machine's
// devices among its containers, the workers of a job take one after another.
type Choice struct {
	mu    sync.Mutex
	made  bool
	index int
}

// of is the device for an action at a place among the job's.
func (c *Choice) of(b Backend, place int) (int, error) {
	if c == nil {
		return b.Device, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made {
		return c.index, nil
	}
	found, err := b.Driver.Devices()
	if err != nil {
		return 0, err
	}
	c.made, c.index = true, found[max(0, place)%len(found)].Index
	return c.index, nil
}
