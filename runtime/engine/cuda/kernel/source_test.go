package kernel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Every kernel of the sources has a name, and each another one.
func TestTheSourcesHaveTheKernels(t *testing.T) {
	for what, c := range map[string]struct {
		source string
		names  []string
		one    string
	}{
		"source": {kernel.Source(), kernel.Names(), "convolution_weights_64"},
		"matrix": {kernel.MatrixSource(), kernel.MatrixNames(), "convolution_data_16_bf16"},
	} {
		if names := slices.Clone(c.names); len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) ||
			!slices.Contains(names, c.one) {
			t.Errorf("%s: kernels %v", what, names)
		}
		// The macros and their use within each other are not kernels.
		if got, want := strings.Count(c.source, "\nKERNEL("), len(c.names); got != want {
			t.Errorf("%s: %d kernels in the sources, and %d are named", what, got, want)
		}
		if strings.Contains(c.source, "atomic") && !strings.Contains(c.source, "No sum is an atomic one") {
			t.Errorf("%s: there is an atomic operation", what)
		}
	}
}

// A weights' gradient is divided into no more parts than its workspace has room for, whatever the network.
func TestPartsHaveRoom(t *testing.T) {
	for _, c := range []plan.Conv{
		plan.Dense(400, 120, 512), plan.Dense(25088, 4096, 16),
		{
			In: plan.Image{C: 64, H: 32, W: 32, Lanes: 128}, Filters: 64, KH: 3, KW: 3, SH: 1, SW: 1, DH: 1, DW: 1, Top: 1,
			Left: 1, OH: 32, OW: 32, Groups: 1,
		},
	} {
		k := kernel.Conv{Conv: c}
		launches := k.Weights(1<<20, 1<<21, 1<<22, 1<<23)
		divided := len(launches) == 2
		if divided != (k.Work() > 0) {
			t.Errorf("%d launches, and %v of workspace", len(launches), k.Work())
		}
	}
}

func ExampleConv() {
	c := kernel.Conv{Conv: plan.Conv{
		In: plan.Image{C: 6, H: 14, W: 14, Lanes: 512}, Filters: 16, KH: 5, KW: 5, SH: 1, SW: 1, DH: 1, DW: 1, OH: 10, OW: 10,
		Groups: 1,
	}}
	fmt.Println(c.Forward(1, 2, 3, 4).Kernel, c.Forward(1, 2, 3, 4).Grid)
	for _, l := range c.Weights(1, 2, 3, 4) {
		fmt.Println(l.Kernel, l.Grid)
	}
	// Output:
	// convolution_forward_16 [400 1 1]
	// convolution_weights_16 [2 1 128]
	// sum_parts [10 1 1]
}
