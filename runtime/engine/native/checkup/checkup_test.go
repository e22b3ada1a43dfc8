package checkup

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// A checkup says what computes here and how fast, and leaves the choice to the user.
func TestACheckupMeasures(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures time")
	}
	r, err := Examine()
	if err != nil {
		t.Fatal(err)
	}
	if r.Path != r.Paths[0] || r.Product <= 0 || len(r.Layers) != 3 || len(r.Trials) < 6 || r.Best != (r.Advice == "") {
		t.Errorf("%+v", r)
	}
	for _, l := range r.Layers {
		if l.Gflops <= 0 || l.Exact <= 0 {
			t.Errorf("%+v", l)
		}
	}
	chosen := map[string]int{}
	for _, trial := range r.Trials {
		if trial.Chosen {
			chosen[trial.Block] = trial.Value
		}
		if trial.Gflops <= 0 {
			t.Errorf("%+v", trial)
		}
	}
	if chosen["weights"] != r.Blocks.Weights || chosen["depth"] != r.Blocks.Depth {
		t.Errorf("%v were measured as chosen, and %v are", chosen, r.Blocks)
	}
	var text strings.Builder
	r.Print(&text)
	for _, word := range []string{"kernels    " + r.Path, "trial      weights=", "as planned", ", chosen"} {
		if !strings.Contains(text.String(), word) {
			t.Errorf("%q is not in:\n%s", word, &text)
		}
	}
}

func TestWrongBlocksAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"many": "weights are a number", "1": "weights are a number", "99999999": "weights are a number", "-4": `"-4"`,
		"weights=": "weights are a number", "rows=5": "rows are one of", "rows=0": "rows are one of",
		"depth=1000000": "depth is a number", "columns=3": `no block "columns"`, "weights=98304,": "weights are a number",
		"rows=1,depth=2": "on this path, and not \"1\"; depth is",
	} {
		t.Setenv(kernel.BlocksVariable, text)
		if _, err := Examine(); !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s=%s: %v", kernel.BlocksVariable, text, err)
		}
	}
}

// Blocks that are much faster than those that were chosen are worth a word; noise is not. The word is what the
// environment takes.
func TestBetterBlocksAreAdvised(t *testing.T) {
	r := Report{
		Blocks: kernel.Blocks{Weights: 20000, Rows: 8, Depth: 256},
		Trials: []Trial{
			{"weights", 10000, false, 80},
			{"weights", 20000, true, 90},
			{"weights", 40000, false, 94},
			{"rows", 8, true, 90},
			{"rows", 12, false, 85},
			{"depth", 128, false, 50},
			{"depth", 256, true, 100},
			{"depth", 384, false, 104},
		},
	}
	if text := r.advice(); text != "" {
		t.Error(text)
	}
	r.Trials[2].Gflops, r.Trials[7].Gflops = 95, 106
	text := r.advice()
	_, set, _ := strings.Cut(text, kernel.BlocksVariable+"=")
	if set, _, _ = strings.Cut(set, " "); set != "weights=40000,rows=8,depth=384" {
		t.Error(text)
	}
	rows := kernel.Sets()[0].Heights()[0]
	t.Setenv(kernel.BlocksVariable, strings.Replace(set, "rows=8", fmt.Sprintf("rows=%d", rows), 1))
	chosen, err := kernel.Choose()
	want := kernel.Blocks{
		Weights: 40000, Rows: rows, Depth: 384, Family: chosen.Blocks.Family, Basis: kernel.BlocksVariable,
	}
	if err != nil || chosen.Blocks != want {
		t.Errorf("%+v, %v, want %+v", chosen.Blocks, err, want)
	}
}

func ExampleReport_Print() {
	r := Report{
		Machine: kernel.Machine{
			Vendor: "AuthenticAMD", Family: 25, Model: 1, Name: "AMD EPYC", First: 32 * disdel.KB, Second: 512 * disdel.KB,
			Third: 32 * disdel.MB,
		},
		Path: "avx2", Paths: []string{"avx2", "portable"},
		Blocks: kernel.Blocks{Weights: 98304, Rows: 6, Depth: 256, Family: "Zen 3", Basis: "measured"},
		Peak:   100, Product: 88,
		Layers: []Layer{{"3x3, 64 channels, 32x32 pixels", 200, 90}}, Best: true,
		Trials: []Trial{{"weights", 49152, false, 92}, {"weights", 98304, true, 91}},
	}
	r.Print(os.Stdout)
	// Output:
	// processor  AMD EPYC (AuthenticAMD, family 25, model 1)
	// caches     32.0 KB, 512 KB and 32.0 MB
	// kernels    avx2, of [avx2 portable]
	// family     Zen 3
	// blocks     weights=98304,rows=6,depth=256, by measurements of this family
	// peak       100 GFLOP/s
	// product    88 GFLOP/s, 88 % of the peak
	// layer      3x3, 64 channels, 32x32 pixels: 90 GFLOP/s by the definition, 90 % of the peak, 200 as planned
	// trial      weights=49152: 92 GFLOP/s
	// trial      weights=98304: 91 GFLOP/s, chosen
	// choice     the best of these, or within 5 % of it
}
