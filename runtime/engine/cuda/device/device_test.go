//go:build nvidia

package device_test

import (
	"errors"
	"testing"

	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/runtime/engine/cuda"
	"github.com/disdel/disdel/runtime/engine/cuda/device"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// onDevice skips a test where there is no GPU, with what is missing.
func onDevice(t *testing.T) {
	t.Helper()
	if _, err := (device.Driver{}).Devices(); err != nil {
		t.Skip("left out for want of a GPU: ", err)
	}
}

func TestADeviceKeepsTheBackendsPromises(t *testing.T) {
	onDevice(t)
	enginetest.Exercise(t, cuda.Backend{Driver: device.Driver{}})
}

// Without a driver the program starts all the same, and says what is missing.
func TestWithoutADriverThatIsSaid(t *testing.T) {
	_, err := (device.Driver{}).Devices()
	if err == nil {
		t.Skip("this machine has a GPU")
	}
	var fault *driver.Fault
	if !errors.As(err, &fault) || fault.Cause != driver.NoDevice || fault.Said == "" {
		t.Errorf("%v, and no missing device", err)
	}
	if _, err := (device.Driver{}).Open(0); !errors.As(err, &fault) || fault.Cause != driver.NoDevice {
		t.Errorf("%v, and no missing device", err)
	}
}
