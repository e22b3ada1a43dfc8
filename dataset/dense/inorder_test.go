package dense

import (
	"errors"
	"runtime"
	"slices"
	"testing"
)

// numbers gives 0, 1, 2 ... below n.
func numbers(n int) func(*int) bool {
	at := -1
	return func(v *int) bool {
		at++
		*v = at
		return at < n
	}
}

// However long each takes, what several cores work on comes in its order, and all of it.
func TestWorkComesInItsOrder(t *testing.T) {
	var got []int
	err := inOrder(0, numbers(1000), func(v *int) {
		if *v%7 == 0 {
			runtime.Gosched() // another one is faster
		}
		*v *= 2
	}, func(v *int) error {
		got = append(got, *v)
		return nil
	})
	want := make([]int, 1000)
	for i := range want {
		want[i] = 2 * i
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %d items: %v", err, len(got), got[:min(20, len(got))])
	}
}

// Who has had enough, or fails, gets nothing more, and nothing goes on behind his back.
func TestWorkEndsEarly(t *testing.T) {
	wrong := errors.New("wrong")
	for _, c := range []struct{ end, want error }{{wrong, wrong}, {errEnough, nil}} {
		taken := 0
		err := inOrder(0, numbers(1<<30), func(*int) {}, func(*int) error {
			if taken++; taken == 100 {
				return c.end
			}
			return nil
		})
		if !errors.Is(err, c.want) || taken != 100 {
			t.Errorf("%v after %d", err, taken)
		}
	}
}
