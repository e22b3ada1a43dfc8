// Package clients runs the clients that others wrote (wsk, wskdeploy, npm's openwhisk and openwhisk-client-go) against
// the embedded OpenWhisk, over every verb, and compares what they print with golden files. After a change that is
// meant:
//
//	scripts/test-deps.sh && . <(grep '^export' scripts/test.sh) && go test ./platform/clients -update
package clients

import (
	"context"
	"encoding/json"
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

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/platform"
)

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
		deadline := time.Now().Add(time.Minute)
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
