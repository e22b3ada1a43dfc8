package scheduler

import (
	"math"
	"testing"

	"github.com/disdel/disdel"
)

// What memory does to times is known where two memories were measured with equal workers, and counts where it is plain.
func TestMemoryIsKnownByEqualWorkers(t *testing.T) {
	seen := func(workers int, memory disdel.Bytes, seconds float64, cold bool) disdel.Observation {
		o := disdel.Observation{
			Setting: disdel.Setting{Workers: workers, Memory: memory * disdel.MB}, Rows: 1000,
			Duration: disdel.Millis(seconds * 1e9), Epoch: 1,
		}
		if cold {
			o.Cold = 1
		}
		return o
	}
	for name, c := range map[string]struct {
		own  disdel.Bytes
		past []disdel.Observation
		want map[disdel.Bytes]float64
	}{
		"nothing":    {512, nil, map[disdel.Bytes]float64{512: 1}},
		"it is free": {0, []disdel.Observation{seen(2, 512, 9, false), seen(2, 256, 9, false)}, map[disdel.Bytes]float64{}},
		"twice as fast": {
			512,
			[]disdel.Observation{seen(2, 512, 10, false), seen(2, 1024, 5, false), seen(4, 1024, 9, false)},
			map[disdel.Bytes]float64{512: 1, 1024: 0.5},
		},
		"other workers": {
			512, []disdel.Observation{seen(2, 512, 10, false), seen(4, 1024, 5, false)}, map[disdel.Bytes]float64{512: 1},
		},
		"cold": {
			512, []disdel.Observation{seen(2, 512, 10, false), seen(2, 1024, 5, true)}, map[disdel.Bytes]float64{512: 1},
		},
		"no faster": {
			512,
			[]disdel.Observation{seen(2, 512, 10, false), seen(2, 1024, 9.8, false), seen(2, 256, 10.1, false)},
			map[disdel.Bytes]float64{256: 1, 512: 1, 1024: 1},
		},
		"two numbers": {
			512, []disdel.Observation{
				seen(2, 512, 10, false), seen(2, 256, 20, false), seen(4, 512, 8, false), seen(4, 256, 12, false),
			}, map[disdel.Bytes]float64{256: math.Sqrt(3), 512: 1},
		},
	} {
		m := memoriesOf(Input{Now: disdel.Setting{Workers: 2, Memory: c.own * disdel.MB}, Past: c.past})
		if len(m.slower) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, m.slower, c.want)
		}
		for memory, want := range c.want {
			if got := m.slower[memory*disdel.MB]; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %v takes %g times as long, want %g", name, memory*disdel.MB, got, want)
			}
		}
	}
}
