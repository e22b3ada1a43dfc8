package actions

import (
	"runtime/debug"
	"runtime/metrics"

	"github.com/disdel/disdel"
)

// Bounds of the garbage collector in a process that is alone in its container.

// limitHeap frees the garbage of the phase before, and sets the collector's memory limit to the estimate, so that
// garbage cannot exceed it. The limit always stays below the share of the action's limit at which the runtime would
// stop the process. Memory outside the Go heap (the program's data, an engine's slab) is subtracted.
//
// Small actions get the platform's least limit, which is far above their estimate. There nothing is returned to the
// system between phases: nobody else could use that memory, and returning it would take most of a short round.
//
// The runtime counts more than it uses. In the smallest actions, a limit at the estimate is therefore below what is
// live, and the collector would take a third of the processor time or more. There the limit is higher, and the
// collector waits for a small share of garbage, which the estimate counts. They return nothing between phases, whatever
// their limit.
func (h *Host) limitHeap(limit, estimate, slab disdel.Bytes) {
	if h.shared {
		return
	}
	tiny := estimate > 0 && estimate <= tinyEstimate
	h.relaxed = tiny || estimate > 0 && estimate <= small && limit >= 2*estimate
	h.free()
	target := limit / 100 * 96
	if tiny != h.tiny {
		h.tiny = tiny
		percent := CollectEvery
		if tiny {
			percent = tinyPercent
		}
		debug.SetGCPercent(percent)
	}
	if h.tiny {
		filled := max(0, estimate-untouchedBelow) * 2 / 5
		debug.SetMemoryLimit(int64(min(target, estimate) + untouched - filled - slab))
		return
	}
	if estimate > 0 {
		target = min(target, estimate)
	}
	debug.SetMemoryLimit(int64(max(target-outsideHeap-slab, leastHeap)))
}

// roomFor lets the collector wait for more garbage, until restore is called. It goes by the live heap at the last
// collection. The memory limit is raised accordingly and stays below the container's: a limit at the size of the live
// heap would make the collector run without a pause.
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
	maximum := value(4) - value(5) + roomsFor*garbage
	if container > 0 {
		maximum = min(maximum, container/100*96-outsideHeap-slab)
	}
	debug.SetMemoryLimit(max(limit, int64(maximum)))
	debug.SetGCPercent(int(min(percent+100*garbage/max(1, lives), mostPercent)))
	return func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(int(percent))
	}
}

// stagePercent is the collector's percentage in a stage. Each message leaves some garbage, and the estimate has no room
// for as much garbage as is live.
const stagePercent = 25

// programGarbage is the room beside a user's program. What it holds fills the estimate, and without room each message
// of a step and each look at its memory would start the collector.
const programGarbage = 2 * disdel.MB

const (
	// mostPercent bounds the collector's target if little is live.
	mostPercent = 1000
	// roomsFor is the distance of the limit from the mapped memory, in multiples of the garbage: a reserve for the
	// unforeseen.
	roomsFor = 3
)

// free returns garbage to the system, above all the weights that came in, so that the next phase can use the memory.
func (h *Host) free() {
	if !h.relaxed && !h.shared {
		debug.FreeOSMemory()
	}
}

// small is the largest estimate of an action that keeps its garbage between phases.
const small = 12 * disdel.MB

// CollectEvery is the collector's percentage in actions: memory is what they are billed and killed for.
const CollectEvery = 40

// In actions with an estimate of at most tinyEstimate, the collector starts when the heap has grown by tinyPercent.
// untouched is memory that the Go runtime counts although the process has not used it. Actions above untouchedBelow use
// some of it.
const (
	tinyEstimate   = 11 * disdel.MB
	tinyPercent    = 20
	untouched      = 4 * disdel.MB
	untouchedBelow = 8 * disdel.MB
)

// leastHeap is the lowest bound: below it the collector would run all the time.
const leastHeap = 6 * disdel.MB

// outsideHeap is the memory that the Go runtime does not count: the program's data and what the kernel keeps for the
// process.
const outsideHeap = 3 * disdel.MB
