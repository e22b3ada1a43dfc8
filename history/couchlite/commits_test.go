package couchlite

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"go.etcd.io/bbolt"
)

// Those who come while somebody writes are written together, in the order in which they came; one of them that fails
// is told so, and leaves the others as they are.
func TestChangesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all commitQueue
		var made [][]int
		var kept []int
		first := make(chan struct{})
		commit := func(do func(*bbolt.Tx) error) error {
			if len(made) == 0 {
				<-first
			}
			made = append(made, nil)
			before := slices.Clone(kept)
			err := do(nil)
			if err != nil {
				kept = before // as a transaction that is rolled back
			}
			return err
		}
		bad := errors.New("no")
		got := make(chan string, 5)
		for i := range 5 {
			go func() {
				err := all.run(func(*bbolt.Tx) error {
					if i == 3 {
						return bad
					}
					kept = append(kept, i)
					made[len(made)-1] = append(made[len(made)-1], i)
					return nil
				}, commit)
				got <- fmt.Sprint(i, " ", err)
			}()
			synctest.Wait()
		}
		close(first)
		synctest.Wait()
		close(got)
		var said []string
		for text := range got {
			said = append(said, text)
		}
		slices.Sort(said)
		want := []string{"0 <nil>", "1 <nil>", "2 <nil>", "3 no", "4 <nil>"}
		if !slices.Equal(said, want) || fmt.Sprint(kept) != "[0 1 2 4]" || fmt.Sprint(made) != "[[0] [1 2] [1 2 4]]" {
			t.Errorf("%v, kept %v by %v", said, kept, made)
		}
	})
}

// Whoever is refused because of another's change reads that change: he is told only when it is in the file. If it does
// not get there, neither is told that he was refused.
func TestARefusedChangeIsToldBehindTheOthers(t *testing.T) {
	full := errors.New("the disk is full")
	for what, last := range map[string]error{"written": nil, "not written": full} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var all commitQueue
				commits, kept, pending := 0, 0, 0
				hold := make(chan struct{})
				commit := func(do func(*bbolt.Tx) error) error {
					<-hold
					commits++
					pending = kept
					if err := do(nil); err != nil {
						return err
					}
					if commits == 3 && last != nil {
						return last
					}
					kept = pending
					return nil
				}
				conflict := errors.New("conflict")
				take := func(from int) error {
					return all.run(func(*bbolt.Tx) error {
						if pending != from {
							return conflict
						}
						pending++
						return nil
					}, commit)
				}
				var seen [3]string
				for i, from := range []int{0, 1, 1} {
					go func() {
						err := take(from)
						seen[i] = fmt.Sprint(err, " ", kept)
					}()
					synctest.Wait()
				}
				for range 3 { // one commit after the other
					hold <- struct{}{}
					synctest.Wait()
				}
				want := map[string][3]string{
					"written":     {"<nil> 1", "<nil> 2", "conflict 2"},
					"not written": {"<nil> 1", "the disk is full 1", "the disk is full 1"},
				}[what]
				if seen != want {
					t.Errorf("%q, not %q", seen, want)
				}
			})
		})
	}
}

// Who comes to a bad end while he writes for others leaves nobody waiting.
func TestAPanicLeavesNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all commitQueue
		hold, panics := make(chan struct{}), 0
		commit := func(do func(*bbolt.Tx) error) error {
			<-hold
			if panics++; panics == 2 {
				panic("the disk is on fire")
			}
			return do(nil)
		}
		got := make(chan error, 3)
		for range 3 {
			go func() {
				defer func() {
					if recover() != nil {
						got <- nil
					}
				}()
				got <- all.run(func(*bbolt.Tx) error { return nil }, commit)
			}()
			synctest.Wait()
		}
		close(hold)
		synctest.Wait()
		if len(got) != 3 {
			t.Fatalf("%d of 3 came back", len(got))
		}
		aborted := 0
		for range 3 {
			if errors.Is(<-got, errAborted) {
				aborted++
			}
		}
		if aborted != 1 {
			t.Errorf("%d were told that their write was broken off", aborted)
		}
		if err := all.run(func(*bbolt.Tx) error { return nil }, commit); err != nil {
			t.Errorf("the next one: %v", err)
		}
	})
}
