package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

// The tests are the containers of their platforms.
func TestMain(m *testing.M) {
	if served, _ := service.ServeActions(context.Background(), os.Args); served {
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const job = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: small}
model: {name: digits-cnn}
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 2, batchSize: 64, optimizer: {adam: {learningRate: 0.004}}}
`

const operator = "operator's"

// house is a server under test, with the tokens of two tenants.
type house struct {
	*httptest.Server
	t   *testing.T
	s   *service.Service
	doc *openapi3.T

	tokens map[string]string // by "TENANT ROLE"
}

func newHouse(t *testing.T, cfg Config) *house {
	t.Helper()
	return houseOf(t, cfg, service.Config{Home: t.TempDir(), TakeOver: true})
}

// houseOf is a house of a service of one's own.
func houseOf(t *testing.T, cfg Config, of service.Config) *house {
	t.Helper()
	of.Program = os.Getenv("DISDEL_TEST_PROGRAM") // containers without the race detector
	s, err := service.Open(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Service, cfg.Operator = s, operator
	doc, err := openapi3.NewLoader().LoadFromData(Description())
	if err != nil {
		t.Fatal(err)
	}
	h := &house{Server: httptest.NewServer(Handler(cfg)), t: t, s: s, doc: doc, tokens: map[string]string{}}
	for _, name := range []string{"ann", "bob"} {
		for _, role := range []tenant.Role{tenant.RoleRead, tenant.RoleSubmit, tenant.RoleAdmin} {
			if h.tokens[name+" "+string(role)], err = s.Tenants().Create(t.Context(), name, role, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() {
		h.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// ask makes a request and holds its answer against the description.
func (h *house) ask(who, method, path string, body any, headers ...string) (int, []byte) {
	h.t.Helper()
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			h.t.Fatal(err)
		}
		in = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.URL+path, in)
	if err != nil {
		h.t.Fatal(err)
	}
	switch token, known := h.tokens[who]; {
	case known:
		r.Header.Set("Authorization", "Bearer "+token)
	case who != "":
		r.Header.Set("Authorization", "Bearer "+who)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	h.check(method, path, res, data)
	return res.StatusCode, data
}

// check holds an answer against the description.
func (h *house) check(method, path string, res *http.Response, data []byte) {
	h.t.Helper()
	path, _, _ = strings.Cut(path, "?")
	for _, r := range routes {
		if r.method != method || !matches(r.path, path) {
			continue
		}
		op := h.doc.Paths.Find(r.path).GetOperation(method)
		answer := op.Responses.Status(res.StatusCode)
		if answer == nil {
			answer = op.Responses.Default()
			if res.StatusCode < 400 {
				h.t.Errorf("%s %s: status %d is not in the description", method, path, res.StatusCode)
			}
		}
		kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
		content := answer.Value.Content.Get(kind)
		if content == nil {
			h.t.Errorf("%s %s: %q is not in the description of %d", method, path, kind, res.StatusCode)
			return
		}
		var v any
		if kind != "application/json" {
			return
		}
		if err := json.Unmarshal(data, &v); err != nil {
			h.t.Errorf("%s %s: %v", method, path, err)
		} else if err := content.Schema.Value.VisitJSON(v); err != nil {
			h.t.Errorf("%s %s: %d is not as described: %v", method, path, res.StatusCode, err)
		}
		return
	}
}

func matches(pattern, path string) bool {
	a, b := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !strings.HasPrefix(a[i], "{") && a[i] != b[i] {
			return false
		}
	}
	return true
}

// submitted is the record of a job that ann submits and that has ended.
func (h *house) submitted(sets ...string) disdel.Record {
	h.t.Helper()
	digits := apitypes.Source{Source: "digits"}
	if status, data := h.ask("ann admin", "POST", "/api/v1/datasets", digits); status != 201 {
		h.t.Fatalf("%d %s", status, data)
	}
	asked := apitypes.Submission{File: job, Sets: sets}
	status, data := h.ask("ann submit", "POST", "/api/v1/jobs", asked, "Idempotency-Key", "k")
	var rec disdel.Record
	if err := json.Unmarshal(data, &rec); err != nil || status != 201 {
		h.t.Fatalf("%d %s, %v", status, data, err)
	}
	return rec
}

// The description says of every route that it is there, and names no other one.
func TestTheDescriptionHasEveryRoute(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(Description())
	if err != nil || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Fatalf("%v", err)
	}
	said := 0
	for _, path := range doc.Paths.Map() {
		said += len(path.Operations())
	}
	for _, r := range routes {
		path := doc.Paths.Find(r.path)
		if path == nil || path.GetOperation(r.method) == nil {
			t.Errorf("%s %s is not described", r.method, r.path)
			continue
		}
		op := path.GetOperation(r.method)
		role, _ := op.Extensions["x-role"].(string)
		if (len(*op.Security) == 0) != (r.role == "") || role != string(r.role) {
			t.Errorf("%s %s: the description has another view of who may", r.method, r.path)
		}
	}
	if said != len(routes) {
		t.Errorf("%d operations are described, and there are %d", said, len(routes))
	}
}

// A job from its submission to the answers of its model, and of every route what the description says; then everything
// of it again by another tenant, to whom none of it is there.
func TestAJobOverHTTPAndNobodyElses(t *testing.T) {
	h := newHouse(t, Config{})
	id := h.submitted().ID
	status, data := h.ask("ann read", "GET", "/api/v1/jobs/"+string(id)+"/wait?timeout=5m", nil)
	var rec disdel.Record
	if err := json.Unmarshal(data, &rec); err != nil || status != 200 || rec.Status != disdel.StatusSucceeded ||
		rec.Tenant != "ann" {
		t.Fatalf("%d %s, %v", status, data, err)
	}
	status, data = h.ask("ann submit", "POST", "/api/v1/jobs", apitypes.Submission{File: job}, "Idempotency-Key", "k")
	if status != 201 || !bytes.Contains(data, []byte(id)) {
		t.Errorf("submitted again: %d %.200s", status, data)
	}
	model, row := rec.Model.Name, [][]float32{make([]float32, 64)}
	paths := map[string]any{
		"GET /api/v1/jobs/{job}": nil, "GET /api/v1/jobs/{job}/events": nil, "GET /api/v1/jobs/{job}/logs": nil,
		"GET /api/v1/jobs/{job}/wait": nil, "GET /api/v1/jobs/{job}/report": nil, "GET /api/v1/jobs/{job}/runner": nil,
		"GET /api/v1/history/{job}": nil, "GET /api/v1/datasets/{name}/sample": nil,
		"GET /api/v1/datasets/{name}/statistics": nil,
		"GET /api/v1/models/{model}/weights":     nil,
		"GET /api/v1/models/{model}/program":     nil, // the model has layers
		"PUT /api/v1/datasets/{name}":            nil, // has nothing that is another's, and is no form here
		"GET /api/v1/datasets/{name}":            nil, "GET /api/v1/models/{model}": nil,
		"POST /api/v1/models/{model}/infer":    map[string]any{"inputs": row},
		"POST /api/v1/models/{model}/evaluate": nil,
		"PUT /api/v1/jobs/{job}/remark":        history.Remark{Tags: []string{"seen"}}, "DELETE /api/v1/jobs/{job}": nil,
		"PUT /api/v1/models/{model}/tags/{tag}": nil, "DELETE /api/v1/models/{model}": nil,
		"POST /api/v1/jobs/{job}/cancel": nil, "POST /api/v1/jobs/{job}/pause": nil,
		"POST /api/v1/jobs/{job}/resume": apitypes.Submission{}, "POST /api/v1/jobs/{job}/retry": apitypes.Submission{},
		"DELETE /api/v1/datasets/{name}": nil, "GET /api/v1/shares/{kind}/{name}": nil,
		"PUT /api/v1/shares/{kind}/{name}":    apitypes.ShareRequest{With: []string{"nobody"}},
		"DELETE /api/v1/shares/{kind}/{name}": nil,
		"PUT /api/v1/weights/{weights}":       nil, "DELETE /api/v1/weights/{weights}": nil,
		"DELETE /api/v1/stored/{kind}/{name}": nil,
	}
	fill := strings.NewReplacer("{kind}/{name}", "job/"+string(id), "{job}", string(id), "{name}", "digits",
		"{model}", model, "{tag}", "prod",
		"{weights}", "sha256:"+strings.Repeat("0", 64))
	h.answersForData(model)
	looked := 0
	for _, r := range routes {
		if !strings.Contains(r.path, "{") {
			continue
		}
		body, known := paths[r.method+" "+r.path]
		if !known {
			t.Fatalf("%s %s is not in the matrix", r.method, r.path)
		}
		looked++
		theirs := 404
		if r.upload {
			theirs = 400
		}
		if status, data := h.ask("bob admin", r.method, fill.Replace(r.path), body); status != theirs {
			t.Errorf("bob's %s %s: %d %.200s", r.method, r.path, status, data)
		}
		if r.method+" "+r.path == "DELETE /api/v1/jobs/{job}" {
			continue // the job is needed below
		}
		own := map[string]int{"POST /api/v1/models/{model}/infer": 200}[r.method+" "+r.path]
		if r.method == "GET" && !strings.HasSuffix(r.path, "/program") {
			own = 200
		}
		if status, data := h.ask("ann admin", r.method, fill.Replace(r.path), body); own != 0 && status != own {
			t.Errorf("ann's %s %s: %d %.200s", r.method, r.path, status, data)
		}
	}
	if looked != len(paths) {
		t.Error("the matrix has what is no route")
	}
	for path, empty := range map[string]string{
		"/api/v1/jobs": `"jobs":[]`, "/api/v1/history": `"jobs":[]`,
		"/api/v1/models": `"models":[]`, "/api/v1/datasets": `"datasets":[]`,
	} {
		if _, data := h.ask("bob read", "GET", path, nil); !bytes.Contains(data, []byte(empty)) {
			t.Errorf("bob sees %s", data)
		}
	}
	if _, data := h.ask(operator, "GET", "/api/v1/jobs?status=succeeded", nil); !bytes.Contains(data, []byte(id)) {
		t.Error("the operator does not see the job")
	}
	_, data = h.ask(operator, "GET", "/api/v1/jobs?before="+string(id), nil)
	if bytes.Contains(data, []byte(id)) || !bytes.Contains(data, []byte(`"jobs":[`)) {
		t.Errorf("older than the job is the job: %.200s", data)
	}
	for where, want := range map[string]bool{"state:succeeded+created%3C1h": true, "not+state:succeeded": false} {
		if _, data = h.ask(operator, "GET", "/api/v1/jobs?where="+where, nil); bytes.Contains(data, []byte(id)) != want {
			t.Errorf("%s: %s", where, data)
		}
	}
	status, data = h.ask(operator, "GET", "/api/v1/jobs?where=acuracy%3E1", nil)
	if status != 400 || !bytes.Contains(data, []byte("character 1: there is no field")) {
		t.Errorf("a filter with a fault: %d %s", status, data)
	}
	if status, _ := h.ask(operator, "GET", "/api/v1/jobs?before=nothing", nil); status != 400 {
		t.Errorf("before no job: %d", status)
	}
	if _, data := h.ask("ann read", "GET", "/api/v1/remarks", nil); !bytes.Contains(data, []byte(`"tags":["seen"]`)) {
		t.Errorf("ann's remarks: %s", data)
	}
	if _, data := h.ask("bob read", "GET", "/api/v1/remarks", nil); !bytes.Contains(data, []byte(`"remarks":{}`)) {
		t.Errorf("bob's remarks: %s", data)
	}
	for _, want := range []int{200, 404} {
		if status, data := h.ask("ann admin", "DELETE", "/api/v1/jobs/"+string(id), nil); status != want {
			t.Errorf("deleted: %d %s, not %d", status, data, want)
		}
	}
}

// A job of a batch says with how many others it comes, and may ask before whether it would be taken.
func TestAJobOfABatchSaysSo(t *testing.T) {
	h := newHouse(t, Config{})
	h.submitted()
	one := apitypes.Submission{File: job, Siblings: 3, Admit: true}
	if status, data := h.ask("ann submit", "POST", "/api/v1/estimates", one); status != 200 {
		t.Errorf("asked before: %d %s", status, data)
	}
	status, data := h.ask("ann submit", "POST", "/api/v1/jobs", one)
	var rec disdel.Record
	err := json.Unmarshal(data, &rec)
	if err != nil || status != 201 || rec.Planning == nil || rec.Planning.Siblings != 3 {
		t.Errorf("%d %s, %v", status, data, err)
	}
}

// What is refused, and with which words.
func TestWhatIsRefused(t *testing.T) {
	h := newHouse(t, Config{PerMinute: 40, MaxBody: 1000})
	for _, r := range routes {
		path := strings.NewReplacer("{job}", "x", "{name}", "x", "{model}", "x", "{tag}", "x", "{weights}", "x").
			Replace(r.path)
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH"} {
			if r.role == "" || method == "GET" && (path == "/healthz" || path == "/readyz") {
				continue
			}
			if status, data := h.ask("", method, path, nil); status != 401 && status != 404 && status != 405 {
				t.Errorf("%s %s without a token: %d %s", method, path, status, data)
			}
		}
		for _, who := range []string{"nobody's", "disdel_ann_00", "disdel_none_00"} {
			if status, _ := h.ask(who, r.method, path, nil); r.role != "" && status != 401 {
				t.Errorf("%s %s with %s: %d", r.method, path, who, status)
			}
		}
		if status, _ := h.ask("bob read", r.method, path, nil); r.role != "" && r.role != tenant.RoleRead &&
			status != 403 {
			t.Errorf("%s %s with a token to read: %d", r.method, path, status)
		}
	}
	for name, c := range map[string]struct {
		status int
		text   string
		ask    func() (int, []byte)
	}{
		"a long body": {413, "longer than", func() (int, []byte) {
			return h.ask("ann submit", "POST", "/api/v1/jobs", apitypes.Submission{File: strings.Repeat("x", 2000)})
		}},
		"another host": {403, "has not the name", func() (int, []byte) {
			return h.ask("ann read", "GET", "/api/v1/jobs", nil, "Host", "evil.example")
		}},
		"another origin": {403, "", func() (int, []byte) {
			return h.ask("ann submit", "POST", "/nothing", nil, "Sec-Fetch-Site", "cross-site")
		}},
		"no route": {404, "there is no GET /x", func() (int, []byte) { return h.ask("", "GET", "/x", nil) }},
		"a bad job": {400, "faults", func() (int, []byte) {
			return h.ask("ann submit", "POST", "/api/v1/jobs", apitypes.Submission{File: "kind: x"})
		}},
		"a priority above the bound": {400, "1000000", func() (int, []byte) {
			return h.ask("ann submit", "POST", "/api/v1/jobs", apitypes.Submission{File: job, Priority: service.MaxPriority + 1})
		}},
		"no job": {404, "there is no job", func() (int, []byte) { return h.ask("ann read", "GET", "/api/v1/jobs/x", nil) }},
	} {
		if status, data := c.ask(); status != c.status || !strings.Contains(string(data), c.text) {
			t.Errorf("%s: %d %s, want %d and %q", name, status, data, c.status, c.text)
		}
	}
	last := 0
	for range 100 { // a minute may turn once
		if last, _ = h.ask("ann read", "GET", "/api/v1/models", nil); last == 429 {
			break
		}
	}
	if last != 429 {
		t.Errorf("a flood ends with %d", last)
	}
}

// Whoever comes back with the last id that he saw gets what came after it, each once; an id of elsewhere gets a reset.
func TestEventsGoOnAfterTheLastID(t *testing.T) {
	h := newHouse(t, Config{})
	id := h.submitted().ID
	h.ask("ann read", "GET", "/api/v1/jobs/"+string(id)+"/wait?timeout=5m", nil)
	path := "/api/v1/jobs/" + string(id) + "/events"
	_, data := h.ask("ann read", "GET", path, nil)
	all := ids(data)
	if len(all) < 4 || !bytes.Contains(data, []byte("event: finished")) {
		t.Fatalf("%s", data)
	}
	_, rest := h.ask("ann read", "GET", path, nil, "Last-Event-ID", all[1])
	if got := ids(rest); fmt.Sprint(got) != fmt.Sprint(all[2:]) {
		t.Errorf("after %s came %v, of %v", all[1], got, all)
	}
	_, anew := h.ask("ann read", "GET", path, nil, "Last-Event-ID", "elsewhere.7")
	if !bytes.HasPrefix(anew, []byte("event: reset")) || len(ids(anew)) != len(all) {
		t.Errorf("%.300s", anew)
	}
}

func ids(data []byte) (out []string) {
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			out = append(out, id)
		}
	}
	return out
}

// A server that is told to end lets nobody wait for events, and says nothing.
func TestAServerDrains(t *testing.T) {
	s, err := service.Open(t.Context(), service.Config{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, Config{Service: s}, time.Minute) }()
	res, err := http.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%v", err)
	}
	res.Body.Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// Other machines are not served in the clear unless that is said; the operator's token is the user's alone.
func TestWhereItListensAndWhoRunsIt(t *testing.T) {
	if _, err := Listen("0.0.0.0:0", "", "", false); disdel.KindOf(err) != disdel.Denied {
		t.Errorf("without TLS: %v", err)
	}
	l, err := Listen("127.0.0.1:0", "", "", false)
	if err != nil || !strings.HasPrefix(l.URL(), "http://127.0.0.1:") {
		t.Fatalf("%v", err)
	}
	l.Close()
	home := t.TempDir()
	first, err := OperatorToken(home)
	if err != nil || len(first) != 64 {
		t.Fatalf("%q, %v", first, err)
	}
	if info, err := os.Stat(home + "/server.token"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if again, err := OperatorToken(home); again != first || err != nil {
		t.Errorf("%v", err)
	}
	os.Chmod(home+"/server.token", 0o644)
	if _, err := OperatorToken(home); disdel.KindOf(err) != disdel.Denied {
		t.Errorf("a token that others read: %v", err)
	}
}
