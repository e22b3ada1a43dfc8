package actions

import (
	"runtime/debug"
	"runtime/metrics"

	"github.com/disdel/disdel"
)

// How much the collector may leave in a process, which is alone in its container.

// limitHeap frees what the phase before left behind, and sets the collector's memory limit to what the estimate says
// the process needs, so that garbage cannot take it beyond the estimate. The limit is in any case below the share of
// the action's limit at which the runtime would stop the process. Memory outside the Go heap (the program's data, an
// engine's slab) is subtracted. The setting is the process's, which is alone in its container.
//
// Platforms have a least limit, which is far above the estimate of a small action. There nothing is given back to the
// system between phases: nobody else could use that memory, and a round of few batches would spend most of its time on
// giving it back. The collector's limit is the same whatever the action's, so that the peak is, too.
func (h *Host) limitHeap(limit, estimate, slab disdel.Bytes) {
	h.relaxed = estimate > 0 && estimate <= small && limit >= 2*estimate
	h.free()
	target := limit / 100 * 96
	if estimate > 0 {
		target = min(target, estimate)
	}
	debug.SetMemoryLimit(int64(max(target-outsideHeap-slab, leastHeap)))
}

// roomFor has the collector wait for so many more bytes of garbage than it would, until restore is called. What it goes
// by is what lives, and the program's own data, at the last collection. The memory limit, which counts what the runtime
// has mapped and nobody touched yet, is raised to what that needs, and stays below the container's: a limit that what
// lives alone takes up has the collector run without a pause, several times a step.
func roomFor(garbage, container, slab disdel.Bytes) (restore func()) {
	found := []metrics.Sample{
		{Name: "/gc/gogc:percent"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/scan/globals:bytes"},
		{Name: "/gc/scan/stack:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(found)
	value := func(i int) disdel.Bytes { return disdel.Bytes(found[i].Value.Uint64()) }
	percent, lives := value(0), value(1)+value(2)+value(3)
	if percent < 0 || percent > mostPercent { // below 0: it goes by the limit alone
		return func() {}
	}
	limit := debug.SetMemoryLimit(-1)
	most := value(4) - value(5) + roomsFor*garbage
	if container > 0 {
		most = min(most, container/100*96-outsideHeap-slab)
	}
	debug.SetMemoryLimit(max(limit, int64(most)))
	debug.SetGCPercent(int(min(percent+100*garbage/max(1, lives), mostPercent)))
	return func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(int(percent))
	}
}

const (
	// mostPercent is the most that the collector's target is raised to, where little lives.
	mostPercent = 1000
	// roomsFor is how many times the garbage the limit is above what is mapped already: it is there for what goes beyond
	// all that is foreseen, and the target is what is to be gone by.
	roomsFor = 3
)

// free returns garbage to the system: what a phase leaves, the weights that came in above all, whose room the next one
// needs.
func (h *Host) free() {
	if !h.relaxed {
		debug.FreeOSMemory()
	}
}

// small is the largest estimate of an action that may keep its garbage between phases.
const small = 12 * disdel.MB

// leastHeap is what no bound may go below: the collector would run all the time.
const leastHeap = 6 * disdel.MB

// outsideHeap is the memory that the Go runtime does not count: the program's data and what the kernel keeps for the
// process.
const outsideHeap = 3 * disdel.MB
