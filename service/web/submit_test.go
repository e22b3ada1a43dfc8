package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// small is the draft of the form, as one epoch by one worker.
var small = strings.NewReplacer("epochs: 3", "epochs: 1", "workers: 2", "workers: 1").Replace(draft)

// A home without jobs runs the quickstart by a button. A second click returns the first one's job. A reader has no
// button.
func TestTheQuickstartIsAButton(t *testing.T) {
	h := newHouse(t)
	b, reader := h.signedIn("ann submit"), h.signedIn("ann read")
	if doc, text := b.page("/ui/"); !strings.Contains(text, `action="/ui/quickstart"`) {
		t.Fatal(words(doc))
	}
	if _, text := reader.page("/ui/"); strings.Contains(text, "/ui/quickstart") {
		t.Error("a reader is offered what is refused")
	}
	form := url.Values{"key": {"a key of the first click"}}
	res, text := b.send("POST", "/ui/quickstart", form)
	first := res.Header.Get("Location")
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
	if res, _ = b.send("POST", "/ui/quickstart", form); res.Header.Get("Location") != first {
		t.Errorf("a second click: %d %s, want %s", res.StatusCode, res.Header.Get("Location"), first)
	}
	if r := h.wait("ann", strings.TrimPrefix(first, "/ui/jobs/")); r.Status != disdel.StatusSucceeded {
		t.Errorf("%v %v", r.Status, r.Failure)
	}
	if res, _ := reader.send("POST", "/ui/quickstart", form); res.StatusCode != http.StatusForbidden {
		t.Errorf("a reader runs it: %d", res.StatusCode)
	}
}

// The form shows all faults of a job file with their places, or the estimate. Checking starts nothing.
func TestAFormIsChecked(t *testing.T) {
	h := newHouse(t)
	b := h.signedIn("ann submit")
	if err := h.s.Tenant("ann").AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	wrong := strings.NewReplacer("epochs: 3", "epochs: -3", "workers: 2", "worker: 2").Replace(draft)
	for file, want := range map[string][]string{
		wrong:                                 {"10:11", "training.epochs", "distribution.worker"},
		draft:                                 {"Estimate", "train", "Cost at most", "Why this plan"},
		draft + "# \u00e9\r\n":                {"Estimate"},
		draft + "resources:\n  memory: 1MB\n": {"The job is not taken"},
		"":                                    {"Faults"},
		hostile:                               {"control character"},
	} {
		res, text := b.send("POST", "/ui/check", url.Values{"file": {file}})
		said := words(b.sound("/ui/check", text))
		for _, w := range want {
			if res.StatusCode != http.StatusOK || !strings.Contains(said, w) {
				t.Errorf("%d, no %q in %s", res.StatusCode, w, said)
			}
		}
		if strings.Contains(said, "?.") {
			t.Errorf("a question ends in a full stop: %s", said)
		}
	}
	if res, _ := b.send("POST", "/ui/check", url.Values{"file": {strings.Repeat("#", mostJobFile)}}); res.StatusCode !=
		http.StatusBadRequest {
		t.Errorf("a file without a bound: %d", res.StatusCode)
	}
	if doc, _ := b.page("/ui/jobs"); len(rows(doc, "jobs")) != 0 {
		t.Error("a check started a job")
	}
}

// A job starts from the form, once for each form that was shown. Its page has the forms that go on: one with its file,
// and one that trains it further.
func TestAJobFromThePage(t *testing.T) {
	h := newHouse(t)
	b := h.signedIn("ann submit")
	own := h.s.Tenant("ann")
	if err := own.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"file": {small}, "key": {"k"}}
	one, _ := b.send("POST", "/ui/submit", form)
	two, _ := b.send("POST", "/ui/submit", form)
	address := one.Header.Get("Location")
	if one.StatusCode != http.StatusSeeOther || address != two.Header.Get("Location") {
		t.Fatalf("%d %s, then %d %s", one.StatusCode, address, two.StatusCode, two.Header.Get("Location"))
	}
	id := strings.TrimPrefix(address, "/ui/jobs/")
	if rec := h.wait("ann", id); rec.Origin == nil || rec.Origin.Command != "submit" {
		t.Errorf("%v, %+v", rec.Status, rec.Origin)
	}
	_, text := b.page(address)
	if !strings.Contains(text, "/ui/submit?job="+id) || !strings.Contains(text, "Train further") {
		t.Error("the page of a job that ended does not tell how to go on")
	}
	if doc, _ := b.page("/ui/submit?job=" + id); !strings.Contains(words(doc), "name: digits") {
		t.Errorf("the form has another file: %s", words(doc))
	}
	res, text := b.send("POST", address+"/resume", url.Values{"epochs": {"2"}, "was": {"1"}})
	further := strings.TrimPrefix(res.Header.Get("Location"), "/ui/jobs/")
	if res.StatusCode != http.StatusSeeOther || further == id {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
	if rec := h.wait("ann", further); rec.Continued == nil || string(rec.Continued.Job) != id {
		t.Errorf("%+v", rec.Continued)
	}
	for _, epochs := range []string{"1", "many", "-1"} {
		if res, text := b.send("POST", address+"/resume", url.Values{"epochs": {epochs}}); res.StatusCode < 400 ||
			res.StatusCode >= 500 || !strings.Contains(text, "Not done") {
			t.Errorf("%s epochs: %d", epochs, res.StatusCode)
		}
	}
}

// wait returns the record of a job that has succeeded.
func (h *house) wait(tenant, id string) disdel.Record {
	h.t.Helper()
	run, err := h.s.Tenant(tenant).Watch(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	rec, err := run.Wait(h.t.Context())
	if err != nil || rec.Status != disdel.StatusSucceeded {
		h.t.Fatalf("%v, %v", err, rec.Failure)
	}
	return rec
}

// A token that may only look starts nothing and sees no button for it. A tenant cannot start another one's job.
func TestWhoMayStartJobs(t *testing.T) {
	h := newHouse(t)
	r := job("ann", "small", 1)
	h.save(r)
	address := "/ui/jobs/" + string(r.ID)
	reader := h.signedIn("ann read")
	for path, method := range map[string]string{
		"/ui/submit": "GET", "/ui/submit?": "POST", "/ui/check": "POST", address + "/resume": "POST",
	} {
		if res, _ := reader.send(method, path, url.Values{"file": {small}}); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	for _, path := range []string{"/ui/", "/ui/jobs", address} {
		if _, text := reader.page(path); strings.Contains(text, "/ui/submit") || strings.Contains(text, "/resume") {
			t.Errorf("%s offers what it refuses", path)
		}
	}
	bob := h.signedIn("bob submit")
	for path, method := range map[string]string{"/ui/submit?job=" + string(r.ID): "GET", address + "/resume": "POST"} {
		if res, _ := bob.send(method, path, url.Values{"epochs": {"9"}}); res.StatusCode != http.StatusNotFound {
			t.Errorf("bob, %s: %d", path, res.StatusCode)
		}
	}
}
