package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// A policy of a user's own is asked through the same door: Ask keeps it within the bounds whatever it wants.
func TestAPolicyOfOnesOwn(t *testing.T) {
	var out bytes.Buffer
	play(&out)
	if lines := strings.Count(out.String(), "\n"); lines != 13 || !strings.Contains(out.String(), "merge      thrifty") {
		t.Error(out.String())
	}
	for _, law := range sim.Laws() {
		got := law.Play(Thrifty{}, 8, 64, 40, 1)
		start := law.Play(scheduler.Static{}, 8, 64, 40, 1)
		if law.Name != "spike" && got.Cost > start.Cost {
			t.Errorf("%s: it costs %g, and %g with as many as it began with", law.Name, got.Cost, start.Cost)
		}
	}
	in := scheduler.Input{
		Boundary: disdel.BoundaryEpoch, Now: disdel.Setting{Workers: 1}, Bounds: scheduler.Bounds{Least: 1, Most: 4},
	}
	in.Seen = []disdel.Observation{{Setting: in.Now, Rows: 1000, Duration: 1e9, Epoch: 1}}
	if d := scheduler.DecideInBounds(Thrifty{}, in); d.Next.Workers != 1 || len(d.Reasons) != 1 {
		t.Errorf("%+v", d)
	}
}
