package service

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/disdel/disdel"
)

func numbers(events []Event) (out []int) {
	for _, e := range events {
		out = append(out, e.Number)
	}
	return out
}

func round(n int) RoundEnded { return RoundEnded{disdel.Round{Round: n}} }

// Who comes late gets everything from the start, or from a number, and whoever reads while it happens gets the same.
func TestEveryOnlookerGetsEveryEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal("job", nil)
		j.add(round(0))
		var early, some []Event
		go func() { early = slices.Collect(j.read(t.Context(), 0)) }()
		go func() { some = slices.Collect(j.read(t.Context(), 2)) }()
		synctest.Wait()
		for n := range 4 {
			j.add(round(n + 1))
		}
		synctest.Wait()
		j.close()
		synctest.Wait()
		late := slices.Collect(j.read(t.Context(), 0))
		for name, c := range map[string]struct{ got, want []int }{
			"early": {numbers(early), []int{1, 2, 3, 4, 5}}, "late": {numbers(late), []int{1, 2, 3, 4, 5}},
			"from a number": {numbers(some), []int{3, 4, 5}},
		} {
			if !slices.Equal(c.got, c.want) {
				t.Errorf("%s: %v, want %v", name, c.got, c.want)
			}
		}
		if e := late[4]; e.Job != "job" || e.What.(RoundEnded).Round.Round != 4 {
			t.Errorf("%+v", e)
		}
	})
}

// An onlooker that does not read holds nobody up, finds the newest picture alone, and everything else.
func TestASlowOnlookerIsNotWaitedFor(t *testing.T) {
	j := newJournal("job", nil)
	first := make(chan struct{})
	next := make(chan struct{})
	var got []int
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range j.read(t.Context(), 0) {
			if got = append(got, e.Number); len(got) == 1 {
				close(first)
				<-next
			}
		}
	}()
	j.add(round(0))
	<-first
	for range 1000 {
		j.add(Progress{})
	}
	j.add(round(1))
	j.add(Progress{})
	j.close()
	close(next)
	<-done
	if want := []int{1, 1002, 1003}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if j.add(round(9)); j.last != 1003 {
		t.Error("something happened after the end")
	}
}

// Who stops reading, or whose context ends, waits for nothing.
func TestAnOnlookerMayGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal("job", nil)
		j.add(round(0))
		for range j.read(t.Context(), 0) {
			break
		}
		ctx, stop := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for range j.read(ctx, 0) {
			}
		}()
		synctest.Wait()
		stop()
		<-gone
	})
}

// A job of very many events keeps those that tell what went wrong, in their order.
func TestALongJobKeepsWhatMatters(t *testing.T) {
	j := newJournal("job", nil)
	passed, failed := Ended{}, Ended{}
	passed.Outcome, failed.Outcome = disdel.OutcomeSuccess, disdel.OutcomeLost
	for n := range 3 * mostEvents {
		switch {
		case n%1000 == 0:
			j.add(failed)
		case n%2 == 0:
			j.add(Invoked{})
		default:
			j.add(passed)
		}
	}
	j.close()
	all := slices.Collect(j.read(t.Context(), 0))
	lost := 0
	for _, e := range all {
		if ended, ok := e.What.(Ended); ok && ended.Outcome == disdel.OutcomeLost {
			lost++
		}
	}
	if len(all) > mostEvents || lost != 3*mostEvents/1000 || !slices.IsSorted(numbers(all)) ||
		all[len(all)-1].Number != 3*mostEvents {
		t.Errorf("%d events, %d failures, the last is %d", len(all), lost, all[len(all)-1].Number)
	}
}

// What comes before a job is acknowledged is told at once, and is no news later.
func TestPreparationIsToldAtOnce(t *testing.T) {
	var told []Event
	j := newJournal("job", func(e Event) { told = append(told, e) })
	j.add(Noted{"a"})
	j.acknowledged(nil)
	j.add(round(0))
	j.close()
	if got, all := numbers(told), numbers(slices.Collect(j.read(t.Context(), 0))); !slices.Equal(got, []int{1}) ||
		!slices.Equal(all, []int{1, 2}) {
		t.Errorf("%v at once, %v in all", got, all)
	}
}
