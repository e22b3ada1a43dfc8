package platform

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

// transcript is a request with what an Apache OpenWhisk built from source answered: standalone, with the cluster's
// settings.
type transcript struct {
	Name    string
	Request struct {
		Method, Path string
		Body         json.RawMessage
		Headers      map[string]string
		Auth         string
	}
	Status  int
	Headers map[string]string
	JSON    json.RawMessage
	Text    *string
}

// transcripts reads the recorded requests. They lie beside the project where it is developed; elsewhere there are none.
func transcripts(t *testing.T) []transcript {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "shared", "data", "openwhisk-transcripts.jsonl"))
	if err != nil {
		t.Skip("the recorded answers of a real OpenWhisk are not here")
	}
	defer f.Close()
	var out []transcript
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			var one transcript
			if err := json.Unmarshal(line, &one); err != nil {
				t.Fatal(err)
			}
			out = append(out, one)
		}
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// stays is every difference to the real OpenWhisk that is meant, with its reason, by the name of the request.
var stays = map[string]string{
	"info root":               noImages,
	"info api":                noBuild,
	"info api slash":          noBuild,
	"info api docs":           "Apache's description of the API is not carried along",
	"create kind unknown":     aSet,
	"create kind family":      aSet,
	"create code empty":       "an action whose code is empty is kept without the field",
	"record raises":           asArgument,
	"record syntax":           asArgument,
	"run disdel empty":        notDisdel,
	"run disdel kind":         notDisdel,
	"run disdel kind badmain": notDisdel,
	"activations list 2":      notDisdel,
	"web get":                 noWeb,
	"web get json":            noWeb,
	"web not exported":        noWeb,
}

// The reasons that several have.
const (
	noImages   = "kinds are programs of this machine, and have no image"
	noBuild    = "it is another build, and says so"
	aSet       = "the kinds come in the order of a hash there, and of the alphabet here"
	asArgument = "the launcher is a file there and an argument here, which tracebacks show"
	notDisdel  = "the container of this test is no runtime of disdel"
	noWeb      = "there are no web actions yet"
)

// A client that sends what the real OpenWhisk was sent is answered as there: status, the headers that clients go by,
// and bodies by their fields and texts. Times, ids and versions of programs are left out.
func TestTranscriptsOfARealOpenWhisk(t *testing.T) {
	skipUnderRace(t)
	list := transcripts(t)
	p := likeTheRecorded(t)
	r := replayer{p: p, ids: map[string]string{}}
	differ := 0
	for i := range list {
		one := &list[i]
		if one.Name == "run apperr" { // what was invoked from there on had been made by other requests
			prepare(t, p)
		}
		got := r.send(t, one)
		late := strings.Contains(one.Request.Path, "/activations/") && one.Status == 200 // the recorder waited for it, too
		for end := time.Now().Add(20 * time.Second); late && got.status == 404 && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
			got = r.send(t, one)
		}
		diff := r.compare(one, got)
		reason, meant := stays[one.Name]
		switch {
		case diff != "" && !meant:
			differ++
			t.Errorf("%s: %s %s %.300s\n%s", one.Name, one.Request.Method, one.Request.Path, one.Request.Body, diff)
		case diff == "" && meant:
			t.Errorf("%s: no difference any more (%s)", one.Name, reason)
		}
	}
	t.Logf("%d of %d requests are answered otherwise; %d are listed with a reason", differ, len(list), len(stays))
}

// likeTheRecorded starts a platform with the kinds and limits of the one that was recorded.
func likeTheRecorded(t *testing.T) *Platform {
	t.Helper()
	found := DefaultKinds(os.Args[0])
	kinds := map[string]Kind{}
	for name, kind := range found {
		switch family, _, _ := strings.Cut(name, ":"); family {
		case "python":
			kinds["python:3"] = kind
		case "nodejs":
			kinds["nodejs:20"] = kind
		case "disdel":
			kind.Command = []string{os.Args[0], "serve", "{listen}"}
			kinds[name] = kind
		}
	}
	if len(kinds) < 3 {
		t.Skip("this machine has no interpreter for Python or Node")
	}
	images := map[string]string{"x/python:1": "python:3", "x/disdel:1": disdel.RuntimeKind}
	kinds["bench:1"] = kinds[disdel.RuntimeKind]
	return start(t, func(c *Config) {
		c.Kinds, c.Images = kinds, images
		c.Limits.InvocationsPerMinute, c.Limits.ConcurrentInvocations, c.Limits.FiresPerMinute = 100_000, 1000, 100_000
	})
}

// replayer sends recorded requests. Ids of activations in them become those that this platform has given.
type replayer struct {
	p   *Platform
	ids map[string]string
}

var activationPattern = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

func (r *replayer) send(t *testing.T, one *transcript) *replied {
	t.Helper()
	path := activationPattern.ReplaceAllStringFunc(one.Request.Path, func(id string) string {
		if own := r.ids[id]; own != "" {
			return own
		}
		return id
	})
	body := string(one.Request.Body)
	var text string
	if json.Unmarshal(one.Request.Body, &text) == nil { // sent as it stands, being no JSON or of another type
		body = text
	}
	if one.Request.Body == nil || string(one.Request.Body) == "null" {
		body = ""
	}
	large := largePattern.MatchString(body)
	if large {
		body = largeBodyOf(t, one)
	}
	req, err := http.NewRequest(one.Request.Method, r.p.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if isJSON := large || strings.HasPrefix(string(one.Request.Body), "{") ||
		strings.HasPrefix(string(one.Request.Body), "["); isJSON {
		req.Header.Set("Content-Type", "application/json")
	}
	switch auth := one.Request.Auth; auth {
	case "":
	case "guest":
		name, secret, _ := strings.Cut(r.p.AuthKey(), ":")
		req.SetBasicAuth(name, secret)
	default:
		name, secret, found := strings.Cut(auth, ":")
		if req.SetBasicAuth(name, secret); !found {
			req.Header.Set("Authorization", "Basic "+basic(auth))
		}
	}
	for k, v := range one.Request.Headers {
		req.Header.Set(k, v)
	}
	client := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, Timeout: 2 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", one.Name, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := &replied{res.StatusCode, res.Header, string(data)}
	r.learn(one.JSON, data)
	return got
}

// largePattern is a body that was left out of the record, for its size.
var largePattern = regexp.MustCompile(`^<(\d+) bytes>$`)

func largeBodyOf(t *testing.T, one *transcript) string {
	t.Helper()
	var size int
	if _, err := fmt.Sscanf(string(one.Request.Body), `"<%d bytes>"`, &size); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"parameters", "annotations"} {
		if strings.Contains(one.Name, field[:5]) {
			return `{"exec":{"kind":"python:3","code":"x"},"` + field + `":[{"key":"big","value":"` +
				strings.Repeat("x", 1<<20-2) + `"}]}`
		}
	}
	return `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}`
}

// prepare makes the actions that the recorded requests invoke and do not make.
func prepare(t *testing.T, p *Platform) {
	t.Helper()
	put := func(name, code, more string) {
		body, _ := json.Marshal(map[string]any{"exec": map[string]string{"kind": "python:3", "code": code}})
		must(t, p, "PUT", "_/actions/"+name, strings.TrimSuffix(string(body), "}")+more+"}")
	}
	returns := func(name, value string) { put(name, "def main(a): return "+value, "") }
	returns("apperr", `{'error':'my error','other':1}`)
	returns("apperr_obj", `{'error': {'code': 7}}`)
	put("raises", "def main(a): raise ValueError('boom')", "")
	put("syntax", "def main(a: return", "")
	returns("notdict", `'text'`)
	returns("retlist", `[1, {'a': 2}]`)
	returns("retnone", `None`)
	put("exits", "import os\ndef main(a): os._exit(3)", "")
	put("initexits", "import os\nos._exit(3)", "")
	put("timesout", "import time\ndef main(a): time.sleep(5)", `,"limits":{"timeout":1500}`)
	put("inittimesout", "import time\ntime.sleep(5)", `,"limits":{"timeout":1500}`)
	put("oom", "def main(a): return {'n': len(bytearray(1 << 30))}", `,"limits":{"memory":128}`)
	put("oominit", "x = bytearray(1 << 30)", `,"limits":{"memory":128}`)
	returns("bigresult", `{'x': 'x' * (1 << 20)}`)
	put("biglog", "def main(a):\n    for i in range(2000): print('x' * 1000)\n    return {}", `,"limits":{"logs":1}`)
	put("nologs", "def main(a):\n    print('unheard')\n    return {}", `,"limits":{"logs":0}`)
	put("unicode", "def main(a):\n    print('log é 你')\n    return {'u': a['u'] + 'é'}", "")
	environment := `import os
def main(a):
    set = ('__OW_ACTIVATION_ID', '__OW_DEADLINE', '__OW_TRANSACTION_ID')
    return {k: '<set>' if k in set else v for k, v in os.environ.items() if k.startswith('__OW_') and k != '__OW_ALLOW_CONCURRENT'}`
	put("env", environment, `,"annotations":[{"key":"provide-api-key","value":true}]`)
	put("envnokey", environment, "")
	returns("numbers", `a`)
	put("s1", "def main(a):\n    a['s1'] = 1\n    return a", "")
	put("s2", "def main(a):\n    a['s2'] = 1\n    return a", "")
	put("serr", "def main(a): return {'error': 'seq'}", "")
	put("cond", `def main(a):
    n = a.get('$step', 0)
    if n == 0: return {'action': '/_/s1', 'params': {'v': 1}, 'state': {'$step': 1}}
    return {'params': {'done': a}}`, `,"annotations":[{"key":"conductor","value":true}]`)
}

func basic(text string) string {
	req, _ := http.NewRequest(http.MethodGet, "http://localhost", nil)
	req.SetBasicAuth(text, "")
	return strings.TrimPrefix(req.Header.Get("Authorization"), "Basic ")
}

// learn keeps which of our activations stands for which recorded one.
func (r *replayer) learn(recorded json.RawMessage, own []byte) {
	var theirs, ours struct{ ActivationID string }
	if json.Unmarshal(recorded, &theirs) == nil && json.Unmarshal(own, &ours) == nil && theirs.ActivationID != "" &&
		ours.ActivationID != "" {
		r.ids[theirs.ActivationID] = ours.ActivationID
	}
}

// heard are the headers that clients go by.
var heard = []string{"Content-Type", "Www-Authenticate", "Allow", "Location"}

func (r *replayer) compare(one *transcript, got *replied) string {
	var out []string
	if got.status != one.Status {
		out = append(out, fmt.Sprintf("  status %d, there %d", got.status, one.Status))
	}
	for _, name := range heard {
		theirs := ""
		for k, v := range one.Headers {
			if strings.EqualFold(k, name) {
				theirs = v
			}
		}
		if ours := got.header.Get(name); plainType(ours) != plainType(theirs) {
			out = append(out, fmt.Sprintf("  header %s is %q, there %q", name, ours, theirs))
		}
	}
	if one.Text != nil {
		if got.body != *one.Text {
			out = append(out, fmt.Sprintf("  text %.200q, there %.200q", got.body, *one.Text))
		}
		return strings.Join(out, "\n")
	}
	var theirs, ours any
	if len(one.JSON) > 0 && string(one.JSON) != "null" {
		if strings.Contains(string(one.JSON), `"<large>"`) {
			return strings.Join(out, "\n")
		}
		if json.Unmarshal(one.JSON, &theirs) != nil || json.Unmarshal([]byte(got.body), &ours) != nil {
			return strings.Join(append(out, fmt.Sprintf("  body %.200q, there %.200s", got.body, one.JSON)), "\n")
		}
		if diff := cmp.Diff(settled("", theirs), settled("", ours)); diff != "" {
			out = append(out, "  (-there +here)\n"+diff)
		}
	}
	return strings.Join(out, "\n")
}

// plainType is a content type without blanks and the character set, which JSON does not need.
func plainType(v string) string {
	v, _, _ = strings.Cut(v, ";")
	return strings.TrimSpace(v)
}

var (
	logTime  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z`)
	deadline = regexp.MustCompile(`\d{13}`)
)

// unsteady are annotations that do not say the same each time, or only here: whether a container was cold, what its
// memory peaked at, and whether it was killed for it.
var unsteady = map[string]bool{"initTime": true, "peakMemory": true, "memoryKill": true}

// settled is a body with what differs from run to run in the place of it.
func settled(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = settled(k, x)
		}
		if key := out["key"]; key == "waitTime" || key == "initTime" {
			out["value"] = "some"
		}
		if result, ok := out["result"].(map[string]any); ok && result["__OW_API_HOST"] != nil {
			result["__OW_API_HOST"], out["size"] = "some", "some" // it has the port in it
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, x := range v {
			if note, ok := x.(map[string]any); ok && unsteady[fmt.Sprint(note["key"])] {
				continue
			}
			out = append(out, settled(key, x))
		}
		if key == "annotations" || key == "logs" { // a set; and lines of two streams, between which there is no order
			slices.SortFunc(out, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		return out
	case float64:
		switch key {
		case "start", "end", "updated", "duration":
			return "some"
		}
	case string:
		if key == "code" && len(v) == 32 || key == "activationId" || key == "cause" {
			return "some"
		}
		v = logTime.ReplaceAllString(v, "TIME")
		v = activationPattern.ReplaceAllString(v, "ID")
		return deadline.ReplaceAllString(v, "MILLISECONDS")
	}
	return v
}
