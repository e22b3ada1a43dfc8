package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/scheduler"
)

// TestSubmissionsSayABoundedAmount sends drawn submissions with one part that is too long. Every route that takes
// submissions refuses them, and names the part.
func TestSubmissionsSayABoundedAmount(t *testing.T) {
	h := newHouse(t, Config{})
	h.submitted()
	rng := rand.New(rand.NewPCG(31, 6))
	long := func(most int) string { return strings.Repeat("x", most+1+rng.IntN(10*most)) }
	many := func(most int) []string { return slices.Repeat([]string{"training.epochs=1"}, most+1+rng.IntN(3*most)) }
	for part, change := range map[string]func(s *apitypes.Submission){
		"name":           func(s *apitypes.Submission) { s.Name = long(mostName) },
		"estimator":      func(s *apitypes.Submission) { s.Estimator = long(mostName) },
		"sets has":       func(s *apitypes.Submission) { s.Sets = many(mostSets) },
		"sets[0]":        func(s *apitypes.Submission) { s.Sets = []string{long(mostText)} },
		"origin.command": func(s *apitypes.Submission) { s.Origin = &disdel.Origin{Command: long(mostName)} },
		"origin.file":    func(s *apitypes.Submission) { s.Origin = &disdel.Origin{File: long(mostText)} },
		"origin.sets":    func(s *apitypes.Submission) { s.Origin = &disdel.Origin{Sets: many(mostSets)} },
		"origin has":     func(s *apitypes.Submission) { s.Origin = &disdel.Origin{Sets: []string{long(mostOrigin)}} },
		"origin.options has": func(s *apitypes.Submission) {
			s.Origin = &disdel.Origin{Options: make([]disdel.Option, mostOptions+1)}
		},
		"origin.options[0].name": func(s *apitypes.Submission) {
			s.Origin = &disdel.Origin{Options: []disdel.Option{{Name: long(mostName)}}}
		},
		"beside": func(s *apitypes.Submission) { s.Siblings = -mostBeside - 1 - rng.IntN(1000) },
		"questions.policies": func(s *apitypes.Submission) {
			s.Questions = &apitypes.Questions{Policies: many(mostAsked)}
		},
		"metadata.labels": func(s *apitypes.Submission) {
			for i := range mostLabels + 1 {
				s.Sets = append(s.Sets, fmt.Sprintf("metadata.labels.l%d=x", i))
			}
		},
	} {
		s := apitypes.Submission{File: job}
		change(&s)
		paths := []string{"/api/v1/jobs", "/api/v1/estimates", "/api/v1/checks"}
		if part != "metadata.labels" { // which a resume does not read
			paths = append(paths, "/api/v1/jobs/@last/resume")
		}
		for _, path := range paths {
			status, data := h.ask("ann submit", "POST", path, s)
			if word, _, _ := strings.Cut(part, " has"); status != 400 || !bytes.Contains(data, []byte(word+" has")) {
				t.Errorf("%s to %s: %d %.200s", part, path, status, data)
			}
		}
	}
}

// TestGridsAreBounded asks for grids without one of their sides, and for grids of a deep network.
func TestGridsAreBounded(t *testing.T) {
	h := newHouse(t, Config{})
	layers := strings.Repeat("{dense: {units: 10}}, ", 500) + "{dense: {units: 10}}"
	deep := strings.Replace(job, "{name: digits-cnn}", "{layers: [{flatten: {}}, "+layers+"]}", 1)
	numbers := func(n int) []int { return slices.Repeat([]int{1}, n) }
	for name, c := range map[string]struct {
		file string
		grid scheduler.Grid
	}{
		"workers alone": {job, scheduler.Grid{Workers: numbers(mostCells + 1)}},
		"batches alone": {job, scheduler.Grid{Batches: numbers(100_000)}},
		"both":          {job, scheduler.Grid{Workers: numbers(40), Batches: numbers(40)}},
		"deep":          {deep, scheduler.Grid{Workers: numbers(20), Batches: numbers(20)}},
	} {
		s := apitypes.Submission{File: c.file, Questions: &apitypes.Questions{Grid: &c.grid}}
		if status, data := h.ask("ann submit", "POST", "/api/v1/estimates", s); status != 400 ||
			!bytes.Contains(data, []byte("the grid has")) {
			t.Errorf("%s: %d %.200s", name, status, data)
		}
	}
}

// TestAListHasAPageOfBoundedSize lists drawn large records: each answer has a bounded size, the pages together have
// each record once and in order, and the client's list is that of the home.
func TestAListHasAPageOfBoundedSize(t *testing.T) {
	race.SkipSequential(t)
	h := newHouse(t, Config{})
	rec := h.submitted()
	all, err := h.s.Tenant("ann").History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rec, err = all.Get(t.Context(), rec.ID); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(31, 1))
	for i := range 24 {
		large := rec
		large.ID = disdel.JobID(fmt.Sprintf("job-01ky5b8c00000000000000%02dzz", i))
		letters := make([]byte, rng.IntN(1<<20))
		for i := range letters {
			letters[i] = byte('a' + rng.IntN(26))
		}
		large.Origin = &disdel.Origin{Command: string(letters)}
		if err := all.Save(t.Context(), &large); err != nil {
			t.Fatal(err)
		}
	}
	want, err := all.List(t.Context(), history.Query{Limit: mostJobs})
	if err != nil || len(want) != 25 {
		t.Fatalf("%d records, %v", len(want), err)
	}
	var got []disdel.JobID
	pages, before := 0, ""
	for {
		status, data := h.ask("ann read", "GET", "/api/v1/jobs?limit=1000"+before, nil)
		var out apitypes.JobList
		if err := json.Unmarshal(data, &out); err != nil || status != 200 || len(data) > mostListed+2<<20 {
			t.Fatalf("%d, %d bytes, %v", status, len(data), err)
		}
		for _, r := range out.Jobs {
			got = append(got, r.ID)
		}
		if pages++; out.Next == "" {
			break
		}
		before = "&before=" + string(out.Next)
	}
	ids := func(list []disdel.Record) (out []disdel.JobID) {
		for _, r := range list {
			out = append(out, r.ID)
		}
		return out
	}
	if !slices.Equal(got, ids(want)) || pages < 3 {
		t.Errorf("%d pages list\n%v, and the records are\n%v", pages, got, ids(want))
	}
	at, err := client.Remote(client.Server{URL: h.URL, Token: h.tokens["ann read"]})
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 7, 25, 1000} {
		list, err := at.Records.List(t.Context(), history.Query{Limit: limit})
		if err != nil || !slices.Equal(ids(list), ids(want)[:min(limit, 25)]) {
			t.Errorf("the client lists %v of %d, %v", ids(list), limit, err)
		}
	}
	for i := range 2 * history.DefaultLimit {
		small := rec
		small.ID = disdel.JobID(fmt.Sprintf("job-01ky5b8c00000000000%03dyyyy", i))
		if err := all.Save(t.Context(), &small); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := at.Records.List(t.Context(), history.Query{}); err != nil || len(list) != history.DefaultLimit {
		t.Errorf("without a limit the client lists %d jobs, %v", len(list), err)
	}
}

// TestABodyWithoutATokenIsNotRead begins to send bodies without a valid token, or with one that may not upload. The
// server answers before the body has arrived, and closes the connection.
func TestABodyWithoutATokenIsNotRead(t *testing.T) {
	h := newHouse(t, Config{})
	for _, path := range []string{"/api/v1/weights/sha256:0", "/api/v1/datasets/x"} {
		for _, header := range []string{
			"", "Authorization: Bearer x\r\n", "Authorization: Bearer " + h.tokens["ann read"] + "\r\n",
		} {
			c, err := net.Dial("tcp", h.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(c, "PUT %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: 100000000\r\n\r\nbegin", path, header)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !res.Close || res.StatusCode != 401 && res.StatusCode != 403 {
				t.Errorf("%s with %q: %s, closed: %v", path, header, res.Status, res.Close)
			}
			res.Body.Close()
			c.Close()
		}
	}
}

// TestOnlySoManyAtOnce opens as many streams and uploads as a tenant may have. The server refuses the next one with
// Retry-After, but serves other tenants. Once one ends, the tenant may open another one.
func TestOnlySoManyAtOnce(t *testing.T) {
	h := newHouse(t, Config{})
	rec := h.submitted("training.epochs=1000")
	defer h.ask("ann submit", "POST", "/api/v1/jobs/"+string(rec.ID)+"/cancel", nil)
	open := func(who string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), "GET", h.URL+"/api/v1/jobs/"+string(rec.ID)+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+h.tokens[who])
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	var streams []*http.Response
	for range costStream.maximum {
		res := open("ann read")
		if res.StatusCode != 200 {
			t.Fatal(res.Status)
		}
		streams = append(streams, res)
	}
	refused := open("ann submit")
	if refused.StatusCode != http.StatusTooManyRequests || refused.Header.Get("Retry-After") == "" {
		t.Errorf("one stream too many: %s", refused.Status)
	}
	refused.Body.Close()
	if res := open("bob read"); res.StatusCode != http.StatusNotFound { // it is ann's job
		t.Errorf("another tenant: %s", res.Status)
	}
	if status, data := h.ask("ann read", "GET", "/api/v1/jobs", nil); status != 200 {
		t.Errorf("streams keep the tenant from everything else: %d %s", status, data)
	}
	if err := h.s.Tenants().Delete(t.Context(), "ann"); err != nil { // all streams end with the tokens
		t.Fatal(err)
	}
	for _, res := range streams {
		done := make(chan error, 1)
		go func() { done <- last(res) }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("a stream of a deleted tenant goes on")
		}
	}
}

// last reads a stream to its end.
func last(res *http.Response) error {
	defer res.Body.Close()
	_, err := bufio.NewReader(res.Body).WriteTo(io.Discard)
	return err
}
