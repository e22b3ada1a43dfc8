package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// The gradients of a layer norm's scale and shift are their definitions on every path, also of channels that fill no
// block, and one and two threads give the same bits.
func TestGradientsOfLayerNormsAreTheirDefinition(t *testing.T) {
	for _, s := range plainSets() {
		t.Run(s.Name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(36, 4))
			for _, channels := range []int{1, 15, 16, 17, 48, 1 + rng.IntN(100)} {
				n := LayerNorm{Sequence: Sequence{Rows: 1 + rng.IntN(32)}, Centered: true}
				n.Image = Image{C: channels, H: 1 + rng.IntN(9), W: 1, Lanes: 32}
				active := plan.Padded(n.Rows)
				x, dy := make([]float32, n.Image.Len()), make([]float32, n.Image.Len())
				n.Kept = make([]float32, 2*n.H*n.Lanes)
				for i := range x {
					if x[i] = float32(rng.NormFloat64()); i%n.Lanes < n.Rows {
						dy[i] = float32(rng.NormFloat64())
					}
				}
				for i := range n.Kept {
					n.Kept[i] = float32(rng.NormFloat64())
				}
				dGamma, dBeta := make([]float64, channels), make([]float64, channels)
				for i, d := range dy {
					pixel, c, l := i/n.Pixel(), i/n.Lanes%channels, i%n.Lanes
					if l < active {
						mean, inverse := n.Kept[2*pixel*n.Lanes+l], n.Kept[(2*pixel+1)*n.Lanes+l]
						dGamma[c] += float64(d) * (float64(x[i]) - float64(mean)) * float64(inverse)
						dBeta[c] += float64(d)
					}
				}
				var before [2][]float32
				for threads := 1; threads <= 2; threads++ {
					got := [2][]float32{make([]float32, channels), make([]float32, channels)}
					NewTeam(s, threads, 1).Run(func(w *Worker) { w.LayerNormSums(&n, x, dy, got[0], got[1]) })
					for k, want := range [][]float64{dGamma, dBeta} {
						for c, v := range got[k] {
							if math.Abs(float64(v)-want[c]) > 1e-4*max(1, math.Abs(want[c])) {
								t.Errorf("%d channels, %d rows, array %d: value %d is %v, not %v", channels, n.Rows, k, c, v, want[c])
							}
							if threads == 2 && v != before[k][c] {
								t.Errorf("%d channels, array %d: two threads give other bits of value %d", channels, k, c)
							}
						}
					}
					before = got
				}
			}
		})
	}
}
