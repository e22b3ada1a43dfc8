package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// sequenceJobs is how many jobs of the part sequences are drawn from a seed.
const sequenceJobs = 40

// sequence is attention, recurrent layers and convolutions over rows of tokens.
func (g *generator) sequence() network {
	n := network{input: []int{1, 1, g.between(8, 200)}}
	heads := g.pickInt(1, 2, 4)
	width := heads * 2 * g.between(8, 40)
	padded := g.IntN(2) == 0
	n.add("embedding: {vocabulary: %d, width: %d, padded: %t}", tokenCount, width, padded)
	n.add("positions: {learned: %t}", g.IntN(2) == 0)
	for range g.between(1, 4) {
		switch g.IntN(5) {
		case 0:
			n.add("%s: {units: %d, bidirectional: true}", g.pickString("lstm", "gru"), width/2)
		case 1:
			n.add("%s: {units: %d}", g.pickString("lstm", "gru"), width)
		case 2:
			n.add("conv1d: {filters: %d, kernel: 3, padding: [2, 0, 0, 0], activation: gelu}", width)
			n.add("layerNorm:")
		default:
			n.add("transformer: {heads: %d, hidden: %d, causal: %t, rotary: %t, normFirst: %t, rate: 0.1}",
				heads, g.between(width, 4*width), g.IntN(2) == 0, g.IntN(2) == 0, g.IntN(2) == 0)
		}
	}
	n.add("takePosition: {take: %s}", g.pickString("mean", "first", "last"))
	return n
}

// tokenCount is the vocabulary of drawn sequences: rows store a token in a byte.
const tokenCount = 256

// generateSequences draws n jobs whose rows are tokens.
func generateSequences(seed uint64, n int) []trial {
	out := make([]trial, 0, n)
	for i := range n {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1<<33+uint64(i)))}
		out = append(out, g.trial(fmt.Sprintf("%d.%d-sequence", seed, i), kind{
			network: (*generator).sequence,
			change: func(g *generator, t *trial) {
				t.tokens, t.batch = true, g.between(8, 64)
				t.rows = t.batch * g.between(2, 5)
			},
		}))
	}
	return out
}

// sequencesPart runs drawn jobs of tokens at the limits of their plans, and compares their peaks with the plans.
func sequencesPart(ctx context.Context, s subject) error {
	return withRig(ctx, s, leastMemory, func(r *rig) error {
		trials := named(generateSequences(s.seed, sequenceJobs), s.only)
		records, err := pass(ctx, r, trials, estimator.Planned(backends.Standard(nil)))
		if err != nil {
			return err
		}
		over := each(of(actionsOf(records), disdel.TaskTrain), func(a *action) float64 {
			return float64(a.peak) / float64(a.estimate.Likely)
		})
		figure("plan_rss_min", quantile(over, 0), "peak over plan, of train actions")
		figure("plan_rss_median", quantile(over, 0.5), "the same")
		figure("plan_rss_max", quantile(over, 1), "the same")
		figure("oom_kills", float64(kills(records)), "activations")
		figure("failed_jobs", float64(failures(records)), fmt.Sprintf("jobs of %d", len(records)))
		return nil
	})
}
