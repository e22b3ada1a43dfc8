package render

import (
	"fmt"
	"io"
	"slices"

	"github.com/disdel/disdel/scheduler"
)

// printScaling writes which number of workers pays, beside what the plan's number and the largest measured one take.
func printScaling(w io.Writer, s *scheduler.Scaling, planned int) {
	if s == nil {
		return
	}
	verb := "pay"
	if s.Workers == 1 {
		verb = "pays"
	}
	paragraph(w, "pays", "%s %s: times of single epochs vary by %.0f %%", crew(s.Workers), verb, 100*s.Deviation)
	show := []int{s.Workers, planned}
	for _, e := range slices.Backward(s.Epochs) {
		if e.Measured && e.Workers != s.Workers {
			show = append(show, e.Workers)
			break
		}
	}
	slices.Sort(show)
	for _, workers := range slices.Compact(show) {
		if i := slices.IndexFunc(s.Epochs, func(e scheduler.ScaledEpoch) bool { return e.Workers == workers }); i >= 0 {
			paragraph(w, "", "%s", scaledText(s.Epochs[i]))
		}
	}
}

// scaledText is what an epoch takes with a number of workers, and what it is made of.
func scaledText(e scheduler.ScaledEpoch) string {
	basis := "measured"
	if !e.Measured {
		basis = "from the law of the measured times"
	}
	unit := TimeUnit(e.Duration)
	return fmt.Sprintf("%s: %s %s an epoch, of which %s %s is exchange and %s %s is fixed (%s)", crew(e.Workers),
		unit.Text(e.Duration), unit.Name, unit.Text(e.Exchange), unit.Name, unit.Text(e.Fixed), unit.Name, basis)
}

func crew(workers int) string {
	if workers == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", workers)
}
