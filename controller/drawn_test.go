package controller

import (
	"fmt"
	"os"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Of 60 drawn worlds and 25 drawn jobs with budgets, each gets the orders that it got in earlier versions. Draws are
// those of this version of rapid. Who changes an order sees which ones change.
func TestDrawnJobsGetTheSameOrders(t *testing.T) {
	const file = "testdata/drawn.txt"
	worlds := rapid.Custom(func(t *rapid.T) []string {
		w := newWorld(t)
		w.obey(w.happens(StartedEvent{}))
		for steps := 0; !w.ended && steps < 300; steps++ {
			w.step()
		}
		return w.script
	})
	var lines []string
	for seed := range 60 {
		lines = append(append(lines, fmt.Sprintf("world %d", seed)), worlds.Example(seed)...)
	}
	for seed := range uint64(25) {
		w := newPurse(t, seed)
		w.run()
		lines = append(append(lines, fmt.Sprintf("budget %d", seed)), w.script...)
	}
	got := strings.Join(lines, "\n") + "\n"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("orders (-before +now); if that is meant, go test ./controller -rewrite:\n%s", diff)
	}
}
