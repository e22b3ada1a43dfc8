package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel/runtime/engine/native/plan"
	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// waits is how often the workers of a team wait for each other in a job.
func waits(team *Team, job func(*Worker)) int {
	before := team.turn.Load()
	team.Run(job)
	return int(team.turn.Load() - before)
}

// Where a pass of Winograd's algorithm is little work each worker has passes of its own: all wait for each other once
// the kernels are transformed and once at the end, and come to the bits of one worker, forward and back, at every size,
// added or not.
func TestWorkersOfSmallPassesWaitTwice(t *testing.T) {
	for _, s := range plainSets() {
		rng, cases := rand.New(rand.NewPCG(8, 1)), some(6)
		switch {
		case testing.Short():
			cases = 1 // who waits for whom is the same under an emulator
		case s.Name == portable().Name:
			cases = 2
		}
		for range cases {
			m := 2 + 2*rng.IntN(2)
			c, rows := winogradGeometry(rng, winograd.Square(winograd.Short(m, 3)))
			c.Groups, c.ActiveRows, c.In.Lanes = 1, 0, plan.Padded(rows)
			c.In.H, c.In.W = 8*m+rng.IntN(9), 6*m+rng.IntN(9)
			c.OH, c.OW = c.In.H+c.Top-rng.IntN(2), c.In.W+c.Left-rng.IntN(2)
			k, add := newWinogradCase(rng, c, rows), rng.IntN(2) == 0
			y, dx, dw := k.run(NewTeam(s, 1, 1), add)
			for _, workers := range []int{2, 3} {
				team := NewTeam(s, workers, 1)
				y2, dx2, dw2 := k.run(team, add)
				at := fmt.Sprintf("%s, %+v, %d rows, %d workers, add %v: ", s.Name, c, rows, workers, add)
				alike(t, at+"y", y2, y)
				alike(t, at+"dx", dx2, dx)
				alike(t, at+"dw", dw2, dw)
				if n := waits(team, func(w *Worker) {
					w.WinogradForward(&c, k.x, k.wt, k.bias, k.y, k.scratch)
					w.WinogradBackData(&c, k.dy, k.wt, k.dx, k.scratch, add)
				}); workers == 2 && n != 4 { // for three there may not be panels enough
					t.Errorf("%sthey wait for each other %d times", at, n)
				}
			}
		}
	}
}

// Workers of a batch norm with many channels go on with those that they have summed: they wait for each other at the
// end alone, and come to the bits of one worker.
func TestNormsOfManyChannelsWaitOnce(t *testing.T) {
	everyTeam(t, func(t *testing.T, team *Team, rng *rand.Rand) {
		channels := 256 * team.Size()
		for _, relu := range []bool{false, true} {
			im := Image{C: channels, H: 2, W: 3, Lanes: 32}
			n := Norm{Image: im, Eps: 1e-5, Momentum: 0.1, Rows: 21, ReLU: relu}
			x, dy := random(rng, im.Len()), random(rng, im.Len())
			gamma, beta := random(rng, channels), random(rng, channels)
			run := func(team *Team) (out [][]float32, waited int) {
				part := func() []float32 { return make([]float32, channels) }
				s := NormState{
					Gamma: gamma, Beta: beta, Mean: part(), Var: part(), Shift: part(), Scale: part(), Offset: part(), Third: part(),
					Sums: make([]float32, 32*channels), Mask: make([]float32, im.Lanes),
				}
				for l := range n.Rows {
					s.Mask[l] = 1
				}
				y, dx := make([]float32, im.Len()), append([]float32(nil), dy...)
				running, slopes := [2][]float32{part(), part()}, [2][]float32{part(), part()}
				waited = waits(team, func(w *Worker) {
					w.NormForward(&n, &s, running, x, y)
					w.NormBack(&n, &s, x, y, dx, slopes[0], slopes[1])
				})
				return [][]float32{y, dx, running[0], running[1], slopes[0], slopes[1]}, waited
			}
			got, waited := run(team)
			want, _ := run(NewTeam(team.workers[0].Set, 1, 1))
			for i := range want {
				alike(t, fmt.Sprintf("array %d, ReLU %v", i, relu), got[i], want[i])
			}
			if team.Size() > 1 && waited != 2 {
				t.Errorf("they wait for each other %d times", waited)
			}
		}
	})
}

// Where one pass has all of an image the kernels' matrices are made and used in parts. These come together, to the
// bits of all of them at once, which is how a team of more workers than blocks of filters computes.
func TestWinogradInParts(t *testing.T) {
	f2, f4 := winograd.Square(winograd.Short(2, 3)), winograd.Square(winograd.Short(4, 3))
	for _, c := range []Conv{
		{In: Image{C: 176, H: 4, W: 4, Lanes: 32}, Filters: 80, OH: 4, OW: 4, Tile: f4, BackTile: f4},
		{In: Image{C: 272, H: 2, W: 2, Lanes: 48}, Filters: 64, OH: 2, OW: 2, Tile: f2, BackTile: f2, ReLU: true},
		{In: Image{C: 64, H: 3, W: 4, Lanes: 16}, Filters: 176, OH: 3, OW: 4, Tile: f4, BackTile: f2},
	} {
		c.KH, c.KW, c.SH, c.SW, c.DH, c.DW, c.Top, c.Left, c.Groups = 3, 3, 1, 1, 1, 1, 1, 1, 1
		for _, s := range plainSets()[:max(1, some(4)*(len(plainSets())-1)/4)] {
			k := newWinogradCase(rand.New(rand.NewPCG(2, 7)), c, c.In.Lanes-3)
			y, dx, dw := k.run(NewTeam(s, 20, 1), true)
			for _, workers := range []int{1, 2} {
				y2, dx2, dw2 := k.run(NewTeam(s, workers, 1), true)
				at := fmt.Sprintf("%s, %+v, %d workers: ", s.Name, c, workers)
				alike(t, at+"y", y2, y)
				alike(t, at+"dx", dx2, dx)
				alike(t, at+"dw", dw2, dw)
			}
		}
	}
}

// Weights that are more than the image they are multiplied with are shared, so that no worker reads all of them; the
// bits are those of one worker, forward and back, with groups and with blocks that are no equal shares.
func TestWorkersShareManyWeights(t *testing.T) {
	everyTeam(t, func(t *testing.T, team *Team, rng *rand.Rand) {
		one := NewTeam(team.workers[0].Set, 1, 1)
		for range some(8) {
			groups := 1 + rng.IntN(2)
			c := Conv{
				In:      Image{C: groups * (24 + rng.IntN(40)), H: 3, W: 2, Lanes: 16},
				Filters: groups * 16 * (1 + rng.IntN(6)), KH: 3, KW: 3, SH: 1, SW: 1, DH: 1, DW: 1, Top: 1, Left: 1, OH: 3, OW: 2,
				Groups: groups,
			}
			x, dy, wt := random(rng, c.In.Len()+2048), random(rng, c.Out().Len()+2048), random(rng, c.WeightLen())
			run := func(team *Team) (y, dx []float32) {
				y, dx = padded(c.Out().Len()), padded(c.In.Len())
				team.Run(func(w *Worker) {
					w.Forward(&c, x, wt, nil, y)
					w.BackData(&c, dy, wt, dx, false)
				})
				return y, dx
			}
			y, dx := run(team)
			wantY, wantDX := run(one)
			alike(t, fmt.Sprintf("y of %+v", c), y, wantY)
			alike(t, fmt.Sprintf("dx of %+v", c), dx, wantDX)
		}
		c := Conv{In: Image{C: 64, Lanes: 16}, Groups: 1, KH: 3, KW: 3, Filters: 48}
		if w := team.workers[0]; w.N == 3 && (!w.sharesWeights(&c, 6, 3, 9000) || w.sharesWeights(&c, 6, 4, 9000) ||
			w.sharesWeights(&c, 6, 3, 90000) || !w.sharesWeights(&c, 5, 4, 90000)) {
			t.Error("the rule is another")
		}
	})
}
