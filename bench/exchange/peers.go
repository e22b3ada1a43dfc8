package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/disdel/disdel/bench/rig"
)

// The names of a peer's times; the others are rates.
const (
	toLoss      = "torch_to_loss"
	denseToLoss = "torch_dense_to_loss"
)

// peers is what other programs come to: figures by name, each the best of all Pythons that have one. Without any there
// are no ratios, and the bench says so.
func peers(pythons []string, args ...string) map[string]float64 {
	best := map[string]float64{}
	for _, python := range pythons {
		cmd := exec.Command(python, append([]string{"bench/peer/sparse.py"}, args...)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			fmt.Printf("%s has no peers: %v\n", python, err)
			continue
		}
		for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
			var name string
			var value float64
			if n, _ := fmt.Sscanf(lines.Text(), "peer %s %f", &name, &value); n == 2 {
				rig.Figure("peer_"+name, value, "")
				if had, there := best[name]; !there || (value > had) != (name == toLoss || name == denseToLoss) {
					best[name] = value
				}
			}
		}
	}
	return best
}

// ratios holds own rows a second against the fastest peer of a model, whatever its batch; the least ratio is
// rows_per_s.
func ratios(own map[string]float64, peers map[string]float64) {
	least := 0.0
	for _, model := range []string{"pmf", "logistic"} {
		ours, theirs := fastest(own, model), fastest(peers, model)
		if theirs == 0 {
			fmt.Printf("no peer of %s is installed\n", model)
			continue
		}
		rig.Figure("rows_per_s_over_peers_"+model, ours/theirs, "ratio")
		if r := ours / theirs; least == 0 || r < least {
			least = r
		}
	}
	if least > 0 {
		rig.Figure("rows_per_s", least, "ratio")
	}
}

func fastest(rates map[string]float64, model string) (most float64) {
	for name, v := range rates {
		if strings.HasPrefix(name, model+"_") {
			most = max(most, v)
		}
	}
	return most
}
