package clients

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// npm's openwhisk, over every verb it has.
func TestNpmOpenwhisk(t *testing.T) {
	module := tool(t, "DISDEL_TEST_OPENWHISK_JS")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node: scripts/test-deps.sh installs it")
	}
	p := start(t)
	home, env := environment(t, p)
	script, err := filepath.Abs("testdata/client.js")
	if err != nil {
		t.Fatal(err)
	}
	off := slices.DeleteFunc(slices.Sorted(maps.Keys(pending)), func(tag string) bool { return !pending[tag] })
	cmd := exec.CommandContext(t.Context(), node, script)
	cmd.Dir, cmd.Stderr = home, os.Stderr
	cmd.Env = append(env, "OPENWHISK="+module, "PENDING="+strings.Join(off, ","))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var steps []step
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(line, prompt); ok {
			s := step{name: strings.TrimSuffix(name, "\n")}
			if rest, ok := strings.CutPrefix(s.name, "["); ok {
				s.tag, s.name, _ = strings.Cut(rest, "] ")
			}
			steps = append(steps, s)
		} else if len(steps) > 0 {
			steps[len(steps)-1].out += line
		}
	}
	golden(t, "client.js", steps)
	if rest := left(t, p); len(rest) > 0 {
		t.Errorf("the script leaves %v", rest)
	}
}
