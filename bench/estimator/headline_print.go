package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// sums is what a way came to over some of the jobs.
type sums struct {
	jobs, failed, attempts, activations int
	wall, gbs, lost                     float64
}

// sum adds up the jobs that are chosen by their index.
func (w way) sum(choose func(job int) bool) sums {
	var s sums
	for i, t := range w.jobs {
		if !choose(i) {
			continue
		}
		s.jobs++
		if !t.passed {
			s.failed++
		}
		s.attempts, s.activations = s.attempts+t.attempts, s.activations+t.activations
		s.wall, s.gbs, s.lost = s.wall+t.wall, s.gbs+t.gbs, s.lost+t.lost
	}
	return s
}

func everyJob(int) bool { return true }

func printHeadline(ways []way) {
	for _, w := range ways {
		s := w.sum(everyJob)
		figure(w.name+"_failed_jobs", float64(s.failed), "jobs")
		figure(w.name+"_failed_attempts", float64(s.attempts), "attempts")
		figure(w.name+"_failed_activations", float64(s.activations), "activations")
		figure(w.name+"_wall_s", s.wall, "s")
		figure(w.name+"_gbs", s.gbs, "GB-s")
		figure(w.name+"_lost_gbs", s.lost, "GB-s")
	}
	own := ways[len(ways)-1]
	for _, other := range ways[:len(ways)-1] {
		both := func(i int) bool { return other.jobs[i].passed && own.jobs[i].passed }
		a, b := other.sum(both), own.sum(both)
		name := other.name + "_over_" + own.name
		figure(name+"_jobs", float64(a.jobs), "jobs")
		figure(name+"_wall", ratio(a.wall, b.wall), "ratio")
		figure(name+"_gbs", ratio(a.gbs, b.gbs), "ratio")
	}
}

// ratio is 0 over nothing.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// table shows the ways side by side.
func table(out io.Writer, ways []way) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "way\tjobs failed\tattempts failed\tactivations failed\twall s\tGB-s\tof these lost\t")
	for _, w := range ways {
		s := w.sum(everyJob)
		fmt.Fprintf(t, "%s\t%d of %d\t%d\t%d\t%.1f\t%.2f\t%.2f\t\n", w.name, s.failed, s.jobs, s.attempts, s.activations,
			s.wall, s.gbs, s.lost)
	}
	return t.Flush()
}
