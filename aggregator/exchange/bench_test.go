package exchange

import (
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel"
)

// A step of one of four members of a factorisation of MovieLens-100K's size: 250 rows each, 55,125 weights. It is what
// of a step is neither the engine's nor the store's.
func BenchmarkStep(b *testing.B) {
	const members, weights, width, touched = 4, 55125, 21, 400
	for _, c := range []struct {
		name   string
		v      float64
		values disdel.Wire
	}{{"BSP", 0, disdel.WireFloat32}, {"ISP", 0.7, disdel.WireFloat32}, {"ISP/int8", 0.7, disdel.WireInt8}} {
		b.Run(c.name, func(b *testing.B) {
			lot := rand.New(rand.NewPCG(1, 1))
			x := make([]float32, weights)
			for i := range x {
				x[i] = 0.1 * float32(lot.NormFloat64())
			}
			var all [members]*Replica
			for m := range all {
				var err error
				cfg := Config{Members: members, Member: m, Threshold: c.v, Combine: Sum, Values: c.values}
				if all[m], err = New(cfg, x); err != nil {
					b.Fatal(err)
				}
			}
			var data [members][]byte
			deltas := make([]Delta, members)
			step := func(m int) {
				r := all[m]
				r.Weights(x)
				for range touched {
					row := lot.IntN(weights / width)
					for k := range width {
						x[row*width+k] += 0.01 * lot.Float32()
					}
				}
				d, err := r.Send(x)
				if err != nil {
					b.Fatal(err)
				}
				data[m] = d.Append(data[m][:0])
			}
			fold := func(m int) {
				r := all[m]
				for from := range deltas {
					d, own := r.Next(from)
					if !own {
						var err error
						if d, err = r.NewDelta().Read(data[from], weights); err != nil {
							b.Fatal(err)
						}
					}
					deltas[from] = d
				}
				if err := r.Fold(r.Folded()+1, deltas); err != nil {
					b.Fatal(err)
				}
				r.Recycle(deltas)
			}
			b.ReportAllocs()
			for b.Loop() {
				for m := range all {
					step(m)
				}
				for m := range all {
					fold(m)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/members, "us/member")
			b.ReportMetric(float64(len(data[0])), "B/delta")
		})
	}
}
