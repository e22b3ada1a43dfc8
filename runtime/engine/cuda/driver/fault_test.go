package driver_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

func TestEveryCauseHasAKindAndAName(t *testing.T) {
	for cause, kind := range map[driver.Cause]disdel.Kind{
		driver.NoDevice: disdel.Unavailable, driver.NoMemory: disdel.OOM, driver.BadLaunch: disdel.Internal,
		driver.DeviceLost: disdel.Unavailable, driver.NoHostMemory: disdel.OOM, 0: disdel.Internal, 99: disdel.Internal,
	} {
		if err := error(&driver.Fault{Cause: cause}); !errors.Is(err, kind) {
			t.Errorf("%v is no %v", err, kind)
		}
	}
}

func ExampleFault() {
	var err error = &driver.Fault{
		Cause: driver.NoMemory, Device: 1, Call: "allocation", Number: 2, Wanted: 3 * disdel.GB, Taken: disdel.MB,
		Free: 2 * disdel.GB, Said: "OutOfMemory",
	}
	fmt.Println(err)
	fmt.Println(errors.Is(err, disdel.OOM))
	// Output:
	// device 1: out of device memory: allocation 2: 3.00 GB wanted, 2.00 GB free, 1.00 MB taken before: OutOfMemory
	// true
}
