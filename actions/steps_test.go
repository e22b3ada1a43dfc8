package actions

import (
	"math"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// Parts of a step come to its total, and stretches to the round: means of times, values and bytes, losses by rows.
func TestStepsAreBookedByTheirParts(t *testing.T) {
	at := time.Unix(1000, 0)
	b := newStepBook(func() time.Time { return at }, 50) // 3 steps a stretch
	pass := func(ms float64) { at = at.Add(time.Duration(ms * float64(time.Millisecond))) }
	for step := range 4 {
		pass(100) // between steps: nobody's
		b.begin()
		pass(1)
		b.lap(&b.step.Wait)
		pass(float64(step))
		b.lap(&b.step.Compute)
		pass(0.5)
		b.lap(&b.step.Write)
		b.trained(disdel.Metrics{Rows: 10 * (step + 1), Loss: float64(step)})
		b.sent(step+1, 20, 100*(step+1))
	}
	c := b.done()
	if c == nil || len(c.Stretches) != 2 {
		t.Fatalf("%+v", c)
	}
	first, second := c.Stretches[0], c.Stretches[1]
	if first.Last != 3 || first.Steps != 3 || first.Wait != 1 || math.Abs(first.Compute-1) > 1e-9 || first.Bytes != 200 ||
		first.Rows != 60 || math.Abs(first.Loss-(20+2*30)/60.) > 1e-12 || first.Values != 20 {
		t.Errorf("%+v", first)
	}
	if second.Last != 4 || second.Steps != 1 || second.Total() != 4.5 || second.Loss != 3 || !second.End.Equal(at) {
		t.Errorf("%+v", second)
	}
	if c.Median != 3.5 || c.High != 4.5 {
		t.Errorf("%v in the middle, %v at the high end", c.Median, c.High)
	}
	if newStepBook(time.Now, 5).done() != nil {
		t.Error("a course of no steps")
	}
}
