package kernel

import (
	"fmt"
	"testing"
	"time"

	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// Benchmarks print GFLOP/s; `make bench-engine` measures whole networks.
func BenchmarkConv(b *testing.B) {
	for _, s := range Sets()[:len(Sets())-1] {
		start := time.Now()
		flops := s.Peak(1 << 22)
		b.Logf("%s peak %.0f", s.Name, flops/time.Since(start).Seconds()/1e9)
		for _, g := range []struct{ c, hw, k, kernel, stride, lanes int }{
			{64, 32, 64, 3, 1, 32},
			{128, 16, 128, 3, 1, 32},
			{256, 8, 256, 3, 1, 32},
			{512, 4, 512, 3, 1, 32},
			{512, 2, 512, 3, 1, 32},
			{512, 1, 512, 3, 1, 32},
			{256, 8, 64, 1, 1, 32},
			{1024, 2, 512, 1, 1, 32},
			{3, 32, 64, 3, 1, 32},
			{4096, 1, 4096, 1, 1, 32},
			{1, 28, 6, 5, 1, 64},
			{6, 14, 16, 5, 1, 64},
		} {
			pad := g.kernel / 2
			c := Conv{
				In: Image{C: g.c, H: g.hw, W: g.hw, Lanes: g.lanes}, Filters: g.k, KH: g.kernel, KW: g.kernel,
				SH: g.stride, SW: g.stride, DH: 1, DW: 1, Top: pad, Left: pad, OH: g.hw, OW: g.hw, Groups: 1,
			}
			if g.c < 8 {
				c.In.H, c.In.W, c.Top, c.Left = g.hw+2*pad, g.hw+2*pad, 0, 0
			}
			var macs float64
			for i := range c.OH {
				for j := range c.OW {
					r0, r1 := window(i, 1, 1, c.Top, c.KH, c.In.H)
					q0, q1 := window(j, 1, 1, c.Left, c.KW, c.In.W)
					macs += float64((r1 - r0) * (q1 - q0))
				}
			}
			macs *= float64(g.c * g.k * g.lanes)
			x, y, dx, dy := padded(c.In.Len()), padded(c.Out().Len()), padded(c.In.Len()), padded(c.Out().Len())
			wt, dw, scratch := make([]float32, c.WeightLen()), make([]float32, c.WeightLen()), make([]float32, c.ScratchLen())
			w := NewTeam(s, 1, 64).workers[0]
			type direction struct {
				name string
				do   func()
			}
			directions := []direction{
				{"forward", func() { w.Forward(&c, x, wt, nil, y) }},
				{"data", func() { w.BackData(&c, dy, wt, dx, false) }},
				{"weights", func() { w.BackWeights(&c, x, dy, dw, scratch) }},
			}
			for _, m := range winograd.Tiles() {
				if c.KH != m.H.Taps || c.KW != m.W.Taps || m.H.IsWhole() || m.W.IsWhole() || c.In.C%16 > 0 {
					continue
				}
				v := c
				v.Tile, v.BackTile = m, m
				room := make([]float32, max(v.ForwardLen(), v.BackDataLen(), v.BackWeightsLen()))
				directions = append(directions,
					direction{fmt.Sprintf("forward%v", m), func() { w.WinogradForward(&v, x, wt, nil, y, room) }},
					direction{fmt.Sprintf("data%v", m), func() { w.WinogradBackData(&v, dy, wt, dx, room, false) }},
					direction{fmt.Sprintf("weights%v", m), func() { w.WinogradBackWeights(&v, x, dy, dw, room) }})
			}
			for _, f := range directions {
				b.Run(fmt.Sprintf("%s/%v/%s", s.Name, g, f.name), func(b *testing.B) {
					for b.Loop() {
						f.do()
					}
					b.ReportMetric(2*macs*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
		w := NewTeam(s, 1, 1).workers[0]
		const n = 1024
		m := Matrix{make([]float32, n*n), n, false}
		c, scratch := make([]float32, n*n), make([]float32, GemmLen())
		b.Run(s.Name+"/gemm1024", func(b *testing.B) {
			for b.Loop() {
				w.Gemm(n, n, n, m, m, c, n, false, scratch)
			}
			b.ReportMetric(2*n*n*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
