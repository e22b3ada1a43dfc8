package report

import (
	"fmt"

	"github.com/disdel/disdel"
)

// Costs are the two costs of a job under their own names, and what it got for the second.
type Costs struct {
	UsedGBs float64  `json:"usedGBs"`         // by use: what activations held, evaluations and failures too
	Money   *float64 `json:"money,omitempty"` // of that, at resources.price; nil: no price is known
	// Perf is Perf/$ of MLLess, Eq. 4: one over the job's seconds times what it cost, money where a price is known,
	// else GB-s; 0 for a job that has not succeeded.
	Perf float64 `json:"perfPerCost,omitempty"`
}

// costs are those of a record whose job took so long.
func costs(r *disdel.Record, took disdel.Millis) *Costs {
	c := Costs{UsedGBs: r.ByUse()}
	if c.UsedGBs <= 0 {
		return nil
	}
	paid := c.UsedGBs
	if money, ok := r.Job.Resources.Money(paid); ok {
		c.Money, paid = &money, money
	}
	if r.Status == disdel.StatusSucceeded && took > 0 {
		c.Perf = 1 / (took.Seconds() * paid)
	}
	return &c
}

// byUse is the cost by use in words: "by use 1.25 GB-s, 0.0000209 at 0.0000167 a GB-s".
func (r *Report) byUse() []string {
	c := r.Use
	if c == nil {
		return nil
	}
	text, unit := fmt.Sprintf("by use %.2f GB-s: what activations held", c.UsedGBs), "1/(s GB-s)"
	if c.Money != nil {
		text += fmt.Sprintf("; %.3g at %.3g a GB-s", *c.Money, r.Job.Resources.Price)
		unit = "1/(s money)"
	}
	if c.Perf > 0 {
		text += fmt.Sprintf("; Perf/$ %.3g %s", c.Perf, unit)
	}
	out := []string{text}
	if s := r.Static; s != nil {
		out = append(out, staticText(s, r.Duration, c.UsedGBs))
	}
	return out
}

// staticText says what the job would have taken with the workers that it began with, beside what it took.
func staticText(s *disdel.Counterfactual, took disdel.Millis, used float64) string {
	return fmt.Sprintf("with %s throughout training would have taken about %s for %.2f GB-s by use, as its first %s; the "+
		"job took %s for %.2f in all", many(s.Workers, "worker"), span(s.Took), s.UsedGBs, many(s.Epochs, "epoch"),
		span(took), used)
}
