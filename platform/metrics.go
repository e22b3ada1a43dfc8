package platform

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// counters is what a platform did since it was started.
type counters struct {
	ended map[string]*atomic.Int64 // by an activation's status
	cold  atomic.Int64             // activations that had to initialise a container
}

// statuses are an activation's statuses in the order of their codes.
var statuses = [...]string{statusSuccess, statusApplication, statusDeveloper, statusInternal}

func newCounters() *counters {
	c := &counters{ended: map[string]*atomic.Int64{}}
	for _, status := range statuses {
		c.ended[status] = &atomic.Int64{}
	}
	return c
}

// count counts an activation that ended. Those of triggers, which run nothing, are not among them.
func (c *counters) count(a *activation) {
	if n := c.ended[a.Response.Status]; n != nil {
		n.Add(1)
	}
	for _, note := range a.Annotations {
		if note.Key == "initTime" {
			c.cold.Add(1)
		}
	}
}

// metrics answers in the text format of Prometheus, with the names of OpenWhisk's own metrics where it has the same.
// Like the description at / it needs no key: it names nobody.
func (p *Platform) metrics(*request) (int, any, error) {
	var out strings.Builder
	family := func(name, kind, help string) {
		fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	total := int64(0)
	family("openwhisk_action_status_total", "counter", "Activations that ended, by how they did.")
	for _, status := range statuses {
		n := p.counters.ended[status].Load()
		total += n
		fmt.Fprintf(&out, "openwhisk_action_status_total{status=%q} %d\n", strings.ReplaceAll(status, " ", "_"), n)
	}
	family("openwhisk_action_activations_total", "counter", "Activations that ended.")
	fmt.Fprintf(&out, "openwhisk_action_activations_total %d\n", total)
	family("openwhisk_action_coldStarts_total", "counter", "Activations that had to initialise a container.")
	fmt.Fprintf(&out, "openwhisk_action_coldStarts_total %d\n", p.counters.cold.Load())
	s := p.Status()
	family("disdel_platform_containers", "gauge", "Containers by what they do.")
	for _, state := range []struct {
		name string
		n    int
	}{{"running", s.Running}, {"ready", s.Ready}, {"paused", s.Paused}, {"prewarmed", s.Prewarmed}} {
		fmt.Fprintf(&out, "disdel_platform_containers{state=%q} %d\n", state.name, state.n)
	}
	family("disdel_platform_queued", "gauge", "Activations that wait for a container.")
	fmt.Fprintf(&out, "disdel_platform_queued %d\n", s.Queued)
	family("disdel_platform_pool_bytes", "gauge", "Memory of the pool.")
	fmt.Fprintf(&out, "disdel_platform_pool_bytes %d\n", s.Memory)
	family("disdel_platform_pool_used_bytes", "gauge", "Memory of the pool that containers have.")
	fmt.Fprintf(&out, "disdel_platform_pool_used_bytes %d\n", s.Used)
	return 200, plain(out.String()), nil
}
