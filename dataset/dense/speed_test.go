package dense

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/disdel/disdel/dataset"
)

// BenchmarkCSV reads a table of numbers twice, as adding it does: to find out what is in it, and for its rows.
func BenchmarkCSV(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for range 100_000 {
		for range 20 {
			fmt.Fprintf(&text, "%.5f,", rng.NormFloat64())
		}
		fmt.Fprintf(&text, "%d\n", rng.IntN(10))
	}
	from := dataset.TextSource("f", text.String())
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		in, err := CSV{Source: from}.Input("a")
		if err == nil {
			err = in.Each(func(dataset.DenseRow) error { return nil })
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
