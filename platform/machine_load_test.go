package platform

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// The reader itself runs while it looks and is no load. A burst that one look sees is no load either.
func TestBusyCountsOtherThreads(t *testing.T) {
	for name, c := range map[string]struct {
		looks []string
		want  float64
	}{
		"quiet":       {[]string{"0.10 0.20 0.30 1/107 99"}, 0},
		"two threads": {[]string{"0.10 0.20 0.30 3/107 99"}, 2},
		"one burst": {append([]string{"0 0 0 9/107 99"},
			"0 0 0 2/107 99", "0 0 0 2/107 99", "0 0 0 2/107 99", "0 0 0 2/107 99"), 1},
		"no such file": {nil, 0},
		"other text":   {[]string{"0.10 0.20"}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			i := 0
			read := func() (string, error) {
				if len(c.looks) == 0 {
					return "", errors.New("no such file")
				}
				i++
				return c.looks[(i-1)%len(c.looks)], nil
			}
			if got := machineLoad(t.Context(), read, func() int { return 1 }); got != c.want {
				t.Errorf("%s: %v threads, want %v", name, got, c.want)
			}
		})
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if got := MachineLoad(ended); got != 0 {
		t.Errorf("after its context: %v threads", got)
	}
}

// The program's own threads are no load of others: its garbage collector and its stores run while it plans.
func TestBusyLeavesOutTheProgramsOwnThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func() (string, error) { return "0.10 0.20 0.30 6/107 99", nil }
		if got := machineLoad(t.Context(), read, func() int { return 4 }); got != 2 {
			t.Errorf("%v threads, want 2", got)
		}
		if got := machineLoad(t.Context(), read, func() int { return 7 }); got != 0 { // one ended between the two looks
			t.Errorf("%v threads, want 0", got)
		}
	})
}

func TestOwnThreadsAreCounted(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one processor runs one thread of a Go program")
	}
	var spins, end atomic.Bool
	var done sync.WaitGroup
	done.Go(func() {
		for !end.Load() {
			spins.Store(true)
		}
	})
	for !spins.Load() {
		runtime.Gosched()
	}
	if n := ownThreads(); n < 2 {
		t.Errorf("%d threads while two run", n)
	}
	end.Store(true)
	done.Wait()
}
