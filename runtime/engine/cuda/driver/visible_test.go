package driver_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// What CUDA's documentation says of CUDA_VISIBLE_DEVICES.
func TestVisibleDevices(t *testing.T) {
	ids := []string{"GPU-8932f937", "GPU-46b2ff17", "GPU-46cc0012"}
	for list, want := range map[string][]int{
		"": {}, "0": {0}, "2,1": {2, 1}, " 1 , 0": {1, 0}, "0,7,1": {0}, "-1": {}, "1,-1,0": {1}, "0,0,1": {0},
		"GPU-89": {0}, "GPU-46": {}, "GPU-46c,GPU-8932f937": {2, 0}, "1,GPU-46b": {1}, "none": {}, "0,": {0},
	} {
		if got := driver.Visible(list, ids); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", list, got, want)
		}
	}
}

func ExampleVisible() {
	fmt.Println(driver.Visible("1,GPU-a", []string{"GPU-abc", "GPU-def"}))
	// Output: [1 0]
}
