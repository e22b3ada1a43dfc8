package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// text is the workload of tokens_per_s: a step is a token, and as many as a row has make a text.
var text = workload{"tokens", "gpt-small", "1x1x256", 1, 5 * 255, 8192}

// continuing continues texts of one token by the most probable ones and prints a measurement, tokens a second as its
// samples.
func continuing(args []string) error {
	f := flag.NewFlagSet("continue", flag.ContinueOnError)
	network := f.String("network", text.network, "")
	input := f.String("input", text.input, "")
	classes := f.Int("classes", text.classes, "")
	f.Int("batch", 1, "")
	steps := f.Int("steps", text.steps, "")
	f.Int("warmup", 2, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	g, err := graph(*network, *input, *classes)
	if err != nil {
		return err
	}
	e, err := native.New(engine.Spec{Graph: g, BatchSize: 1, Continues: true})
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Init(disdel.Init{Scheme: "he"}); err != nil {
		return err
	}
	m := measurement{Network: *network, Batch: 1, Plan: int64(e.Plan().Bytes()), Kernels: e.Kernels()}
	rates, row := make([]float64, 0, groups), []float32{1}
	for range groups {
		start, n := time.Now(), max(1, *steps/groups)
		for range n {
			if len(row) == g.Input().Len() {
				row = row[:1]
			}
			p, err := e.Predict(dataset.Dense(1, row, nil))
			if err != nil {
				return err
			}
			row = append(row, float32(disdel.Largest(p.Values)))
		}
		rates = append(rates, float64(n)/time.Since(start).Seconds())
	}
	m.PerSecond, m.PeakRSS = rig.Median(rates), peakRSS()
	return json.NewEncoder(os.Stdout).Encode(m)
}

// texts compares the tokens a second of gpt-small on one core with those of PyTorch, which keeps keys and values, too.
func (b *bench) texts() error {
	var ours []float64
	peers, rates := tried{}, map[string][]float64{}
	for range b.rounds {
		m, _, err := run("0", []string{b.self, "continue"}, text)
		if err != nil {
			return err
		}
		ours = append(ours, m.PerSecond)
		for _, p := range b.peers() {
			if p.name != "torch" {
				continue
			}
			p.command = []string{p.command[0], "bench/peer/torch_continue.py"}
			if m, ok := peers.run(p, text); ok {
				rates[m.Torch] = append(rates[m.Torch], m.PerSecond)
			}
		}
	}
	best := 0.0
	for torch, r := range rates {
		fmt.Printf("# %s continued by torch %s: %.1f tokens/s\n", text.network, strings.TrimSpace(torch), rig.Median(r))
		best = max(best, rig.Median(r))
	}
	rig.Figure("tokens_per_s", rig.Median(ours), "1/s")
	if best > 0 {
		rig.Figure("tokens_ratio", rig.Median(ours)/best, "x")
	}
	return nil
}
