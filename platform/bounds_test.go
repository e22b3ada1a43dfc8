package platform

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// Records are kept up to a number of bytes, the oldest go first, and the newest stays however large.
func TestRecordsAreBoundedByBytes(t *testing.T) {
	s := tempStore(t, 1000)
	s.maxBytes = 100 * disdel.KB
	for i := range 50 {
		if err := s.saveRecord(&activation{
			Namespace: "guest", Name: "a", ActivationID: fmt.Sprintf("%032x", i), Start: int64(i),
			Logs: []string{strings.Repeat("x", 10_000)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	s.view(func(x tx) error {
		n, size := x.recordCount("guest")
		if n < 8 || n > 10 || size > int(s.maxBytes) {
			t.Errorf("%d records of %d bytes", n, size)
		}
		if got, err := get[activation](x, records, "guest\x00"+fmt.Sprintf("%032x", 49)); got == nil || err != nil {
			t.Errorf("the newest is gone: %v", err)
		}
		if again, bytes := x.recount("guest"); again != n || bytes > size {
			t.Errorf("counted %d of %d bytes, there are %d of %d", n, size, again, bytes)
		}
		return nil
	})
	if err := s.saveRecord(&activation{
		Namespace: "guest", Name: "a", ActivationID: strings.Repeat("f", 32), Start: 99,
		Logs: []string{strings.Repeat("x", 200_000)},
	}); err != nil {
		t.Fatal(err)
	}
	s.view(func(x tx) error {
		if n := x.count("guest"); n != 1 {
			t.Errorf("%d records beside one that takes all", n)
		}
		return nil
	})
}

// A record stays for some time after its end, however many there are: a long activation is the first in the order of
// starts, and nobody has read it yet.
func TestALongActivationIsThereToBeRead(t *testing.T) {
	s := tempStore(t, 3)
	s.readWithin = time.Minute
	save := func(id, start, end int64) {
		t.Helper()
		if err := s.saveRecord(&activation{
			Namespace: "guest", Name: "a", ActivationID: fmt.Sprintf("%032x", id), Start: start, End: end,
		}); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(want int) {
		t.Helper()
		s.view(func(x tx) error {
			if n := x.count("guest"); n != want {
				t.Errorf("%d records, want %d", n, want)
			}
			return nil
		})
	}
	for i := range int64(50) {
		save(i, 1000*i, 1000*i+10)
	}
	kept(50)
	save(50, 1, 90_000) // those that ended in the first 30 seconds go, but the first of them is younger than this one
	kept(50)
	save(51, 120_000, 149_000) // the long one is the first, and has ended within the minute
	kept(51)
	save(52, 149_000, 150_500) // the long one is old, and so are all others but the last two
	kept(3)
}

// However many large bodies come at once, few are read at once, and all are answered.
func TestLargeBodiesAreReadFewAtATime(t *testing.T) {
	p := start(t, nil)
	body := `{"exec":{"kind":"disdel:1","code":"` + strings.Repeat("x", largeBody) + `"}}`
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			if got := ask(t, p, p.AuthKey(), "PUT", fmt.Sprintf("_/actions/a%d", i), body); got.status != 200 {
				t.Errorf("%d %.200s", got.status, got.body)
			}
		})
	}
	all.Wait()
	if len(p.largeBodies) != 0 {
		t.Errorf("%d places are taken", len(p.largeBodies))
	}
}
