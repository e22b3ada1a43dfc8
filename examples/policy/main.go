// Command policy is a policy of one's own, and a first trial of it: on the six laws of an epoch's time that disdel's
// own are held against, beside one of those and the best fixed number of workers.
//
// A job can use it after its file is in package scheduler, with a row in Policies and a script of its decisions in
// scheduler/testdata/policies: then distribution.policy, disdel lab and estimate --what-if policy=all know its name.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

func main() { play(os.Stdout) }

// play runs 40 epochs of each law, from eight workers to at most 64.
func play(w io.Writer) {
	const start, maximum, epochs, seed = 8, 64, 40, 1
	fmt.Fprintf(w, "%-10s %-9s %6s %6s  %s\n", "LAW", "POLICY", "TIME", "COST", "WORKERS IN THE END")
	for _, law := range sim.Laws() {
		best := law.BestFixed(maximum, epochs, seed)
		for _, p := range []scheduler.Policy{Thrifty{}, scheduler.Coach{}} {
			got := law.Play(p, start, maximum, epochs, seed)
			fmt.Fprintf(w, "%-10s %-9s %6.2f %6.2f  %d\n", law.Name, p.Name(), got.Seconds/best.Seconds, got.Cost/best.Cost,
				got.Workers[epochs-1])
		}
	}
}
