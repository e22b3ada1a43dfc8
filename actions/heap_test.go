package actions

import (
	"runtime/debug"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
)

// Steps that exchange get room for their garbage where the limit by the estimate has none, never beyond the
// container's, and what was set before is set again after them.
func TestStepsLeaveTheCollectorRoom(t *testing.T) {
	const tight, garbage = int64(disdel.MB), 4 * disdel.MB
	before, percent := debug.SetMemoryLimit(tight), debug.SetGCPercent(40)
	defer func() {
		debug.SetMemoryLimit(before)
		debug.SetGCPercent(percent)
	}()
	now := func() (limit int64, percent int) {
		percent = debug.SetGCPercent(100)
		debug.SetGCPercent(percent)
		return debug.SetMemoryLimit(-1), percent
	}
	restore := roomFor(garbage, 0, 0)
	if limit, percent := now(); limit < int64(roomsFor*garbage) || percent <= 40 {
		t.Errorf("a limit of %d and a target of %d %%", limit, percent)
	}
	restore()
	if limit, percent := now(); limit != tight || percent != 40 {
		t.Errorf("afterwards a limit of %d and a target of %d %%", limit, percent)
	}
	const container = 10 * disdel.MB
	restore = roomFor(garbage, container, 2*disdel.MB)
	if limit, _ := now(); limit > int64(container-2*disdel.MB-outsideHeap) {
		t.Errorf("a limit of %d in a container of %v", limit, container)
	}
	restore()
	for _, has := range []int{-1, 2 * mostPercent} { // it goes by the limit alone, or has more room than anybody asks for
		debug.SetGCPercent(has)
		restore = roomFor(garbage, 0, 0)
		if limit, percent := now(); limit != tight || percent != has {
			t.Errorf("a limit of %d and a target of %d %%, which was %d %%", limit, percent, has)
		}
		restore()
	}
}

// A host that shares its process leaves the limit of the process alone, one that does not sets it.
func TestASharedHostLeavesTheCollectorAlone(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for _, shared := range []bool{true, false} {
		h := NewHost(func(...int) (disdel.Bytes, disdel.Bytes) { return 0, 0 }, engine.Table{})
		if shared {
			h.Shared()
		}
		debug.SetMemoryLimit(int64(disdel.GB))
		h.limitHeap(512*disdel.MB, 12*disdel.MB, 0)
		if kept := debug.SetMemoryLimit(-1) == int64(disdel.GB); kept != shared {
			t.Errorf("shared %v: the limit is %d", shared, debug.SetMemoryLimit(-1))
		}
	}
}

// In a small action, the collector waits for a share of garbage. Its limit is above what the Go
// runtime counts without any job: below that it would never rest. Larger actions keep to their estimate.
func TestTheCollectorRestsInSmallActions(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	defer debug.SetGCPercent(debug.SetGCPercent(CollectEvery))
	h := NewHost(func(...int) (disdel.Bytes, disdel.Bytes) { return 0, 0 }, engine.Table{})
	for _, c := range []struct {
		limit, estimate, want disdel.Bytes
		percent               int
	}{
		{128 * disdel.MB, 8 * disdel.MB, 8*disdel.MB + untouched, tinyPercent},
		{128 * disdel.MB, 10 * disdel.MB, 10*disdel.MB + untouched - disdel.MB*4/5, tinyPercent},
		{128 * disdel.MB, tinyEstimate + 1, tinyEstimate + 1 - outsideHeap, CollectEvery},
		{12 * disdel.MB, 8 * disdel.MB, 8*disdel.MB + untouched, tinyPercent}, // as at an exact limit
	} {
		h.limitHeap(c.limit, c.estimate, 0)
		percent := debug.SetGCPercent(CollectEvery)
		debug.SetGCPercent(percent)
		if got := debug.SetMemoryLimit(-1); got != int64(c.want) || percent != c.percent {
			t.Errorf("%v of %v: a limit of %v at %d %%, not %v at %d %%", c.estimate, c.limit, disdel.Bytes(got), percent,
				c.want, c.percent)
		}
	}
}
