package dense

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/disdel/disdel/dataset"
)

// numbersOf is a table of numbers.
func numbersOf() string {
	rng := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for range 100_000 {
		for range 20 {
			fmt.Fprintf(&text, "%.5f,", rng.NormFloat64())
		}
		fmt.Fprintf(&text, "%d\n", rng.IntN(10))
	}
	return text.String()
}

// BenchmarkCSV reads a table of numbers twice, as adding it does: to find out what is in it, and for its rows.
func BenchmarkCSV(b *testing.B) {
	text := numbersOf()
	from := dataset.TextSource("f", text)
	b.SetBytes(int64(len(text)))
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

// BenchmarkAddCSV adds it to a store on disk.
func BenchmarkAddCSV(b *testing.B) {
	text := numbersOf()
	s, err := dataset.OpenStore(b.Context(), "file://"+b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.SetBytes(int64(len(text)))
	for n := 0; b.Loop(); n++ {
		in, err := CSV{Source: dataset.TextSource("f", text)}.Input(fmt.Sprint("a", n))
		if err == nil {
			_, err = s.AddDense(b.Context(), in, false)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
