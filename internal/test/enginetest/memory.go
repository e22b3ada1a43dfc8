package enginetest

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// footprints: an engine says what its backend said, and more of anything takes no less.
func footprints(t *testing.T, b engine.Backend) {
	g := network(t)
	s := engine.Spec{Graph: g, BatchSize: rows, Optimizer: adam, Training: true}
	want, err := b.Footprint(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := fresh(t, b, s).Footprint(); got.Total() != want.Total() || got.Basis != want.Basis || want.Basis == 0 {
		t.Errorf("the engine says %v (%v), its backend %v (%v)", got.Total(), got.Basis, want.Total(), want.Basis)
	}
	if len(want.Layers) != len(g.Nodes) {
		t.Errorf("%d layers of %d nodes", len(want.Layers), len(g.Nodes))
	}
	minimum := disdel.Bytes(4 * g.Count().Trainable)
	if w, m := want.Sum(footprint.Weights), want.Sum(footprint.Moments); w < minimum || m < 2*minimum {
		t.Errorf("weights %v and moments %v, of at least %v and twice that", w, m, minimum)
	}
	for name, change := range map[string]func(*engine.Spec){
		"twice the batch": func(s *engine.Spec) { s.BatchSize *= 2 }, "clipping": func(s *engine.Spec) { s.ClipNorm = 1 },
	} {
		more := s
		change(&more)
		if f, err := b.Footprint(more); err != nil || f.Total() < want.Total() {
			t.Errorf("%s takes %v, without it is %v; %v", name, f.Total(), want.Total(), err)
		}
	}
	s.Training = false
	if f, err := b.Footprint(s); err != nil || f.Total() >= want.Total() || f.Layers != nil {
		t.Errorf("inference takes %v, training %v; %v", f.Total(), want.Total(), err)
	}
}

// memory: what is measured of a process is what the footprint says, by kind of memory. Beside the heap that is what is
// resident once the engine is made. A fitted footprint is of a peak that the collector has a share in: what is alive
// after a step is below it, and not by an order of magnitude.
func memory(t *testing.T, b engine.Backend) {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	s := engine.Spec{Graph: g, BatchSize: 256, Optimizer: adam, Training: true}
	estimated, err := b.Footprint(s)
	if err != nil {
		t.Fatal(err)
	}
	x := batch(g, s.BatchSize, 1)
	heap, resident := alive(), resident(t)
	e := fresh(t, b, s)
	outsideBytes := outside(t, heap, resident)
	if _, err := e.Step(x); err != nil {
		t.Fatal(err)
	}
	took := alive() - heap
	runtime.KeepAlive(x)
	// The race detector shadows memory, and the kernel counts pages in lots: 1 MB is beside the point.
	want := estimated.In(footprint.Host)
	known := want > 0 && resident > 0 && !testing.Short()
	if known && (outsideBytes < want-disdel.MB || outsideBytes > want+disdel.MB) {
		t.Errorf("%v are resident beside the heap, and %v are in the footprint", outsideBytes, want)
	}
	if want := estimated.In(footprint.Heap); took > want || estimated.Basis == footprint.Fitted && took < want/10 {
		t.Errorf("%v are alive on the heap, and %v are in the footprint", took, want)
	}
}

// alive is what is on the heap and in use.
func alive() disdel.Bytes {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return disdel.Bytes(m.HeapAlloc)
}

// outside is what the process has more than before that is not on the heap.
func outside(t *testing.T, heap, before disdel.Bytes) disdel.Bytes {
	t.Helper()
	grown := alive() - heap
	return resident(t) - before - grown
}

// resident is what the process has in memory, 0 where the kernel does not tell.
func resident(t *testing.T) disdel.Bytes {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return disdel.Bytes(pages) * disdel.Bytes(os.Getpagesize())
}
