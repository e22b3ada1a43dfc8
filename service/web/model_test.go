package web

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/service/tenant"
)

// printable is hostile without a control character, which no name of a file in a form has.
var printable = strings.ReplaceAll(hostile, "\x1b", "")

// upload sends a form with a file.
func (b *browser) upload(path, file string, data []byte, fields map[string]string) (*http.Response, string) {
	b.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range fields {
		form.WriteField(name, value) //nolint:errcheck // a buffer takes all
	}
	part, err := form.CreateFormFile("file", file)
	if err != nil {
		b.t.Fatal(err)
	}
	part.Write(data) //nolint:errcheck // a buffer takes all
	form.Close()     //nolint:errcheck // the same
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.URL+path, &body)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	return b.answer(r)
}

// A table from the page becomes a data set with a job file for it. A table with faults, a name in use, and a file that
// is too large are refused with the reason, and add nothing. A token that may only look has no form and is refused.
func TestATableIsUploaded(t *testing.T) {
	h := newHouse(t)
	b, reader := h.signedIn("ann submit"), h.signedIn("ann read")
	fields := map[string]string{"name": "flowers", "label": "species"}
	res, text := b.upload("/ui/datasets", "flowers.csv", flowers(), fields)
	if said := words(b.sound("/ui/datasets", text)); res.StatusCode != http.StatusOK ||
		!strings.Contains(said, "flowers was added") || !strings.Contains(said, "petal number 0 1.0") {
		t.Fatalf("%d %s", res.StatusCode, said)
	}
	if doc, _ := b.page("/ui/submit?data=flowers"); !strings.Contains(words(doc), "source: dataset://flowers") {
		t.Error("there is no job file for the data set")
	}
	large := bytes.Repeat([]byte("1,2,a\n"), mostTable/6+20_000)
	for _, c := range []struct {
		name, label, want string
		data              []byte
	}{
		{"flowers", "species", "flowers", flowers()},
		{"other", "colour", "colour", flowers()},
		{hostile, "species", "not added", flowers()},
		{"other", "", "not added", []byte(hostile)},
		{"other", "", "at most 4.00 MB", large},
	} {
		res, text := b.upload("/ui/datasets", printable+".csv", c.data, map[string]string{"name": c.name, "label": c.label})
		if said := words(b.sound("/ui/datasets", text)); res.StatusCode < 400 || res.StatusCode >= 500 ||
			!strings.Contains(said, c.want) {
			t.Errorf("%.20q: %d, no %q in %s", c.name, res.StatusCode, c.want, said)
		}
	}
	if doc, _ := b.page("/ui/datasets"); strings.Contains(words(doc), "other") {
		t.Error("a refused table was added")
	}
	if _, text := reader.page("/ui/datasets"); strings.Contains(text, `type="file"`) {
		t.Error("a reader is offered what is refused")
	}
	if res, _ := reader.upload("/ui/datasets", "a.csv", flowers(), fields); res.StatusCode != http.StatusForbidden {
		t.Errorf("a reader uploads: %d", res.StatusCode)
	}
}

// A model's page answers for a picture and typed rows, gives the model a tag, refuses other files with the reason, and
// gives the model as ONNX. Another tenant does not see it.
func TestAModelsPage(t *testing.T) {
	h := newHouse(t)
	b := h.signedIn("ann submit")
	if err := h.s.Tenant("ann").AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, _ := b.send("POST", "/ui/submit", map[string][]string{"file": {small}})
	h.wait("ann", strings.TrimPrefix(res.Header.Get("Location"), "/ui/jobs/"))
	const address = "/ui/models/digits:v1"
	if doc, _ := b.page(address); !strings.Contains(words(doc), "digits-cnn on digits") {
		t.Errorf("%s", words(doc))
	}
	res, text := b.upload(address, "seven.png", drawnSeven(t), nil)
	if got := rows(b.sound(address, text), "answers"); res.StatusCode != http.StatusOK || len(got) != 1 {
		t.Errorf("%d %v %s", res.StatusCode, got, text)
	}
	for _, data := range [][]byte{nil, []byte(hostile), bytes.Repeat([]byte("1"), 2*mostTried)} {
		if res, text := b.upload(address, printable, data, nil); res.StatusCode < 400 || res.StatusCode >= 500 ||
			!strings.Contains(text, `role="alert"`) {
			t.Errorf("%.20q: %d %s", data, res.StatusCode, text)
		} else {
			b.sound(address, text)
		}
	}
	if res, text := b.send("GET", address+"/onnx", nil); res.StatusCode != http.StatusOK ||
		!strings.Contains(text, "digits:v1") || !strings.Contains(res.Header.Get("Content-Disposition"), `"digits.onnx"`) {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	for name, typed := range map[string]string{
		"a table": strings.TrimSuffix(strings.Repeat("0,", 64), ","),
		"JSON":    "{\"inputs\": [[" + strings.TrimSuffix(strings.Repeat("0,", 64), ",") + "]]}",
	} {
		res, text := b.upload(address, "", nil, map[string]string{"rows": typed})
		if got := rows(b.sound(address, text), "answers"); res.StatusCode != http.StatusOK || len(got) != 1 {
			t.Errorf("rows typed as %s: %d %v", name, res.StatusCode, words(b.sound(address, text)))
		}
	}
	promote := map[string][]string{"tag": {"prod"}}
	if res, text := b.send("POST", address+"/tag", promote); res.StatusCode != http.StatusSeeOther {
		t.Errorf("promote: %d %s", res.StatusCode, text)
	}
	if doc, _ := b.page(address); !strings.Contains(words(doc), "· prod") {
		t.Errorf("no tag: %s", words(doc))
	}
	for tag, want := range map[string]int{"": 400, hostile: 400, "v1": 400} {
		if res, _ := b.send("POST", address+"/tag", map[string][]string{"tag": {tag}}); res.StatusCode != want {
			t.Errorf("tag %q: %d", tag, res.StatusCode)
		}
	}
	if res, _ := h.signedIn("ann read").send("POST", address+"/tag", promote); res.StatusCode != http.StatusForbidden {
		t.Errorf("a reader promotes: %d", res.StatusCode)
	}
	start := strings.Replace(small, "  name: digits-cnn\n", "  name: digits-cnn\n  init: {weights: digits:prod}\n", 1)
	res, text = b.send("POST", "/ui/submit", map[string][]string{"file": {start}})
	if res.StatusCode != http.StatusSeeOther {
		t.Fatal(text)
	}
	h.wait("ann", strings.TrimPrefix(res.Header.Get("Location"), "/ui/jobs/"))
	says := func(b *browser, path, want string) {
		t.Helper()
		if doc, _ := b.page(path); !strings.Contains(words(doc), want) {
			t.Errorf("%s does not say %q: %s", path, want, words(doc))
		}
	}
	says(b, address, "Continued by digits:v2")
	says(b, "/ui/models/digits:v2", "Started from digits:v1")
	bob := h.signedIn("bob submit")
	for _, path := range []string{address, address + "/onnx"} {
		if res, _ := bob.send("GET", path, nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("bob, %s: %d", path, res.StatusCode)
		}
	}
	// A shared model is continued by the shared job, and not by another tenant's model of the same name.
	if _, err := h.s.Tenant("ann").Share(t.Context(), tenant.ItemModel, "digits", nil, true); err != nil {
		t.Fatal(err)
	}
	if err := h.s.Tenant("bob").AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, _ = bob.send("POST", "/ui/submit", map[string][]string{"file": {small}})
	h.wait("bob", strings.TrimPrefix(res.Header.Get("Location"), "/ui/jobs/"))
	says(bob, "/ui/models/ann%2Fdigits:v1", "Continued by ann/digits:v2")
	says(bob, "/ui/models/ann%2Fdigits:v2", "Started from ann/digits:v1")
	if doc, _ := bob.page(address); strings.Contains(words(doc), "Continued by") {
		t.Errorf("a model of bob is continued by one of ann: %s", words(doc))
	}
}

// A tenant can clone a job that another one shares with it and sees its tags, and only the owner continues it.
func TestASharedJobIsCloned(t *testing.T) {
	h := newHouse(t)
	r := job("ann", "small", 1)
	h.save(r)
	h.tag(r, "paper")
	if _, err := h.s.Tenant("ann").Share(t.Context(), tenant.ItemJob, string(r.ID), nil, true); err != nil {
		t.Fatal(err)
	}
	address := jobAddress(r.ID)
	_, text := h.signedIn("bob submit").page(address)
	for query, count := range map[string]int{"tag:paper": 1, "tag:other": 0} {
		_, list := h.signedIn("bob submit").page("/ui/jobs?cols=tag&q=" + query)
		if got := strings.Count(list, "<tr data-key="); got != count || count > 0 && !strings.Contains(list, ">paper<") {
			t.Errorf("%s selects %d shared jobs, want %d with the owner's tags", query, got, count)
		}
	}
	if strings.Contains(text, "/resume") || !strings.Contains(text, "Clone") {
		t.Error("the page offers to continue a job of another tenant, or does not offer to clone it")
	}
	if _, text := h.signedIn("ann submit").page(address); !strings.Contains(text, "/resume") {
		t.Error("the owner cannot continue the job")
	}
}

// The best job has the highest accuracy, or what its metric is; without it, or if metrics differ, it has the lowest
// loss.
func TestTheBestJob(t *testing.T) {
	result := func(name string, accuracy, loss *float64) report.JobResult {
		return report.JobResult{Name: name, Accuracy: accuracy, Loss: loss}
	}
	for want, list := range map[string][]report.JobResult{
		"b () has the highest accuracy: 0.9000.": {
			result("a", new(0.5), new(0.1)), result("b", new(0.9), nil), result("c", nil, nil),
		},
		"a () has the lowest loss: 0.1000.": {
			result("a", nil, new(0.1)), result("b", nil, new(0.2)), result("c", nil, nil),
		},
		"b () has the lowest RMSE: 2.": {
			{Name: "a", Metric: disdel.MetricRMSE, Scores: disdel.Scores{RMSE: 3, R2: new(0.5)}},
			{Name: "b", Metric: disdel.MetricRMSE, Scores: disdel.Scores{RMSE: 2, R2: new(0.6)}},
		},
		"b () has the highest top-5 accuracy: 0.9000.": {
			{Name: "a", Metric: disdel.MetricTop5, Accuracy: new(0.7), Scores: disdel.Scores{Top5: new(0.8)}},
			{Name: "b", Metric: disdel.MetricTop5, Accuracy: new(0.6), Scores: disdel.Scores{Top5: new(0.9)}},
		},
		"a () has the lowest loss: 0.3000.": {
			{Name: "a", Metric: disdel.MetricTop5, Loss: new(0.3), Scores: disdel.Scores{Top5: new(0.8)}},
			{Name: "b", Metric: disdel.MetricAccuracy, Loss: new(0.4), Accuracy: new(0.9)},
		},
		"": {result("a", nil, nil), result("b", nil, nil)},
	} {
		if got := bestOf(list); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
