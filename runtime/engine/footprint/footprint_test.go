package footprint_test

import (
	"fmt"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

var some = footprint.Footprint{Basis: footprint.Planned, Parts: []footprint.Part{
	{Category: footprint.Weights, Memory: footprint.Device, Bytes: 6 * disdel.MB},
	{Category: footprint.Moments, Memory: footprint.Device, Bytes: 12 * disdel.MB},
	{Category: footprint.Batch, Memory: footprint.Heap, Bytes: disdel.MB},
	{Category: footprint.Workspace, Memory: footprint.Host, Bytes: 2 * disdel.MB},
}}

// What lies on a device is no part of what a container's limit has to hold.
func ExampleFootprint() {
	fmt.Println("weights and moments", some.Sum(footprint.Weights, footprint.Moments))
	fmt.Println("on the device", some.In(footprint.Device))
	fmt.Println("in the process", some.Outside(footprint.Device).Total())
	// Output:
	// weights and moments 18.0 MB
	// on the device 18.0 MB
	// in the process 3.00 MB
}

func TestKindsOfMemoryAddUp(t *testing.T) {
	if sum := some.In(footprint.Heap) + some.In(footprint.Host) + some.In(footprint.Device); sum != some.Total() {
		t.Errorf("%v in all kinds of memory, %v in total", sum, some.Total())
	}
	if some.Outside(footprint.Host); some.In(footprint.Host) != 2*disdel.MB {
		t.Error("Outside changed what it was asked of")
	}
	for m, want := range map[footprint.Memory]string{
		0: "unknown memory", footprint.Heap: "heap",
		footprint.Device: "device", 9: "unknown memory",
	} {
		if m.String() != want {
			t.Errorf("%d is %q, want %q", m, m, want)
		}
	}
}
