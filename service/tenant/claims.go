package tenant

import (
	"sync"

	"github.com/disdel/disdel"
)

// Claims are bytes that the running uploads and unfinished jobs of a tenant may still use, on the disk or in Redis. The
// zero value has no claims.
type Claims struct {
	mu   sync.Mutex
	next int                  // guarded by mu: number of the next claim
	all  map[int]disdel.Bytes // guarded by mu: by number
}

// Add adds a claim. It returns the sum of the earlier claims. Calling release again changes nothing.
func (c *Claims) Add(more disdel.Bytes) (before disdel.Bytes, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.all {
		before += n
	}
	if c.all == nil {
		c.all = map[int]disdel.Bytes{}
	}
	n := c.next
	c.next++
	c.all[n] = more
	return before, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, n)
	}
}
