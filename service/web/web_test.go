package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

func TestMain(m *testing.M) {
	if served, _ := service.ServeActions(context.Background(), os.Args); served {
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// hostile is a text that becomes a script, or ends an attribute, wherever it is not escaped.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>'` + "\x1b[31m"

// house is the pages of a service with two tenants.
type house struct {
	*httptest.Server
	t *testing.T
	s *service.Service
}

// who may sign in: the token is the tenant's name and the role.
var tokens = map[string]tenant.Role{
	"ann read": tenant.RoleRead, "ann submit": tenant.RoleSubmit,
	"bob submit": tenant.RoleSubmit,
	"ann admin":  tenant.RoleAdmin, "operator admin": tenant.RoleAdmin,
}

func newHouse(t *testing.T) *house { return newHouseOf(t, service.Config{}) }

func newHouseOf(t *testing.T, cfg service.Config) *house {
	t.Helper()
	cfg.Home = t.TempDir()
	s, err := service.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, s: s}
	h.Server = httptest.NewServer(Handler(Config{
		Enter: "once", Token: "ann submit",
		Sign: func(_ context.Context, token string) (*service.Service, tenant.Role, error) {
			role, ok := tokens[token]
			if !ok {
				return nil, "", &disdel.Error{Kind: disdel.Denied, Op: "sign in", Msg: "this token opens nothing"}
			}
			tenant, _, _ := strings.Cut(token, " ")
			if tenant == "operator" {
				return s, role, nil
			}
			return s.Tenant(tenant), role, nil
		},
	}))
	t.Cleanup(func() {
		h.CloseClientConnections() // of a browser that was killed
		h.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// browser is somebody with a cookie jar who follows no redirects.
type browser struct {
	*house
	cookie *http.Cookie
	extra  string // a further cookie; "": none
}

func (h *house) signedIn(token string) *browser {
	h.t.Helper()
	b := &browser{house: h}
	res, _ := b.send("POST", "/ui/login", url.Values{"token": {token}})
	if res.StatusCode != http.StatusSeeOther || len(res.Cookies()) != 1 {
		h.t.Fatalf("%d %v", res.StatusCode, res.Cookies())
	}
	b.cookie = res.Cookies()[0]
	return b
}

func (b *browser) send(method, path string, form url.Values) (*http.Response, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return b.answer(r)
}

// answer is what the server says to a request.
func (b *browser) answer(r *http.Request) (*http.Response, string) {
	b.t.Helper()
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	if b.extra != "" {
		r.Header.Add("Cookie", b.extra)
	}
	res, err := b.Client().Transport.RoundTrip(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res, string(text)
}

// page is a page that has to be there.
func (b *browser) page(path string) (*html.Node, string) {
	b.t.Helper()
	res, text := b.send("GET", path, nil)
	if res.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %d %s", path, res.StatusCode, text)
	}
	return b.sound(path, text), text
}

// save writes records of a tenant's jobs.
func (h *house) save(list ...*disdel.Record) {
	h.t.Helper()
	for _, r := range list {
		store, err := h.s.Tenant(r.Tenant).History(h.t.Context())
		if err == nil {
			err = store.Save(h.t.Context(), r)
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

var born = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// job is the record of a tenant's job that ended, the number-th that was submitted.
func job(tenant, name string, number int) *disdel.Record {
	created := born.Add(time.Duration(number) * time.Minute)
	id := disdel.JobID("job-" + strings.ToLower(ulid.MustNew(ulid.Timestamp(created), ulid.DefaultEntropy()).String()))
	r := &disdel.Record{
		APIVersion: disdel.APIVersion, ID: id, Status: disdel.StatusSucceeded, Created: created,
		Ended:  created.Add(time.Minute),
		Tenant: tenant, CostGBs: 1.5, Accuracy: 0.9, Loss: 0.3,
	}
	r.Job.Metadata.Name, r.Job.Model.Name, r.Job.Data.Source = name, "digits-cnn", "dataset://digits"
	r.Job.Training.BatchSize, r.Data.Name, r.Plan.Workers = 64, "digits", 2
	r.Plan.Rounds = 3
	for i := range 3 {
		loss, accuracy := 1/float64(i+1), 0.7+0.1*float64(i)
		r.Rounds = append(r.Rounds,
			disdel.Round{Round: i, TrainLoss: loss, Loss: &loss, Accuracy: &accuracy, Duration: disdel.Millis(time.Second)})
		r.Activations = append(r.Activations, disdel.Activation{
			Invocation: disdel.Invocation{
				ID: fmt.Sprintf("round %d/train/0", i), Task: disdel.TaskTrain, Round: i, Attempt: 1,
				Limits: disdel.Limits{Memory: 256 * disdel.MB},
			},
			Outcome: disdel.OutcomeSuccess, Start: created.Add(time.Duration(i) * time.Second),
			End: created.Add(time.Duration(i+1) * time.Second), Duration: disdel.Millis(time.Second), Peak: 180 * disdel.MB,
		})
	}
	return r
}

// hostileJob has hostile texts wherever a job's owner, his data or an action can put them.
func hostileJob(tenant string, number int) *disdel.Record {
	r := job(tenant, hostile, number)
	r.Job.Metadata.Labels = map[string]string{hostile: hostile}
	r.Job.Model.Name, r.Data.Name, r.Status, r.Stopped = hostile, hostile, disdel.StatusFailed, hostile
	r.Failure = &disdel.Error{Kind: disdel.Crashed, Op: hostile, Msg: hostile, Hint: hostile, Err: errors.New(hostile)}
	r.Warnings, r.Plan.Reasons = []string{hostile}, []string{hostile}
	last := &r.Activations[2]
	last.Outcome, last.Failure = disdel.OutcomeApplicationError, r.Failure
	last.Logs, last.Evidence = []string{hostile}, []string{hostile}
	last.Invocation.ID = "round 2/train/0" + hostile
	return r
}

// sound holds a page against what every page is held to: what is opened is closed, nothing is executed or loaded that
// is not the page's own, every field has a name, every table a caption or a name, ids are there once, and no text of a
// user is anything but text.
func (b *browser) sound(path, text string) *html.Node {
	b.t.Helper()
	balanced(b.t, path, text)
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		b.t.Fatalf("%s: %v", path, err)
	}
	if strings.Contains(text, "\x1b") {
		b.t.Errorf("%s: a control character came through", path)
	}
	ids, labels := map[string]bool{}, map[string]bool{}
	each(doc, func(n *html.Node) {
		if n.Data == "label" {
			labels[attribute(n, "for")] = true
		}
	})
	headings := 0
	each(doc, func(n *html.Node) {
		if id := attribute(n, "id"); id != "" && ids[id] {
			b.t.Errorf("%s: there are two ids %q", path, id)
		} else if id != "" {
			ids[id] = true
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				b.t.Errorf("%s: <%s %s=%q>", path, n.Data, a.Key, a.Val)
			}
			if (a.Key == "href" || a.Key == "src" || a.Key == "action") && !strings.HasPrefix(a.Val, "/ui/") &&
				a.Val != "#main" {
				b.t.Errorf("%s: <%s %s=%q> leads elsewhere", path, n.Data, a.Key, a.Val)
			}
		}
		switch n.Data {
		case "h1":
			headings++
		case "script":
			if attribute(n, "src") != "/ui/app.js" || n.FirstChild != nil {
				b.t.Errorf("%s: a script that is not the page's", path)
			}
		case "img", "iframe", "object", "embed", "style", "base":
			b.t.Errorf("%s: <%s>", path, n.Data)
		case "input", "select":
			if attribute(n, "type") != "hidden" && attribute(n, "aria-label") == "" && !labels[attribute(n, "id")] {
				b.t.Errorf("%s: a field %q without a name", path, attribute(n, "name"))
			}
		case "svg":
			if attribute(n, "aria-label") == "" && attribute(n, "aria-hidden") == "" {
				b.t.Errorf("%s: a picture without a text", path)
			}
		}
	})
	labelled(b.t, path, doc)
	if headings != 1 {
		b.t.Errorf("%s: %d headings of the first order", path, headings)
	}
	return doc
}

// void are the elements that are never closed.
var void = []string{"meta", "link", "input", "br", "img", "hr"}

// balanced holds a page to closing what it opens, in order.
func balanced(t *testing.T, path, text string) {
	t.Helper()
	var open []string
	for z := html.NewTokenizer(strings.NewReader(text)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			if len(open) > 0 || !errors.Is(z.Err(), io.EOF) {
				t.Errorf("%s: %v is left open, %v", path, open, z.Err())
			}
			return
		case html.StartTagToken:
			if name, _ := z.TagName(); !slices.Contains(void, string(name)) {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			last := len(open) - 1
			if last < 0 || open[last] != string(name) && open[last] != "option" {
				t.Fatalf("%s: </%s> closes %v", path, name, open)
			}
			for open[last] == "option" && string(name) != "option" { // which needs no end
				last--
			}
			open = open[:last]
		}
	}
}

func each(n *html.Node, f func(*html.Node)) {
	if n.Type == html.ElementNode {
		f(n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		each(c, f)
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// rows are the texts of the rows of a table's body.
func rows(doc *html.Node, table string) (out []string) {
	each(doc, func(n *html.Node) {
		if n.Data == "table" && (table == "" || attribute(n, "id") == table) {
			each(n, func(row *html.Node) {
				if row.Data == "tr" && row.Parent.Data == "tbody" {
					out = append(out, words(row))
				}
			})
		}
	})
	return out
}

func words(n *html.Node) string {
	var out strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			out.WriteString(n.Data + " ")
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(n)
	return strings.Join(strings.Fields(out.String()), " ")
}

// Every page is sound, with nothing in it, with jobs, and with hostile texts in all places.
func TestEveryPageIsSound(t *testing.T) {
	h := newHouse(t)
	b := h.signedIn("ann submit")
	static := []string{"/ui/", "/ui/jobs", "/ui/models", "/ui/datasets", "/ui/pool"}
	for _, path := range static {
		b.page(path)
	}
	if _, text := (&browser{house: h}).send("GET", "/ui/login", nil); text == "" {
		t.Error("no page to sign in")
	} else {
		b.sound("/ui/login", text)
	}
	list := []*disdel.Record{job("ann", "small", 1), hostileJob("ann", 2), job("ann", "third", 3)}
	list[2].Status, list[2].Rounds, list[2].Activations = disdel.StatusRunning, nil, nil
	for _, r := range list {
		r.Plan.Stages = []disdel.PlannedStage{{First: hostile, Last: hostile}}
	}
	h.save(list...)
	if err := h.s.Tenant("ann").AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range static {
		b.page(path)
	}
	for _, r := range list {
		for _, s := range jobSections {
			b.page("/ui/jobs/" + string(r.ID) + "?section=" + s.Key)
		}
	}
	query := url.Values{"job": {string(list[0].ID), string(list[1].ID), string(list[2].ID)}}
	b.page("/ui/compare?" + query.Encode())
	b.page("/ui/jobs?" + url.Values{
		"q": {"x"}, "sort": {hostile}, "group": {hostile}, "cols": {"state," + hostile, hostile},
	}.Encode())
	b.page("/ui/jobs?" + url.Values{"sort": {hostile}, "group": {"name"}, "cols": {"name,tag," + hostile}}.Encode())
	for _, path := range []string{
		"/ui/jobs?" + url.Values{"q": {hostile}}.Encode(), "/ui/jobs?" + url.Values{"q": {"name = " + hostile}}.Encode(),
		"/ui/jobs/" + url.PathEscape("none "+hostile), "/ui/nothing", "/ui/compare?job=a",
		"/ui/jobs/" + string(list[0].ID) + "?section=none", "/ui/jobs/" + string(list[0].ID) + "/files/none",
	} {
		if res, text := b.send("GET", path, nil); res.StatusCode < 400 || res.StatusCode >= 500 {
			t.Errorf("%s: %d", path, res.StatusCode)
		} else {
			b.sound(path, text)
		}
	}
}

// The list of jobs shows only jobs that match the filter, in the chosen order.
func TestTheListOfJobs(t *testing.T) {
	h := newHouse(t)
	var list []*disdel.Record
	for i, name := range []string{"alpha", "beta", "gamma"} {
		r := job("ann", name, i)
		r.CostGBs = float64(10 - i)
		r.Job.Metadata.Labels = map[string]string{"team": name[:1]}
		list = append(list, r)
	}
	list[1].Status = disdel.StatusFailed
	h.save(list...)
	h.tag(list[0], "first")
	b := h.signedIn("ann read")
	for address, want := range map[string][]string{
		"":                                    {"gamma", "beta", "alpha"},
		"sort=name&dir=up":                    {"alpha", "beta", "gamma"},
		"sort=cost":                           {"alpha", "beta", "gamma"},
		"sort=tag":                            {"alpha", "gamma", "beta"}, // jobs without a value come last, newest first
		"q=label.team%3Db":                    {"beta"},
		"q=digits+succ":                       {"gamma", "alpha"},
		"q=cost+%3C+9":                        {"gamma"},
		"q=not+tag:first":                     {"gamma", "beta"},
		"q=first":                             {"alpha"},
		"status=failed":                       {"beta"},
		"limit=2":                             {"gamma", "beta"},
		"limit=2&sort=cost":                   {"alpha", "beta"}, // the order is that of all jobs
		"q=" + string(list[0].ID):             {"alpha"},
		"q=nothing":                           {},
		"cols=name,label.team&q=label.team:a": {"alpha"},
		"group=state":                         {"Status:", "gamma", "alpha", "Status:", "beta"},
		"group=tag":                           {"Tags:", "gamma", "beta", "Tags:", "alpha"},
	} {
		path := "/ui/jobs?" + address

		doc, _ := b.page(path)
		got := []string{}
		for _, row := range rows(doc, "jobs") {
			name, _, _ := strings.Cut(row, " ")
			got = append(got, name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, not %v", path, got, want)
		}
	}
}

// A browser keeps columns and views: the address asks for it once, and then only the cookie has it.
func TestTheListKeepsColumnsAndViews(t *testing.T) {
	h := newHouse(t)
	one, two := job("ann", "one", 1), job("ann", "two", 2)
	two.Job.Training.BatchSize = 128
	h.save(one, two)
	b := h.signedIn("ann read")
	follow := func(path string) (kept string) {
		t.Helper()
		res, _ := b.send("GET", path, nil)
		if res.StatusCode != 303 {
			t.Fatalf("%s: %d", path, res.StatusCode)
		}
		if len(res.Cookies()) == 1 && res.Cookies()[0].MaxAge >= 0 {
			kept = res.Cookies()[0].Name + "=" + res.Cookies()[0].Value
		}
		b.extra = kept
		return res.Header.Get("Location")
	}
	if to := follow("/ui/jobs?cols=state&cols=workers&other=training.batchSize&keep=1&q=t"); to !=
		"/ui/jobs?cols=state%2Cworkers%2Ctraining.batchSize&q=t" {
		t.Errorf("columns lead to %s", to)
	}
	doc, text := b.page("/ui/jobs")
	if list := rows(doc, "jobs"); len(list) != 2 || !strings.HasSuffix(list[0], "succeeded 2 128") {
		t.Errorf("%q", list)
	}
	if !strings.Contains(text, `value="training.batchSize" checked`) {
		t.Error("a chosen column is not ticked")
	}
	if to := follow("/ui/jobs?keep=1"); to != "/ui/jobs" {
		t.Errorf("the usual columns are at %s", to)
	}
	if b.extra != "" {
		t.Errorf("the usual columns are kept as %q", b.extra)
	}
	if to := follow("/ui/jobs?q=name:two&group=data&save=mine"); to != "/ui/jobs?group=data&q=name%3Atwo" {
		t.Errorf("a saved view leads to %s", to)
	}
	if _, text = b.page("/ui/jobs"); !strings.Contains(text, `<a href="/ui/jobs?group=data&amp;q=name%3Atwo">mine</a>`) {
		t.Error("the saved view is no link")
	}
	if follow("/ui/jobs?forget=mine"); b.extra != "" {
		t.Errorf("a forgotten view is kept as %q", b.extra)
	}
	if follow("/ui/jobs?save=" + strings.Repeat("x", 40) + "&q=" + strings.Repeat("y", 4000)); b.extra != "" {
		t.Error("a view that no cookie holds is kept")
	}
	full := follow("/ui/jobs?save=long&group=" + strings.Repeat("y", 4000))
	if _, text = b.page(full); !strings.Contains(text, "Forget one first") {
		t.Error("the page does not say that the view was not saved")
	}
}

// Groups have totals, and a click on a view adds its condition or removes it.
func TestGroupsAndViews(t *testing.T) {
	h := newHouse(t)
	one, two := job("ann", "one", 1), job("ann", "two", 2)
	two.Status = disdel.StatusFailed
	h.save(one, two)
	b := h.signedIn("ann read")
	doc, _ := b.page("/ui/jobs?group=state")
	if list := rows(doc, "jobs"); len(list) != 4 ||
		list[2] != "Status: succeeded 1 job · best accuracy 0.9000 · 60.0 s in all · 1.50 GB-s" {
		t.Errorf("%q", list)
	}
	for q, want := range map[string]string{
		"":                         "state:failed",
		"state:failed":             "",
		"x and state:failed":       "x",
		"a or b":                   "(a or b) and state:failed",
		"tag:x and accuracy > 0.5": "tag:x and accuracy > 0.5 and state:failed",
	} {
		l := jobList{Query: q}
		to, err := url.Parse(l.condition(url.Values{"q": {q}}, "Failed", "state:failed").Link)
		if err != nil || to.Query().Get("q") != want {
			t.Errorf("%q becomes %q", q, to.Query().Get("q"))
		}
	}
}

// Jobs stand beside each other with what is different about them.
func TestComparisons(t *testing.T) {
	h := newHouse(t)
	one, two := job("ann", "one", 1), job("ann", "two", 2)
	two.Job.Training.BatchSize = 128
	h.save(one, two)
	doc, _ := h.signedIn("ann read").page("/ui/compare?job=" + string(one.ID) + "&job=" + string(two.ID))
	if list := rows(doc, ""); !slices.Contains(list, "training.batchSize 64 128") ||
		!slices.Contains(list, "accuracy 0.9000 0.9000") {
		t.Errorf("%q", list)
	}
}

// Nothing of a tenant is on another one's pages, under whatever address.
func TestTenantsSeeTheirOwn(t *testing.T) {
	h := newHouse(t)
	r := job("ann", "anns-secret", 1)
	r.Status = disdel.StatusQueued
	h.save(r)
	if err := h.s.Tenant("ann").AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	bob := h.signedIn("bob submit")
	id := string(r.ID)
	for _, path := range []string{
		"/ui/jobs", "/ui/models", "/ui/datasets", "/ui/pool", "/ui/jobs/" + id, "/ui/jobs/anns-secret",
		"/ui/compare?job=" + id + "&job=" + id, "/ui/live/jobs/" + id,
	} {
		res, text := bob.send("GET", path, nil)
		known := strings.Contains(text, "anns-secret") && path != "/ui/jobs/anns-secret" || strings.Contains(text, "digits")
		if known || strings.Contains(path, id) && res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, res.StatusCode, text)
		}
	}
	if res, _ := bob.send("POST", "/ui/jobs/"+id+"/cancel", url.Values{}); res.StatusCode != http.StatusNotFound {
		t.Errorf("bob cancels ann's job: %d", res.StatusCode)
	}
	if doc, _ := h.signedIn("ann read").page("/ui/jobs"); len(rows(doc, "jobs")) != 1 {
		t.Error("ann does not see her own")
	}
}

// Who is not signed in sees nothing, whoever he says he is; a session ends when its owner or the token's does.
func TestSigningIn(t *testing.T) {
	h := newHouse(t)
	stranger := &browser{house: h, cookie: &http.Cookie{Name: cookieName, Value: "guessed"}}
	for _, path := range []string{"/ui/", "/ui/jobs", "/ui/pool", "/ui/live/jobs", "/ui/nothing"} {
		if res, _ := stranger.send("GET", path, nil); res.StatusCode != http.StatusSeeOther ||
			res.Header.Get("Location") != "/ui/login" {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	res, text := stranger.send("POST", "/ui/login", url.Values{"token": {hostile}})
	if res.StatusCode != http.StatusUnauthorized || len(res.Cookies()) > 0 {
		t.Errorf("%d", res.StatusCode)
	}
	stranger.sound("/ui/login", text)
	b := h.signedIn("ann read")
	if c := b.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/ui" ||
		strings.Contains(c.Value, "ann") {
		t.Errorf("%+v", c)
	}
	if res, _ := b.send("POST", "/ui/jobs/any/cancel", url.Values{}); res.StatusCode != http.StatusForbidden {
		t.Errorf("who may only look cancels: %d", res.StatusCode)
	}
	b.send("POST", "/ui/logout", url.Values{})
	if res, _ := b.send("GET", "/ui/jobs", nil); res.StatusCode != http.StatusSeeOther {
		t.Errorf("the session goes on: %d", res.StatusCode)
	}
}

// The key of who opens the page himself signs in once.
func TestTheKeySignsInOnce(t *testing.T) {
	h := newHouse(t)
	b := &browser{house: h}
	for i, key := range []string{"wrong", "once", "once"} {
		res, _ := b.send("GET", "/ui/enter?key="+key, nil)
		if got := len(res.Cookies()) == 1; got != (i == 1) {
			t.Errorf("%s, %d: %v", key, i, got)
		}
	}
}

// Every answer says what a browser may do with it.
func TestThePolicy(t *testing.T) {
	h := newHouse(t)
	b := h.signedIn("ann read")
	for _, path := range []string{"/ui/jobs", "/ui/login", "/ui/app.js", "/ui/style.css", "/ui/nothing"} {
		res, text := b.send("GET", path, nil)
		got := res.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(got, "default-src 'none'; script-src 'self';") || strings.Contains(got, "unsafe") ||
			len(text) == 0 {
			t.Errorf("%s: %q", path, got)
		}
		if res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: it may be sniffed", path)
		}
	}
}

// stream reads the kinds of events that a page is told, until it has read one that is waited for.
func (b *browser) stream(path string) (next func() string, end func()) {
	b.t.Helper()
	ctx, stop := context.WithCancel(b.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.AddCookie(b.cookie)
	res, err := b.Client().Do(r)
	if err != nil || res.StatusCode != http.StatusOK {
		b.t.Fatalf("%v %v", res, err)
	}
	lines := bufio.NewScanner(res.Body)
	return func() string {
		for lines.Scan() {
			if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				return kind
			}
			if lines.Text() == ": here" {
				return "here"
			}
		}
		return ""
	}, func() { stop(); res.Body.Close() }
}

// A list is told that it has changed, and a job's page what happens to the job, to its end.
func TestPagesAreTold(t *testing.T) {
	h := newHouse(t)
	r := job("ann", "small", 1)
	r.Status = disdel.StatusRunning
	h.save(r)
	b := h.signedIn("ann read")
	jobs, end := b.stream("/ui/live/jobs")
	defer end()
	one, endOne := b.stream("/ui/live/jobs/" + string(r.ID))
	defer endOne()
	if got := jobs(); got != "here" {
		t.Fatal(got)
	}
	if got := one(); got != "changed" { // what there is already
		t.Fatal(got)
	}
	r.Status = disdel.StatusSucceeded
	h.save(r)
	if got := jobs(); got != "changed" {
		t.Errorf("the list is told %q", got)
	}
	for got := ""; got != "over"; got = one() {
		if got != "" && got != "changed" {
			t.Errorf("the job's page is told %q", got)
		}
	}
}

// A thousand jobs are a page.
func TestManyJobs(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a thousand records")
	}
	h := newHouse(t)
	for i := range 300 {
		h.save(job("ann", fmt.Sprintf("job-%d", i), i))
	}
	doc, _ := h.signedIn("ann read").page("/ui/jobs?limit=1000")
	if got := len(rows(doc, "jobs")); got != 300 {
		t.Errorf("%d rows", got)
	}
}
