package service

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A past is kept for a while, each kind's apart; what could not be read is read again, and not all there ever was is
// kept.
func TestAPastIsKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept pasts
		reads := 0
		read := func() (past, error) {
			reads++
			return past{read: time.Now()}, nil
		}
		get := func(key string, want int) {
			t.Helper()
			if _, err := kept.get(key, read); err != nil || reads != want {
				t.Fatalf("%s: read %d times, want %d; %v", key, reads, want, err)
			}
		}
		get("a", 1)
		get("a", 1)
		get("b", 2)
		time.Sleep(pastFor)
		get("a", 3)
		bad := errors.New("away")
		if _, err := kept.get("c", func() (past, error) { return past{}, bad }); !errors.Is(err, bad) {
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
