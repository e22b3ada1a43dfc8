package history_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/test/historytest"
)

// watched is a server in front of another one: it counts what views and selectors are asked, and may answer itself.
type watched struct {
	views, selectors atomic.Int32
	instead          func(w http.ResponseWriter, r *http.Request) bool // nil: never
}

func (x *watched) before(t *testing.T, address string) string {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(to)
	transport := &http.Transport{}
	through.Transport = transport
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/_view/"):
			x.views.Add(1)
		case strings.HasSuffix(r.URL.Path, "/_find"):
			x.selectors.Add(1)
		}
		if x.instead == nil || !x.instead(w, r) {
			through.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	return server.URL
}

// toldOf has everything that a record can tell of an activation that passed and of one that failed.
func toldOf(n int) disdel.Record {
	r := historytest.Record(n)
	beats := []disdel.Beat{{At: 1e9, Resident: 40 * disdel.MB, Peak: 41 * disdel.MB, Batch: 3, Batches: 9}}
	passed := r.Activations[0]
	passed.Beats, passed.Logs, passed.Evidence = beats, []string{"a line"}, []string{"exit 0"}
	failed := passed
	failed.Outcome, failed.Attempt = disdel.OutcomeTimeout, 2
	failed.Failure = &disdel.Error{Kind: disdel.Timeout, Op: "train", Msg: "too slow"}
	r.Activations = []disdel.Activation{passed, failed}
	r.Stages = []disdel.Stage{{Rounds: 3, BatchSize: 32, Epochs: 1, Reasons: []string{"because"}}}
	r.Transitions = []disdel.Transition{{To: disdel.StatusRunning, At: r.Created}}
	r.Warnings = []string{"watch out"}
	return r
}

// What a plan learns from the rows of a view is what it would learn from whole records: nothing is missing but what
// only people read.
func TestAViewTellsAPlanWhatRecordsTell(t *testing.T) {
	var x watched
	s := opener(x.before(t, pouchdb(t)))(t)
	for n := range 3 {
		r := toldOf(n)
		if err := s.Save(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Similar(t.Context(), historytest.Record(0).Job)
	if err != nil || len(got) != 3 {
		t.Fatalf("%d records, %v", len(got), err)
	}
	want := toldOf(2)
	want.Activations[0].Beats, want.Activations[0].Logs, want.Activations[0].Evidence = nil, nil, nil
	want.Activations[1].Logs, want.Activations[1].Evidence = nil, nil
	want.Stages[0].Reasons, want.Transitions, want.Warnings = nil, nil, nil
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if x.views.Load() == 0 || x.selectors.Load() > 0 {
		t.Errorf("views were asked %d times, selectors %d times", x.views.Load(), x.selectors.Load())
	}
}

// many are records of two tenants and of nobody, of two networks, two data sets and three states.
func many(t *testing.T, s *history.Store) {
	t.Helper()
	for n := range 90 {
		r := historytest.Record(n)
		r.Tenant = []string{"", "ann", "bob"}[n%3]
		r.Data.Name = []string{"digits", "clothes"}[n/3%2]
		r.Job.Model.Name, r.Job.Output.Model = []string{"lenet5", "resnet18"}[n/6%2], "mine"
		if n%7 == 0 {
			r.Job.Model = disdel.Model{Python: &disdel.Python{File: "net.py", Entry: []string{"Net", "Other"}[n%2]}}
		}
		r.Status = []disdel.Status{
			disdel.StatusSucceeded, disdel.StatusSucceeded, disdel.StatusSucceeded, disdel.StatusFailed, disdel.StatusRunning,
		}[n%5]
		if err := s.Save(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
}

// ids is what a list has.
func ids(t *testing.T, s *history.Store, q history.Query) (out []disdel.JobID) {
	t.Helper()
	list, err := s.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		out = append(out, list[i].ID)
	}
	return out
}

// Lists by views are those by selectors: for every condition and every two of them, for each tenant, page by page.
func TestListsByViewsAreListsBySelectors(t *testing.T) {
	var x watched
	by := opener(x.before(t, pouchdb(t)))(t)
	plain := opener(lite(t, filepath.Join(t.TempDir(), "history.db")).URL())(t)
	many(t, by)
	many(t, plain)
	for _, q := range []history.Query{
		{},
		{Status: disdel.StatusFailed},
		{Dataset: "clothes"},
		{Model: "resnet18"},
		{Model: "mine"},
		{Model: "none"},
		{Model: "net.py"},
		{Model: "net.py:Net"},
		{Model: "net.py:Other"},
		{Status: disdel.StatusFailed, Model: "net.py:Net"},
		{Status: disdel.StatusRunning, Dataset: "digits"},
		{Status: disdel.StatusFailed, Model: "lenet5"},
		{Dataset: "digits", Model: "mine"},
		{Status: disdel.StatusFailed, Dataset: "clothes", Model: "resnet18"},
		{Status: disdel.StatusSucceeded, Since: historytest.Record(50).Created},
	} {
		for name, of := range map[string][2]*history.Store{
			"all": {by, plain}, "ann": {by.ForTenant("ann"), plain.ForTenant("ann")},
			"nobody": {by.ForTenant(""), plain.ForTenant("")},
		} {
			for _, q.Limit = range []int{3, 100} {
				if diff := cmp.Diff(ids(t, of[1], q), ids(t, of[0], q)); diff != "" {
					t.Errorf("%s: %+v (-selector +view)\n%s", name, q, diff)
				}
			}
		}
	}
	if n := x.views.Load(); n == 0 {
		t.Error("no view was asked")
	}
	if n := len(ids(t, by, history.Query{Model: "net.py:Net", Limit: 100})); n != 7 {
		t.Errorf("%d jobs of net.py:Net, want 7", n)
	}
	var paged []disdel.JobID
	q := history.Query{Status: disdel.StatusSucceeded, Limit: 7}
	for {
		page := ids(t, by, q)
		if len(page) == 0 {
			break
		}
		paged, q.Before = append(paged, page...), page[len(page)-1]
	}
	q.Before, q.Limit = "", 100
	if diff := cmp.Diff(ids(t, by, q), paged); diff != "" || len(paged) != 54 {
		t.Errorf("page by page (-whole +pages)\n%s", diff)
	}
}

// Who may make no views is served by selectors, and does not ask again.
func TestAUserWithoutTheRightToMakeViews(t *testing.T) {
	x := watched{instead: func(w http.ResponseWriter, r *http.Request) bool {
		made := r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/_design/disdel-view")
		if made {
			http.Error(w, `{"error":"forbidden","reason":"You are not a db or server admin."}`, http.StatusForbidden)
		}
		return made
	}}
	s := opener(x.before(t, pouchdb(t)))(t)
	many(t, s)
	for range 3 {
		if got := ids(t, s, history.Query{Status: disdel.StatusFailed, Limit: 100}); len(got) != 18 {
			t.Errorf("%d records", len(got))
		}
	}
	if x.views.Load() != 1 || x.selectors.Load() == 0 {
		t.Errorf("views were asked %d times, selectors %d times", x.views.Load(), x.selectors.Load())
	}
}

// A view of a large history takes long to be built: what asks it meanwhile is answered without it.
func TestAViewThatIsBeingBuilt(t *testing.T) {
	x := watched{instead: func(_ http.ResponseWriter, r *http.Request) bool {
		built := strings.Contains(r.URL.Path, "/_view/")
		if built {
			<-r.Context().Done()
		}
		return built
	}}
	s := hasty(x.before(t, pouchdb(t)), 100*time.Millisecond)(t)
	r := historytest.Record(1)
	if err := s.Save(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	within, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for range 3 {
		if got, err := s.Similar(within, r.Job); err != nil || len(got) != 1 {
			t.Fatalf("%d records, %v", len(got), err)
		}
	}
	if n := x.views.Load(); n < 1 {
		t.Errorf("the view was asked %d times", n)
	}
}
