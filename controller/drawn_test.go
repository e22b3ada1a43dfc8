package controller

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel/internal/test/golden"
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
	golden.Same(t, file, got, *update)
}
