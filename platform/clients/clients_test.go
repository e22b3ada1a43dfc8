// Package clients runs the clients that others wrote (wsk, wskdeploy, npm's openwhisk and openwhisk-client-go) against
// the embedded OpenWhisk, over every verb, and compares what they print with golden files. After a change that is
// meant:
//
//	scripts/test-deps.sh && . <(grep '^export' scripts/test.sh) && go test ./platform/clients -update
package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/platform"
)

var update = flag.Bool("update", false, "write the golden files; sections of steps that were left out are kept")

// pending is what the platform cannot do yet: steps that carry one of these tags are left out where it says so.
var pending = map[string]bool{
	"binding":  false, // packages bound to packages
	"sequence": false, // actions of kind sequence
	"trigger":  false, // triggers but for their list
	"rule":     false, // rules but for their list
	"kind":     false, // kinds by family and default: nodejs:default
}

// deviations are the steps that the platform does not answer as OpenWhisk does, and why: the golden file has what
// OpenWhisk answers. A step that no longer deviates fails until it is taken from here.
var deviations = map[string]string{}

// testKind is the kind whose containers are this test binary. It has a name that every client takes for a runtime.
const testKind = "nodejs:20"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "serve" {
		serve(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// serve is a container: it speaks /init and /run and behaves as the action's code, or else its main, says.
func serve(address string) {
	l, err := net.Listen("unix", strings.TrimPrefix(address, "unix:"))
	if err != nil {
		os.Exit(1)
	}
	var behaviour string
	reply := func(w http.ResponseWriter, body any) {
		data, _ := json.Marshal(body)
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data)
	}
	http.HandleFunc("/init", func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Value struct{ Main string } }
		json.NewDecoder(r.Body).Decode(&req)
		behaviour = req.Value.Main
		reply(w, map[string]bool{"ok": true})
	})
	http.HandleFunc("/run", func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Value map[string]any }
		json.NewDecoder(r.Body).Decode(&req)
		defer func() {
			const sentinel = "XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX"
			fmt.Println(sentinel)
			fmt.Fprintln(os.Stderr, sentinel)
		}()
		switch behaviour {
		case "fail":
			reply(w, map[string]any{"error": "as asked"})
		case "exit":
			os.Exit(1)
		case "logs":
			fmt.Println("a line of stdout")
			fmt.Println("and another, ünïcode")
			reply(w, map[string]int{"lines": 2})
		case "slow":
			time.Sleep(time.Second)
			reply(w, map[string]string{"slept": "1s"})
		case "double":
			n, _ := req.Value["n"].(float64)
			reply(w, map[string]float64{"n": 2 * n})
		default:
			reply(w, req.Value)
		}
	})
	http.Serve(l, nil)
}

// start is a platform of this test.
func start(t *testing.T) *platform.Platform {
	t.Helper()
	cfg := platform.DefaultConfig()
	cfg.TempDir = t.TempDir()
	cfg.Limits.InvocationsPerMinute, cfg.Limits.FiresPerMinute = 10000, 10000
	cfg.PoolMemory = 16 * disdel.GB // no container is removed for another: warm stays warm
	cfg.Kinds = map[string]platform.Kind{testKind: {Command: []string{os.Args[0], "serve", "{listen}"}}}
	p, err := platform.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

// tool is what an environment variable of scripts/test.sh names; without it the test is skipped.
func tool(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("%s is not set: scripts/test-deps.sh installs what it names, scripts/test.sh sets it", variable)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s: %v: run scripts/test-deps.sh", variable, err)
	}
	return path
}

// environment is a home folder with the files of testdata/project and a .wskprops of the platform's, and the variables
// that lead clients to it.
func environment(t *testing.T, p *platform.Platform, programs ...string) (home string, env []string) {
	t.Helper()
	home = t.TempDir()
	props := filepath.Join(home, ".wskprops")
	text := fmt.Sprintf("APIHOST=%s\nAUTH=%s\nNAMESPACE=_\n", p.URL(), p.AuthKey())
	if err := os.WriteFile(props, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	path := []string{}
	for _, program := range programs {
		path = append(path, filepath.Dir(program))
	}
	path = append(path, os.Getenv("PATH"))
	if err := os.CopyFS(home, os.DirFS(filepath.Join("testdata", "project"))); err != nil {
		t.Fatal(err)
	}
	return home, []string{"PATH=" + strings.Join(path, ":"), "HOME=" + home, "WSK_CONFIG_FILE=" + props, "__OW_API_HOST=" +
		p.URL(), "__OW_API_KEY=" + p.AuthKey(), "LANG=C.UTF-8"}
}

// step is one call of a client and what it printed.
type step struct {
	tag  string // what of the platform it needs; see pending
	name string
	out  string
}

func (s step) skipped() bool { return pending[s.tag] }

func (s step) header() string {
	if s.tag != "" {
		return "[" + s.tag + "] " + s.name
	}
	return s.name
}

// readScript reads steps: a command a line, with a tag in brackets before it where it needs one; # starts a comment.
func readScript(t *testing.T, file string) []step {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s := step{name: line}
		if rest, ok := strings.CutPrefix(line, "["); ok {
			s.tag, s.name, _ = strings.Cut(rest, "] ")
		}
		steps = append(steps, s)
	}
	return steps
}

// eventually before a command repeats it until it succeeds: there is no record of an activation before its end.
const eventually = "eventually "

// runScript runs the commands of a script in a shell. $ID is the last activation id that any of them printed.
func runScript(t *testing.T, file, dir string, env []string) []step {
	t.Helper()
	steps := readScript(t, file)
	id := ""
	for i := range steps {
		s := &steps[i]
		if s.skipped() {
			continue
		}
		command, again := strings.CutPrefix(s.name, eventually)
		deadline := time.Now().Add(20 * time.Second)
		for {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
			cmd.Dir, cmd.Env = dir, append(slices.Clone(env), "ID="+id)
			out, err := cmd.CombinedOutput()
			s.out = string(out)
			if err != nil {
				s.out += fmt.Sprintf("[%v]\n", err)
			}
			if err == nil || !again || time.Now().After(deadline) {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		s.out = strings.ReplaceAll(s.out, dir, "HOME")
		if found := activationID.FindStringSubmatch(s.out); found != nil {
			id = found[1]
		}
	}
	return steps
}

var activationID = regexp.MustCompile(`(?:with id |activationId": ")([0-9a-f]{32})\b`)

// masks are what differs from run to run.
var masks = []struct {
	pattern *regexp.Regexp
	to      string
}{
	{regexp.MustCompile(`\b[0-9a-f]{32}([0-9a-f]{8})?\b`), "ID"}, // or a hash
	{regexp.MustCompile(`\b[0-9A-Za-z]{32}\b`), "ID"},            // of transactions
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( UTC|Z| [+-]\d{4} \w+)?`), "TIME"},
	{regexp.MustCompile(`\b1[6-9]\d{11}\b`), "MS"},
	{regexp.MustCompile(`\b127\.0\.0\.1:\d+`), "HOST"},
	{regexp.MustCompile(`("(?:duration|peakMemory)": )\d+`), "${1}N"},
	{regexp.MustCompile(`("key": "(?:waitTime|initTime|peakMemory)",\s+"value": )\d+`), "${1}N"},
	{regexp.MustCompile(` +(\d+(\.\d+)?(ms|µs|s|m))+ +`), " DURATION "},
	{regexp.MustCompile(`(\S) {2,}`), "$1 "},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
}

func mask(text string) string {
	text = canonical(text)
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.to)
	}
	return text
}

// canonical rewrites the JSON that begins at the start of a line: sorted where the clients' Go maps leave the order to
// chance.
func canonical(text string) string {
	var out strings.Builder
	for text != "" {
		line, _, _ := strings.Cut(text, "\n")
		if strings.HasPrefix(line, "{") || strings.HasPrefix(line, "[") {
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			var v any
			if err := d.Decode(&v); err == nil {
				order(v)
				e := json.NewEncoder(&out)
				e.SetEscapeHTML(false)
				e.SetIndent("", " ")
				e.Encode(v)
				text = strings.TrimPrefix(text[d.InputOffset():], "\n")
				continue
			}
		}
		n := min(len(line)+1, len(text))
		out.WriteString(text[:n])
		text = text[n:]
	}
	return out.String()
}

// order sorts lists of keys and values, and a package's actions.
func order(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, w := range v {
			order(w)
			if list, ok := w.([]any); ok && name == "actions" {
				sortBy(list, "name")
			}
		}
	case []any:
		for _, w := range v {
			order(w)
		}
		sortBy(v, "key")
	}
}

// sortBy sorts objects by a field, where all of them have it.
func sortBy(list []any, field string) {
	key := func(v any) string {
		m, _ := v.(map[string]any)
		s, _ := m[field].(string)
		return s
	}
	if !slices.ContainsFunc(list, func(v any) bool { return key(v) == "" }) {
		slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(key(a), key(b)) })
	}
}

const prompt = "$ "

// golden compares steps with testdata/name.golden, step by step.
func golden(t *testing.T, name string, steps []step) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	data, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want, header := map[string]string{}, ""
	var order []string
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, prompt); ok {
			header = strings.TrimSuffix(rest, "\n")
			for n, base := 2, header; slices.Contains(order, header); n++ {
				header = fmt.Sprintf("%s #%d", base, n)
			}
			order = append(order, header)
			continue
		}
		want[header] += line
	}
	var text bytes.Buffer
	var got []string
	for _, s := range steps {
		header := s.header()
		for n, base := 2, header; slices.Contains(got, header); n++ {
			header = fmt.Sprintf("%s #%d", base, n)
		}
		got = append(got, header)
		out := mask(s.out)
		if out != "" && !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		if s.skipped() {
			out = want[header]
		} else if why, known := deviations[name+": "+header]; known {
			if out == want[header] {
				t.Errorf("%s: is as OpenWhisk's now: take it from the deviations", header)
			}
			t.Logf("%s deviates: %s", header, why)
			out = want[header]
		} else if diff := cmp.Diff(want[header], out); diff != "" && !*update {
			t.Errorf("%s (-golden +now):\n%s", header, diff)
		}
		fmt.Fprintf(&text, "%s%s\n%s", prompt, s.header(), out)
	}
	if *update {
		if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(order, got); diff != "" {
		t.Errorf("the steps are not those of %s: run with -update (-golden +now):\n%s", file, diff)
	}
}

// left is every entity in the namespace, by collection.
func left(t *testing.T, p *platform.Platform) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, collection := range []string{"rules", "triggers", "actions", "packages"} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", p.URL()+"/api/v1/namespaces/_/"+collection+"?limit=0", nil)
		user, key, _ := strings.Cut(p.AuthKey(), ":")
		req.SetBasicAuth(user, key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		var list []struct{ Namespace, Name string }
		if err := json.Unmarshal(body, &list); err != nil {
			t.Fatalf("%s: %d %s", collection, res.StatusCode, body)
		}
		for _, e := range list {
			out[collection] = append(out[collection], e.Namespace+"/"+e.Name)
		}
	}
	return out
}
