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
	for i := range g.between(1, 4) {
		switch g.IntN(6) {
		case 5:
			n.gated(g, i, heads)
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

// gated is a block of Llama's kind: RMS norms, an attention without bias whose heads share keys, and a product of two
// dense layers. Rows leave out whole sums: dropPath.
func (n *network) gated(g *generator, i, heads int) {
	width := g.between(16, 100)
	n.add("dense: {name: g%d.in, units: %d}", i, 2*heads*width)
	n.add("rmsNorm:")
	n.add("multiHeadAttention: {heads: %d, kvHeads: %d, causal: %t, rotary: true, bias: false}", heads, max(1, heads/2),
		g.IntN(2) == 0)
	n.add("dropPath: {name: g%d.drop, rate: 0.2}", i)
	n.add("add: {name: g%d.sum, from: [g%d.in, g%d.drop]}", i, i, i)
	n.add("rmsNorm: {name: g%d.norm}", i)
	hidden := g.between(width, 4*width)
	n.add("dense: {name: g%d.gate, units: %d, activation: silu, bias: false}", i, hidden)
	n.add("dense: {name: g%d.up, units: %d, bias: false, from: g%d.norm}", i, hidden, i)
	n.add("multiply: {from: [g%d.gate, g%d.up]}", i, i)
	n.add("dense: {name: g%d.down, units: %d, bias: false}", i, 2*heads*width)
	n.add("add: {from: [g%d.sum, g%d.down]}", i, i)
}

// raised is images whose sides grow: transposed convolutions and upsamplings, between group norms and stochastic depth.
func (g *generator) raised() network {
	n := network{input: []int{g.pickInt(1, 3), g.between(12, 24), g.between(12, 24)}}
	filters := 4 * g.between(2, 8)
	n.add("conv: {name: b0, filters: %d, kernel: 3, padding: same}", filters)
	for i := range g.between(2, 5) {
		n.add("conv: {filters: %d, kernel: 3, padding: same, bias: false}", filters)
		n.add("groupNorm: {groups: %d}", g.pickInt(1, 2, 4, filters))
		n.add("dropPath: {name: d%d, rate: 0.2}", i)
		n.add("add: {from: [b%d, d%d]}", i, i)
		switch name := fmt.Sprintf("b%d", i+1); {
		case i > 1:
			n.add("relu: {name: %s}", name)
		case g.IntN(2) == 0:
			n.add("upsample: {name: %s, size: 2}", name)
		default:
			n.add("convTranspose: {name: %s, filters: %d, kernel: %d, stride: 2, activation: relu}", name, filters, g.pickInt(2, 4))
		}
	}
	n.add("globalAvgPool:")
	return n
}

// windowed is images whose pixels attend within windows, as in Swin and MaxViT: blocks of attention and of two
// convolutions of one pixel, and between stages half as many rows and columns.
func (g *generator) windowed() network {
	side, heads := 8*g.between(2, 4), g.pickInt(1, 2, 4)
	n := network{input: []int{3, side, side}}
	width := heads * g.between(8, 24)
	n.add("conv: {name: b0, filters: %d, kernel: 2, stride: 2}", width)
	block := 0
	for stage := range g.between(1, 2) {
		if stage > 0 {
			n.add("spaceToDepth: {size: 2}")
			n.add("layerNorm:")
			width *= 2
			block++
			n.add("conv: {name: b%d, filters: %d, kernel: 1, bias: false}", block, width)
		}
		for range g.between(1, 3) {
			from, size := block, g.between(2, 7)
			block++
			n.add("layerNorm: {name: n%d, from: b%d}", block, from)
			if grid := g.IntN(4) == 0; grid {
				n.add("windowAttention: {heads: %d, size: %d, grid: true}", heads, size)
			} else {
				n.add("windowAttention: {heads: %d, size: %d, shift: %d, cosine: %t}", heads, size, g.IntN(size),
					g.IntN(2) == 0)
			}
			n.add("dropPath: {name: d%d, rate: 0.1}", block)
			n.add("add: {name: a%d, from: [b%d, d%d]}", block, from, block)
			n.add("layerNorm:")
			n.add("conv: {filters: %d, kernel: 1, activation: gelu}", g.between(width, 4*width))
			n.add("conv: {name: e%d, filters: %d, kernel: 1}", block, width)
			n.add("add: {name: b%d, from: [a%d, e%d]}", block, block, block)
		}
	}
	n.add("globalAvgPool:")
	return n
}

// tokenCount is the vocabulary of drawn sequences: rows store a token in a byte.
const tokenCount = 256

// generateSequences draws n jobs whose rows are tokens. Every fourth one has images instead: their sides grow, or their
// pixels attend within windows, in turns.
func generateSequences(seed uint64, n int) []trial {
	out := make([]trial, 0, n)
	for i := range n {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1<<33+uint64(i)))}
		if i%4 == 3 {
			name, network := "raised", (*generator).raised
			if i%8 == 7 {
				name, network = "windowed", (*generator).windowed
			}
			out = append(out, g.trial(fmt.Sprintf("%d.%d-%s", seed, i, name), kind{
				network: network, change: func(*generator, *trial) {},
			}))
			continue
		}
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
