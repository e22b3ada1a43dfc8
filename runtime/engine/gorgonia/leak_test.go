package gorgonia

import (
	"runtime"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// A warm container that changes workers makes engine after engine: what a closed one held is given back.
func TestClosedEnginesLeaveNothing(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "digits-cnn", Input: []int{1, 8, 8}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	x, y := batch(g, 32, 10, 1)
	live := func(engines int) uint64 {
		for range engines {
			e, err := New(enginetest.On(g, engine.Spec{BatchSize: 32, Optimizer: sgd1, Training: true}))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := enginetest.Train(e, x, y); err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 { // finalizers, and pools that keep things for two cycles
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live(2)
	if after := live(8); after > before+1<<20 {
		t.Errorf("eight more engines leave %d KB", (after-before)>>10)
	}
}
