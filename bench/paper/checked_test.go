package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// What runs in two waves in the smaller pool is simulated so from its speed in the larger one, and the batch is
// simulated under every plan.
func TestTheSimulatorIsCheckedByWhatRan(t *testing.T) {
	wave := func(pool disdel.Bytes, wall float64) outcome {
		o := passed(envEnd, wide(), 0, wall, disdel.MB)
		o.Pool, o.Workers, o.Compute, o.Prepare = pool, 4, 10, 0.2
		return o
	}
	alone := passed(envEnd, pairs()[3], 0, 6, 100*disdel.MB)
	alone.Workers, alone.Compute, alone.Prepare = 2, 5, 0.2
	twelve := &measured{
		Outcomes: []outcome{alone}, Batches: []batch{{Environment: envEnd, Makespan: 6}}, Sittings: somewhere(0),
	}
	twelve.Sittings[0].Threads = 2
	folder := t.TempDir()
	p := newPage(&raw{Experiments: map[string]*measured{
		"fig11": {Outcomes: []outcome{wave(widePool, 21), wave(wideDoubled, 11)}}, "fig12": twelve,
	}}, folder, filepath.Join(folder, "page.md"), 1)
	p.check()
	p.checkWide()
	p.plans()
	if p.err != nil {
		t.Fatal(p.err)
	}
	for _, name := range []string{"sim_error_pct", "sim_wide_error_pct"} {
		if got := p.figures[name]; got.Unit == "" || got.Value > mostWrong {
			t.Errorf("%s is %+v", name, got)
		}
	}
	for _, w := range ways() {
		if !strings.Contains(p.text(), "| "+w.name+" |") {
			t.Errorf("the table lacks %q", w.name)
		}
	}
}
