package service

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A past is kept for a while, each kind's apart; then it is read anew beside the submits, one at a time, and a submit
// waits only for one that is much too old. What could not be read is read again, and not all there ever was is kept.
func TestAPastIsKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept pasts
		reads := 0
		read := func(context.Context) (past, error) {
			reads++
			return past{read: time.Now()}, nil
		}
		var later []func(context.Context)
		beside := func(f func(context.Context)) { later = append(later, f) }
		get := func(key string, want int) {
			t.Helper()
			if _, err := kept.get(t.Context(), key, read, beside); err != nil || reads != want {
				t.Fatalf("%s: read %d times, want %d; %v", key, reads, want, err)
			}
		}
		get("a", 1)
		get("a", 1)
		get("b", 2)
		time.Sleep(pastFor)
		for range 3 {
			get("a", 2)
			get("b", 2)
		}
		if len(later) != 1 {
			t.Fatalf("%d are read anew at once, want one", len(later))
		}
		later[0](t.Context())
		get("a", 3)
		get("b", 3)
		if len(later) != 2 {
			t.Fatalf("of two that are no longer new %d were read anew", len(later))
		}
		time.Sleep(pastMost)
		get("a", 4)
		later[1](t.Context())
		reads = 3
		bad := errors.New("away")
		away := func(context.Context) (past, error) { return past{}, bad }
		if _, err := kept.get(t.Context(), "c", away, beside); !errors.Is(err, bad) {
			t.Errorf("%v", err)
		}
		get("c", 4)
		for i := range 3 * mostKept {
			get(fmt.Sprint("kind ", i), 5+i)
		}
		if len(kept.kept) > mostKept {
			t.Errorf("%d are kept", len(kept.kept))
		}
	})
}
