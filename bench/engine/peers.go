package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// peer is a program that takes step's arguments and prints a measurement.
type peer struct {
	name    string
	command []string
}

// peersOf returns every PyTorch in both memory formats, also compiled if it has a compiler (from 2.0 on). It returns
// TensorFlow and JAX if they are installed.
func peersOf(torches []string, tensorflow, jax string) (out []peer) {
	for _, t := range torches {
		compiles, err := exec.Command(t, "-c", "import torch; print(hasattr(torch, 'compile'))").Output()
		if err != nil {
			fmt.Printf("# %s has no PyTorch: measuring without it\n", t)
			continue
		}
		for _, how := range [][]string{nil, {"--compile"}} {
			if how != nil && strings.TrimSpace(string(compiles)) != "True" {
				continue
			}
			for _, format := range [][]string{nil, {"--channels-last"}} {
				options := slices.Concat(how, format)
				name := strings.Join(append([]string{"torch"}, options...), " ")
				out = append(out, peer{name, append([]string{t, "bench/peer/torch_train.py"}, options...)})
			}
		}
	}
	if _, err := os.Stat(tensorflow); err == nil {
		out = append(out, peer{"tensorflow", []string{tensorflow, "bench/peer/tf_train.py"}})
	}
	if _, err := os.Stat(jax); err == nil {
		out = append(out, peer{"jax", []string{jax, "bench/peer/jax_train.py"}})
	}
	return out
}

// tried measures peers, and leaves those out that failed on a workload: who runs the bench overnight wants the rest.
type tried struct{ failed map[string]bool }

// run measures a peer; ok is false for one that fails, or that failed before.
func (t *tried) run(p peer, w workload) (m measurement, ok bool) {
	key := strings.Join(append(p.command, w.network), " ")
	if t.failed[key] {
		return m, false
	}
	m, _, err := run("0", p.command, w)
	if err != nil {
		fmt.Printf("# %s on %s is left out: %v\n", w.network, p.name, err)
		if t.failed == nil {
			t.failed = map[string]bool{}
		}
		t.failed[key] = true
		return m, false
	}
	return m, true
}

// patience is what no process of the bench takes: one that does hangs.
const patience = 30 * time.Minute
