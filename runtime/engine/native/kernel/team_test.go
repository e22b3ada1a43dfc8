package kernel

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"
)

// A panic of any worker, wherever the others are, comes out of Run, where the runtime makes an answer of it; and the
// team works on.
func TestAPanicOfAWorkerIsTheCallers(t *testing.T) {
	boom := errors.New("boom")
	for _, size := range []int{1, 2, 5} {
		team := NewTeam(portable(), size, 1)
		for who := range size {
			for at := range 3 { // before, between and after barriers
				raised := panicOf(func() {
					team.Run(func(w *Worker) {
						for step := range 3 {
							if w.ID == who && step == at {
								panic(boom)
							}
							if step < 2 {
								w.Sync()
							}
						}
					})
				})
				p, ok := raised.(*Panic)
				switch {
				case size == 1 && raised == any(boom):
				case !ok || p.Value != any(boom) || p.String() != "boom" ||
					!strings.Contains(string(p.Stack()), "TestAPanicOfAWorkerIsTheCallers"):
					t.Errorf("worker %d of %d at step %d: %v", who, size, at, raised)
				}
			}
			counts := make([]int, size)
			team.Run(func(w *Worker) {
				for range 10 {
					counts[w.ID]++
					w.Sync()
				}
			})
			for i, n := range counts {
				if n != 10 {
					t.Fatalf("worker %d of %d did %d steps after a panic", i, size, n)
				}
			}
		}
	}
}

func panicOf(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// The generator has these offsets as numbers, and not every processor runs every path.
func TestArgumentsLieWhereTheAssemblyLooks(t *testing.T) {
	var a tapArgs
	for name, c := range map[string]struct{ got, want uintptr }{
		"scale": {unsafe.Offsetof(a.scale), 48}, "w": {unsafe.Offsetof(a.w), 56},
		"channels": {unsafe.Offsetof(a.channels), 88}, "dy": {unsafe.Offsetof(a.dy), 96},
	} {
		if c.got != c.want {
			t.Errorf("%s lies at %d, not at %d", name, c.got, c.want)
		}
	}
}

// Things are taken once each, whoever takes them, pile after pile without anybody waiting.
func TestEverythingIsTakenOnce(t *testing.T) {
	for _, size := range []int{1, 2, 5} {
		team, sizes := NewTeam(portable(), size, 1), []int{1, 1000, 3, 0, 64, 17, 1000}
		for range 20 {
			taken := make([][]atomic.Int32, len(sizes))
			for i, n := range sizes {
				taken[i] = make([]atomic.Int32, n)
			}
			team.Run(func(w *Worker) {
				for i, n := range sizes {
					w.take(n, func(from, to int) {
						for k := from; k < to; k++ {
							taken[i][k].Add(1)
						}
					})
				}
			})
			for i := range taken {
				for k := range taken[i] {
					if n := taken[i][k].Load(); n != 1 {
						t.Fatalf("%d workers: thing %d of pile %d was taken %d times", size, k, i, n)
					}
				}
			}
		}
	}
}
