package platform

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/disdel/disdel/internal/test/wait"
)

// startScripts starts a platform with this machine's script kinds, and returns the kind of a family.
func startScripts(t *testing.T, family string) (*Platform, string) {
	t.Helper()
	kinds := DefaultKinds(os.Args[0])
	for kind := range kinds {
		if strings.HasPrefix(kind, family) {
			return start(t, func(c *Config) { c.Kinds = kinds }), kind
		}
	}
	t.Skipf("this machine has no interpreter for %s", family)
	return nil, ""
}

func createScript(t *testing.T, p *Platform, kind, name, main, code string) {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"exec": map[string]any{"kind": kind, "code": code, "main": main}})
	if status, got := call(t, p, "PUT", ns+"/actions/"+name+"?overwrite=true", string(body)); status != 200 {
		t.Fatalf("create: %d %v", status, got)
	}
}

// script is an action, what it is given and how it ends: a status, and a piece of its result as JSON.
type script struct{ name, main, code, args, status, result string }

func runScripts(t *testing.T, family string, list []script) {
	p, kind := startScripts(t, family)
	for _, s := range list {
		createScript(t, p, kind, s.name, s.main, s.code)
		made := ask(t, p, p.AuthKey(), "POST", ns+"/actions/"+s.name+"?blocking=true", s.args)
		_, got := call(t, p, "GET", ns+"/activations/"+made.header.Get("x-openwhisk-activation-id"), "")
		status, result := responseOf(got)
		text, _ := json.Marshal(result)
		if status != s.status || !strings.Contains(string(text), s.result) {
			t.Errorf("%s: %s %.300s, want %s %s", s.name, status, text, s.status, s.result)
		}
	}
}

const zipped = "UEsDBAoAAAAAAAAAAAAAAAAAAAAAAAAAAAAF"

func TestPythonScriptsEndAsInOpenWhisk(t *testing.T) {
	large := strings.Repeat("x", 1<<20-20)
	runScripts(t, "python:", []script{
		{
			"echo", "", "def main(args): return {'got': args['name']}", `{"name":"Grüße 世界"}`, statusSuccess,
			`{"got":"Grüße 世界"}`,
		},
		{"array", "", "def main(args): return [1, 2]", `{}`, statusSuccess, `[1,2]`},
		{
			"megabyte", "", "def main(args): return {'n': len(args['x'])}", `{"x":"` + large + `"}`, statusSuccess,
			fmt.Sprintf(`{"n":%d}`, len(large)),
		},
		{"named", "other", "def other(args): return {'ok': 1}", `{}`, statusSuccess, `{"ok":1}`},
		{"environment", "", "import os\ndef main(args): return {'n': os.environ['__OW_ACTION_NAME'], 'd': " +
			"os.environ['__OW_DEADLINE'].isdigit()}", `{}`, statusSuccess, `{"d":true,"n":"/guest/environment"}`},
		{"raises", "", "def main(args): raise ValueError('broken')", `{}`, statusApplication, `{"error":"broken"}`},
		{"error", "", "def main(args): return {'error': 'mine', 'x': 1}", `{}`, statusApplication, `{"error":"mine"}`},
		{
			"text", "", "def main(args): return 'text'", `{}`, statusDeveloper,
			"The action did not return a dictionary or array.",
		},
		{
			"bytes", "", "def main(args): return {'x': b'1'}", `{}`, statusDeveloper,
			"The action did not return a dictionary or array.",
		},
		{"syntax", "", "def main(", `{}`, statusDeveloper, "Cannot start action. Check logs for details."},
		{
			"nomain", "absent", "def main(args): return {}", `{}`, statusDeveloper,
			"Cannot start action. Check logs for details.",
		},
		{"exits", "", "import os\ndef main(args): os._exit(1)", `{}`, statusDeveloper, textAbnormalRun},
	})
}

func TestNodeScriptsEndAsInOpenWhisk(t *testing.T) {
	runScripts(t, "nodejs:", []script{
		{
			"echo", "", "function main(args) { return {got: args.name} }", `{"name":"Grüße 世界"}`, statusSuccess,
			`{"got":"Grüße 世界"}`,
		},
		{"array", "", "const main = () => [1, 2]", `{}`, statusSuccess, `[1,2]`},
		{"promise", "", "async function main() { return {n: 2} }", `{}`, statusSuccess, `{"n":2}`},
		{"nothing", "", "function main() {}", `{}`, statusSuccess, `{}`},
		{"exported", "", "exports.main = () => ({ok: 1})", `{}`, statusSuccess, `{"ok":1}`},
		{
			"environment", "", "function main() { return {n: process.env.__OW_ACTION_NAME} }", `{}`, statusSuccess,
			`{"n":"/guest/environment"}`,
		},
		{
			"throws", "", "function main() { throw new Error('broken') }", `{}`, statusDeveloper,
			`{"error":"An error has occurred: Error: broken"}`,
		},
		{
			"rejects", "", "function main() { return Promise.reject({why: 'mine'}) }", `{}`, statusApplication,
			`{"error":{"why":"mine"}}`,
		},
		{
			"rejects-error", "", "async function main() { throw new Error('broken') }", `{}`, statusApplication,
			`"message":"broken"`,
		},
		{
			"text", "", "function main() { return 'text' }", `{}`, statusDeveloper,
			"The action did not return a dictionary or array.",
		},
		{"syntax", "", "function main(", `{}`, statusDeveloper, "Initialization has failed due to: SyntaxError"},
		{"nomain", "absent", "function main() {}", `{}`, statusDeveloper, "Action entrypoint 'absent' is not a function."},
	})
}

// The contract's corners that no platform asks for: a second /init, a /run before it, an /init without code.
func TestLaunchersKeepTheContractsCorners(t *testing.T) {
	for family, code := range map[string]string{
		"python:": "def main(a): return {}",
		"nodejs:": "function main() { return {} }",
	} {
		t.Run(family[:6], func(t *testing.T) {
			p, kind := startScripts(t, family)
			c, err := p.startContainer(size{kind, 128 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer c.kill()
			c.logs.begin("it", 1)
			for i, s := range []struct {
				path, code string
				want       int
			}{
				{"/run", "", 500},
				{"/init", "", 403},
				{"/init", code, 200},
				{"/init", code, 403},
				{"/run", "", 200},
				{"/other", "", 404},
			} {
				body := map[string]any{"value": map[string]any{"code": s.code, "main": "main"}}
				got, err := c.postJSON(t.Context(), s.path, body, interpreterWait)
				if err != nil || got.status != s.want {
					t.Errorf("%d: %s is answered %d %s %v, want %d", i, s.path, got.status, got.body, err, s.want)
				}
			}
			wait.Until(t, "the second /init in the log", func() bool { // which is read beside the answers
				return c.logs.contains("Cannot initialize the action more than once.")
			})
		})
	}
}

func TestScriptsPrintIntoTheirActivationsLog(t *testing.T) {
	for family, code := range map[string]string{
		"python:": "import sys\ndef main(a):\n print('to stdout')\n print('to stderr', end='', file=sys.stderr)\n return {}",
		"nodejs:": "function main() { console.log('to stdout'); process.stderr.write('to stderr'); return {} }",
	} {
		t.Run(family[:6], func(t *testing.T) {
			p, kind := startScripts(t, family)
			createScript(t, p, kind, "prints", "", code)
			for range 2 {
				_, got := call(t, p, "POST", ns+"/actions/prints?blocking=true", `{}`)
				got = await(t, p, fmt.Sprint(got["activationId"]))
				text := fmt.Sprint(got["logs"])
				if lines, _ := got["logs"].([]any); len(lines) != 2 || !strings.Contains(text, "stdout: to stdout") ||
					!strings.Contains(text, "stderr: to stderr") || strings.Contains(text, sentinel) {
					t.Errorf("log: %v", got["logs"])
				}
			}
		})
	}
}

// OpenWhisk's own names of kinds stand for what the machine has, whose version is said.
func TestKindsHaveTheNamesOfOpenWhisks(t *testing.T) {
	p, _ := startScripts(t, "nodejs:")
	info := ask(t, p, "", "GET", "/", "")
	defaults := 0
	var doc struct{ Runtimes map[string][]map[string]any }
	json.Unmarshal([]byte(info.body), &doc)
	for _, r := range doc.Runtimes["nodejs"] {
		if !strings.HasPrefix(fmt.Sprint(r["image"]), "Node.js ") {
			t.Errorf("%v", r)
		}
		if r["default"] == true {
			defaults++
		}
	}
	if len(doc.Runtimes["nodejs"]) < 4 || defaults != 1 {
		t.Errorf("%s", info.body)
	}
	createScript(t, p, "nodejs:18", "version", "", "function main() { return { v: 'Node.js ' + process.versions.node } }")
	got := must(t, p, "POST", "_/actions/version?blocking=true&result=true", `{}`)
	if !strings.Contains(info.body, fmt.Sprintf("%q", got.at("v"))) {
		t.Errorf("it runs %s and says %s", got.body, info.body)
	}
}

// A process has as many open files as in a container of OpenWhisk's, and no more.
func TestOpenFilesAreBounded(t *testing.T) {
	p, kind := startScripts(t, "python:")
	createScript(t, p, kind, "opens", "", `def main(a):
    held = []
    try:
        while len(held) < 2000: held.append(open('/dev/null'))
    except OSError as e:
        return {'n': len(held), 'why': e.errno}
    return {'n': len(held)}`)
	got := must(t, p, "POST", "_/actions/opens?blocking=true&result=true", `{}`)
	if n, _ := got.at("n").(float64); n < 900 || n > maxDescriptors || got.at("why") != 24.0 {
		t.Errorf("%s", got.body)
	}
}

// Native actions are programs: what OpenWhisk runs in its image dockerskeleton runs here by a kind that nobody can
// name.
func TestNativeActions(t *testing.T) {
	kinds := DefaultKinds(os.Args[0])
	images := DefaultImages(kinds)
	if len(images) == 0 {
		t.Skip("this machine has no Python")
	}
	p := start(t, func(c *Config) { c.Kinds, c.Images = kinds, images })
	large := strings.Repeat("x", 200_000)
	exec := inArchive{"exec", "#!/bin/sh\necho to the log\necho to stderr >&2\n. ./rest.sh\n", 0o755}
	rest := inArchive{"rest.sh", `printf '{"given": %s, "name": "%s"}' "$1" "$__OW_ACTION_NAME"`, 0}
	for _, c := range []struct{ name, code, args, status, want, log string }{
		{"script", "#!/bin/sh\necho first\necho \"{\\\"a\\\": 1}\"\n", `{}`, statusSuccess, `{"a":1}`, "stdout: first"},
		{"zipped", archive(t, exec, rest), `{"x":"ü"}`, statusSuccess, `"name":"/guest/zipped"`, "stderr: to stderr"},
		{"large", "#!/bin/sh\nprintf '{\"n\": %d}' $(wc -c)", `{"x":"` + large + `"}`, statusSuccess, `{"n":2000`, ""},
		{"text", "#!/bin/sh\necho no object\n", `{}`, statusDeveloper, "did not return a dictionary", "stdout: no object"},
		{"silent", "#!/bin/sh\nexit 1\n", `{}`, statusDeveloper, "did not return a dictionary", ""},
		{"without", archive(t, rest), `{}`, statusDeveloper, "does not include exec", ""},
	} {
		body, _ := json.Marshal(map[string]any{"exec": map[string]any{
			"kind": "blackbox", "image": "openwhisk/dockerskeleton", "code": c.code,
		}})
		must(t, p, "PUT", "_/actions/"+c.name, string(body))
		made := ask(t, p, p.AuthKey(), "POST", ns+"/actions/"+c.name+"?blocking=true", c.args)
		got := await(t, p, made.header.Get("x-openwhisk-activation-id"))
		status, result := responseOf(got)
		text, _ := json.Marshal(result)
		logs := fmt.Sprint(got["logs"])
		if status != c.status || !strings.Contains(string(text), c.want) || !strings.Contains(logs, c.log) {
			t.Errorf("%s: %s %.300s %s", c.name, status, text, logs)
		}
	}
	got := ask(t, p, p.AuthKey(), "PUT", ns+"/actions/x", `{"exec":{"kind":"native:1","code":"x"}}`)
	if got.status != 400 || strings.Contains(got.text(), "'native:1',") {
		t.Errorf("%d %s", got.status, got.body)
	}
	got = ask(t, p, p.AuthKey(), "PUT", ns+"/actions/x", `{"exec":{"kind":"blackbox","image":"me/x:1"}}`)
	if got.status != 400 || !strings.Contains(got.text(), "Valid images are: 'openwhisk/dockerskeleton', ") ||
		!strings.Contains(got.text(), "Valid kinds are: '"+p.kindNames()[0]+"'") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
