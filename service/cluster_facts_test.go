package service

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/deploy/clusterfacts"
	"github.com/disdel/disdel/executor"
)

// What the doctor has found out of a cluster is what jobs there are planned by; what was said counts more.
func TestWhatIsKnownOfAClusterIsUsed(t *testing.T) {
	t.Parallel()
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, `{"limits": {"actions_per_minute": 60, "concurrent_actions": 30}}`)
	}))
	defer cluster.Close()
	home := t.TempDir()
	facts := clusterfacts.Facts{Pool: 3 * disdel.GB, Processors: 4, Nodes: 2, PerMinute: 600}
	if err := clusterfacts.Write(home, cluster.URL, facts); err != nil {
		t.Fatal(err)
	}
	for said, want := range map[disdel.Bytes]disdel.Bytes{0: 3 * disdel.GB, disdel.GB: disdel.GB} {
		s, err := Open(t.Context(), Config{
			Program: testProgram, Home: home, OpenWhisk: OpenWhisk{Host: cluster.URL, Key: "a:b"}, Pool: said,
		})
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.openWhisk(t.Context())
		if err != nil || w.pool.memory != want {
			t.Errorf("said %v: %v, %v", said, w.pool, err)
		}
		if n := s.processors(t.Context(), nil); n != 8 {
			t.Errorf("%d processors", n)
		}
		if f := s.facts(); f.PerMinute != 600 {
			t.Errorf("%+v", f)
		}
		s.Close()
	}
	facts.AtLeast = true // a quota, or too few that were asked for, is no bound of the pool
	if err := clusterfacts.Write(home, cluster.URL, facts); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{
		Program: testProgram, Home: home, OpenWhisk: OpenWhisk{Host: cluster.URL, Key: "a:b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if w, err := s.openWhisk(t.Context()); err != nil || w.pool.memory != 0 {
		t.Errorf("at least %v: a bound of %v, %v", facts.Pool, w.pool, err)
	}
}

// served is what a pool makes of actions that all come at once: each runs as soon as there is room, and one that is
// larger than the pool is never served.
func served(draw *rand.Rand, pool disdel.Bytes) (rec disdel.Record, most, never disdel.Bytes) {
	begun := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var wave disdel.Bytes
	for range 1 + draw.IntN(12) {
		memory := disdel.Bytes(1+draw.IntN(8)) * 128 * disdel.MB
		a := disdel.Activation{Invocation: disdel.Invocation{Limits: disdel.Limits{Memory: memory}}}
		if memory > pool {
			a.Failure = &disdel.Error{Kind: disdel.Lost, Code: disdel.CodeNeverServed}
			never = max(never, memory)
		} else {
			if wave+memory > pool {
				wave, begun = 0, begun.Add(time.Minute)
			}
			wave += memory
			most = max(most, wave)
			a.Start = begun.Add(time.Duration(draw.IntN(1000)) * time.Millisecond)
			a.End = begun.Add(50 * time.Second)
		}
		rec.Activations = append(rec.Activations, a)
	}
	return rec, most, never
}

// A plan doubts the pool that the doctor found only if a job shows that it is larger or smaller. The same holds for
// quotas.
func TestAJobContradictsWhatWasFound(t *testing.T) {
	draw := rand.New(rand.NewPCG(31, 3))
	larger, smaller := 0, 0
	for range 500 {
		truth := disdel.Bytes(1+draw.IntN(16)) * 128 * disdel.MB
		found := disdel.Bytes(1+draw.IntN(16)) * 128 * disdel.MB
		rec, most, never := served(draw, truth)
		seenSmaller := false
		for i := range rec.Activations {
			a := &rec.Activations[i]
			seenSmaller = seenSmaller || a.Failure != nil && a.Limits.Memory <= found
		}
		e := runEvidence{ended: rec.Activations}
		got := contradictions(clusterfacts.Facts{Pool: found}, e, executor.RefusedQuotas{})
		if want := most > found || seenSmaller; want != (len(got) == 1) {
			t.Fatalf("%v in truth, %v found, %v ran at once, %v never: %+v", truth, found, most, never, got)
		}
		if found == truth && len(got) > 0 {
			t.Fatalf("%v was found and is true: %+v", truth, got)
		}
		if most > found {
			larger++
		}
		if seenSmaller {
			smaller++
		}
		atLeast := clusterfacts.Facts{Pool: found, AtLeast: true}
		if more := contradictions(atLeast, e, executor.RefusedQuotas{}); len(more) > 0 {
			t.Fatalf("at least %v is no bound: %+v", found, more)
		}
	}
	if larger == 0 || smaller == 0 {
		t.Errorf("%d pools were larger, %d smaller", larger, smaller)
	}
	for _, c := range []struct {
		known, heard int
		doubted      bool
	}{{60, 0, false}, {60, 60, false}, {60, 10, true}, {60, 600, true}, {0, 10, false}} {
		got := contradictions(clusterfacts.Facts{PerMinute: c.known, Concurrent: c.known}, runEvidence{},
			executor.RefusedQuotas{PerMinute: c.heard, Concurrent: c.heard})
		if (len(got) == 2) != c.doubted {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// A plan says how old its facts are. It leaves out a fact that a job contradicted, and says so, until the doctor has
// looked again. An open Service notices both changes.
func TestPlansShowTheAgeOfFactsAndLeaveOutDoubtedOnes(t *testing.T) {
	cluster := httptest.NewServer(http.NotFoundHandler())
	defer cluster.Close()
	home, now := t.TempDir(), time.Now()
	facts := clusterfacts.Facts{At: now.Add(-12 * 24 * time.Hour), Pool: 4 * disdel.GB, PerMinute: 600, Concurrent: 30}
	write := func() {
		t.Helper()
		if err := clusterfacts.Write(home, cluster.URL, facts); err != nil {
			t.Fatal(err)
		}
	}
	write()
	s, err := Open(t.Context(), Config{
		Program: testProgram, Home: home, OpenWhisk: OpenWhisk{Host: cluster.URL, Key: "a:b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	said := func() (knownPool, string) {
		t.Helper()
		w, err := s.openWhisk(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		limits := disdel.PlatformLimits{Pool: w.pool.memory, PoolFrom: w.pool.from, PoolAt: w.pool.at}
		return w.pool, strings.Join(knownText(s.facts(), limits, now), "\n")
	}
	date := facts.At.Local().Format(time.DateOnly)
	pool, text := said()
	for _, want := range []string{
		"pool has 4.00 GB", "600 times a minute", "30 invocations at once", date + " (12 days ago)",
	} {
		if pool.memory != facts.Pool || pool.from != disdel.PoolFound || !strings.Contains(text, want) {
			t.Errorf("%+v, no %q in\n%s", pool, want, text)
		}
	}
	e := runEvidence{job: "job-x", began: now, ended: []disdel.Activation{{
		Invocation: disdel.Invocation{Limits: disdel.Limits{Memory: 512 * disdel.MB}},
		Failure:    &disdel.Error{Kind: disdel.Lost, Code: disdel.CodeNeverServed},
	}}}
	refused := func(since time.Time) executor.RefusedQuotas {
		if since.After(now) { // OpenWhisk has named no quota since
			return executor.RefusedQuotas{}
		}
		return executor.RefusedQuotas{PerMinute: 10}
	}
	for range 2 {
		s.contradict(e, refused)
	}
	pool, text = said()
	for _, want := range []string{
		"pool of 4.00 GB that doctor found on " + date + " is left out: an action of 512 MB of job-x",
		"quota of 600 invocations a minute that doctor found on " + date + " is left out: OpenWhisk allows 10 now",
		"30 invocations at once",
	} {
		if pool.memory != 0 || !strings.Contains(text, want) || strings.Count(text, "left out") != 2 {
			t.Errorf("%+v, no %q in\n%s", pool, want, text)
		}
	}
	write() // the doctor has looked again
	if pool, text = said(); pool.memory != facts.Pool || strings.Contains(text, "left out") {
		t.Errorf("%+v\n%s", pool, text)
	}
	facts.At = now.Add(time.Minute) // and has found the same after the run
	write()
	s.contradict(e, refused)
	if pool, text = said(); pool.memory != facts.Pool || strings.Contains(text, "left out") {
		t.Errorf("evidence older than the facts: %+v\n%s", pool, text)
	}
}

// A run contradicts a pool only by activations of its own that began after the doctor found the pool: drawn runs with
// activations of before a resume and of before the doctor's look.
func TestOlderEvidenceDoesNotContradictNewerFacts(t *testing.T) {
	draw := rand.New(rand.NewPCG(31, 5))
	doubted := 0
	for range 500 {
		pool := disdel.Bytes(1+draw.IntN(16)) * 128 * disdel.MB
		before, _, _ := served(draw, disdel.Bytes(1+draw.IntN(16))*128*disdel.MB)
		during, _, _ := served(draw, disdel.Bytes(1+draw.IntN(16))*128*disdel.MB)
		for i := range during.Activations {
			a := &during.Activations[i]
			a.Start, a.End = a.Start.Add(time.Hour), a.End.Add(time.Hour)
			if a.Failure != nil {
				a.Start, a.End = time.Time{}, time.Time{}
			}
		}
		before.Omitted = draw.IntN(3)
		rec := before
		rec.Activations = append(slices.Clone(before.Activations), during.Activations...)
		own := endedAfter(&rec, allEnded(&before))
		began := time.Date(2026, 11, 1, 1, 0, 0, 0, time.UTC)
		ask := func(at time.Time) []clusterfacts.Doubt {
			return contradictions(clusterfacts.Facts{At: at, Pool: pool}, runEvidence{"job-x", began, own},
				executor.RefusedQuotas{})
		}
		alone := contradictions(clusterfacts.Facts{Pool: pool}, runEvidence{"job-x", began, during.Activations},
			executor.RefusedQuotas{})
		if got := ask(began.Add(-time.Second)); len(got) != len(alone) {
			t.Fatalf("activations of before the resume change what is doubted: %+v, want %+v", got, alone)
		}
		if got := ask(began.Add(2 * time.Hour)); len(got) > 0 {
			t.Fatalf("the doctor looked after the run: %+v", got)
		}
		doubted += len(alone)
	}
	if doubted == 0 {
		t.Error("no run contradicted the pool")
	}
}
