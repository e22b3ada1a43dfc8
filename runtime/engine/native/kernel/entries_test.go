package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// someEntries are rows of some columns, in the midst of others.
func someEntries(rng *rand.Rand, rows, columns int) (in Entries) {
	in.Start = []int32{0}
	for range rows {
		for range rng.IntN(3) * rng.IntN(30) {
			in.Index, in.Values = append(in.Index, int32(rng.IntN(columns))), append(in.Values, odd(rng))
		}
		in.Start = append(in.Start, int32(len(in.Index)))
	}
	if rng.IntN(3) == 0 {
		in.Values = nil
	}
	from := rng.IntN(rows + 1)
	in.Start = in.Start[from:] // entries are not those of the first row alone
	return in
}

// Rows of entries have one set of bits on all paths, and weights of other columns are left alone.
func TestEntriesHaveTheBitsOfPlainGo(t *testing.T) {
	besidePlainGo(t, 1000, func(t *testing.T, rng *rand.Rand, fast, plain *Exact) {
		columns := 1 + rng.IntN(40)
		in, w := someEntries(rng, rng.IntN(6), columns), newPart(rng, columns, odd)
		n := len(in.Start) - 1
		got, want := slices.Repeat([]float64{3}, n+1), slices.Repeat([]float64{3}, n+1)
		fast.Sums(&in, w.values(), got[:n])
		plain.Sums(&in, w.values(), want[:n])
		if got[n] != 3 || !slices.EqualFunc(got, want, func(a, b float64) bool {
			return a != a && b != b || math.Float64bits(a) == math.Float64bits(b)
		}) {
			t.Fatalf("%+v of %v come to %v, in plain Go to %v", in, w.values(), got, want)
		}
		factors, gotW, wantW := newPart(rng, n, odd).values(), w.copied(), w.copied()
		fast.AddEntries(&in, factors, gotW.values())
		plain.AddEntries(&in, factors, wantW.values())
		whole(t, "weights", gotW, wantW, w)
	})
}

// The sum of a row has the order that is promised, whatever the path.
func TestSumsOfEntriesHaveTheirOrder(t *testing.T) {
	onEveryPath(t, 100, func(t *testing.T, rng *rand.Rand, s Set) {
		e := NewExact(s)
		n := rng.IntN(50)
		in, w, out := Entries{Start: []int32{0, int32(n)}, Values: random(rng, n)}, random(rng, 60), []float64{-1}
		var sums [4]float64
		for k := range n {
			in.Index = append(in.Index, int32(rng.IntN(60)))
			lane := k % 4
			if k >= n-n%4 {
				lane = 0
			}
			sums[lane] += float64(float32(w[in.Index[k]] * in.Values[k]))
		}
		e.Sums(&in, w, out)
		if want := (sums[0] + sums[1]) + (sums[2] + sums[3]); out[0] != want {
			t.Fatalf("%d entries come to %v, want %v", n, out[0], want)
		}
	})
}

// The generator has these offsets as numbers.
func TestArgumentsOfEntriesLieWhereTheAssemblyLooks(t *testing.T) {
	var a entryArgs
	for name, at := range map[string]struct{ got, want uintptr }{
		"index": {unsafe.Offsetof(a.index), 8}, "values": {unsafe.Offsetof(a.values), 16},
		"weights": {unsafe.Offsetof(a.weights), 24}, "out": {unsafe.Offsetof(a.out), 32}, "n": {unsafe.Offsetof(a.n), 40},
	} {
		if at.got != at.want {
			t.Errorf("%s lies at %d, not at %d", name, at.got, at.want)
		}
	}
}

// BenchmarkEntries has rows of 39 entries in 100,000 columns, of which a third are common, as clicks have.
func BenchmarkEntries(b *testing.B) {
	const rows, each, columns = 1024, 39, 100_000
	rng := rand.New(rand.NewPCG(1, 2))
	in, w := Entries{Start: []int32{0}, Values: random(rng, rows*each)}, random(rng, columns)
	for range rows {
		for k := range each {
			column := k
			if k >= 13 {
				column = rng.IntN(columns)
			}
			in.Index = append(in.Index, int32(column))
		}
		in.Start = append(in.Start, int32(len(in.Index)))
	}
	out, factors := make([]float64, rows), make([]float32, rows)
	for _, s := range plainSets() {
		e := NewExact(s)
		for _, f := range []struct {
			name string
			do   func()
		}{{"sums", func() { e.Sums(&in, w, out) }}, {"add", func() { e.AddEntries(&in, factors, w) }}} {
			b.Run(s.Name+"/"+f.name, func(b *testing.B) {
				for b.Loop() {
					f.do()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
			})
		}
	}
}
