package checkup

import (
	"errors"
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
	if r.Path != r.Paths[0] || r.Product <= 0 || len(r.Layers) != 3 || len(r.Trials) != 3 || r.Blocks.Weights <= 0 {
		t.Errorf("%+v", r)
	}
	for _, l := range r.Layers {
		if l.Gflops <= 0 || l.Exact <= 0 {
			t.Errorf("%+v", l)
		}
	}
	var text strings.Builder
	r.Print(&text)
	for _, word := range []string{"kernels    " + r.Path, "blocks of", "as planned"} {
		if !strings.Contains(text.String(), word) {
			t.Errorf("%q is not in:\n%s", word, &text)
		}
	}
}

func TestWrongBlocksAreRefused(t *testing.T) {
	for _, text := range []string{"many", "1", "99999999", "-4"} {
		t.Setenv(kernel.BlocksVariable, text)
		if _, err := Examine(); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s=%s: %v", kernel.BlocksVariable, text, err)
		}
	}
}

// Blocks that are much faster than those that were chosen are worth a word; noise is not.
func TestBetterBlocksAreAdvised(t *testing.T) {
	r := Report{Blocks: kernel.Blocks{Weights: 100}, Trials: []Trial{{50, 80}, {100, 90}, {200, 95}}}
	if text := r.advice(); text != "" {
		t.Error(text)
	}
	r.Trials[2].Gflops = 120
	if text := r.advice(); !strings.Contains(text, kernel.BlocksVariable+"=200") {
		t.Error(text)
	}
}

func ExampleReport_Print() {
	r := Report{
		Machine: kernel.Machine{
			Vendor: "AuthenticAMD", Family: 25, Model: 1, Name: "AMD EPYC", First: 32 * disdel.KB, Second: 512 * disdel.KB,
			Third: 32 * disdel.MB,
		},
		Path: "avx2", Paths: []string{"avx2", "portable"}, Blocks: kernel.Blocks{Weights: 98304, Basis: "table"}, Peak: 100,
		Product: 88, Layers: []Layer{{"3x3, 64 channels, 32x32 pixels", 200, 90}}, Trials: []Trial{{98304, 91}},
	}
	r.Print(os.Stdout)
	// Output:
	// processor  AMD EPYC (AuthenticAMD, family 25, model 1)
	// caches     32.0 KB, 512 KB and 32.0 MB
	// kernels    avx2, of [avx2 portable]
	// blocks     98304 weights a pass, by table
	// peak       100 GFLOP/s
	// product    88 GFLOP/s, 88 % of the peak
	// layer      3x3, 64 channels, 32x32 pixels: 90 GFLOP/s by the definition, 90 % of the peak, 200 as planned
	// blocks of  98304 weights: 91 GFLOP/s
}
