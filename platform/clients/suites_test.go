package clients

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/platform"
)

// someOf has the tests run every so many of the cases: whoever changes the platform sees soon whether it is broken.
// `make suites` runs all.
const someOf = 8

// every is how many cases there are to one that is run.
func every() int {
	if os.Getenv("DISDEL_TEST_SUITES") == "whole" {
		return 1
	}
	return someOf
}

// startScripts is a platform as `disdel platform up --catalog --node-modules FOLDER` has it, whose limits do not get in
// the way.
func startScripts(t *testing.T, modules string) *platform.Platform {
	t.Helper()
	cfg := platform.DefaultConfig()
	cfg.TempDir = t.TempDir()
	cfg.PoolMemory = 16 * disdel.GB
	cfg.Limits.InvocationsPerMinute, cfg.Limits.FiresPerMinute = 100_000, 100_000
	cfg.Limits.ConcurrentInvocations, cfg.Limits.Concurrency.Max = 1000, 500
	cfg.Kinds = platform.DefaultKinds(os.Args[0])
	cfg.Images = platform.DefaultImages(cfg.Kinds)
	for _, needed := range []string{"nodejs:20", "python:3"} {
		if _, ok := cfg.Kinds[needed]; !ok {
			t.Skipf("this machine lacks what runs %s: scripts/test-deps.sh installs it", needed)
		}
	}
	for name, kind := range cfg.Kinds {
		if strings.HasPrefix(name, "nodejs:") {
			kind.Env = append(slices.Clone(kind.Env), "NODE_PATH="+modules)
			cfg.Kinds[name] = kind
		}
	}
	p, err := platform.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if err := p.InstallCatalog(); err != nil {
		t.Fatal(err)
	}
	return p
}

// wskCase is what a user does with wsk, and what he then reads.
type wskCase struct {
	name  string
	steps []wskStep
}

type wskStep struct {
	command string
	again   bool // until it is as wanted: a record comes after its activation
	want    []string
	not     []string
	exit    int
}

// wrong says what is not as wanted, "" if all is.
func (s *wskStep) wrong(out string, exit int) string {
	if exit != s.exit {
		return fmt.Sprintf("exit %d, want %d", exit, s.exit)
	}
	for _, text := range s.want {
		if !strings.Contains(out, text) {
			return fmt.Sprintf("no %q", text)
		}
	}
	for _, text := range s.not {
		if strings.Contains(out, text) {
			return fmt.Sprintf("%q is there", text)
		}
	}
	return ""
}

// readCases reads cases in the form that the file itself describes.
func readCases(t *testing.T, file string) (cases []wskCase) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var step *wskStep
	for _, part := range strings.Split(string(data), "\n== ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		c := wskCase{name: name}
		for line := range strings.Lines(body) {
			sign, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			switch {
			case sign == "$" || sign == "$~":
				c.steps = append(c.steps, wskStep{command: rest, again: sign == "$~"})
				step = &c.steps[len(c.steps)-1]
			case sign == "|":
				step.want = append(step.want, rest)
			case sign == "~":
				step.not = append(step.not, rest)
			case sign == "!":
				fmt.Sscan(rest, &step.exit)
			case line != "\n": // of a command of several lines
				step.command += "\n" + strings.TrimSuffix(line, "\n")
			}
		}
		cases = append(cases, c)
	}
	return cases
}

// What OpenWhisk's own tests of its command line try, and what it then says.
func TestWskCases(t *testing.T) {
	wsk := tool(t, "DISDEL_TEST_WSK")
	p := startScripts(t, filepath.Dir(tool(t, "DISDEL_TEST_OPENWHISK_JS")))
	project := os.DirFS(filepath.Join("testdata", "suites", "project"))
	passed, all := 0, 0
	for i, c := range readCases(t, filepath.Join("testdata", "suites", "wsk.cases")) {
		if i%every() != 0 {
			continue
		}
		all++
		ok := t.Run(c.name, func(t *testing.T) {
			home, env := environment(t, p, wsk)
			files := filepath.Join(home, "case")
			if err := os.CopyFS(files, project); err != nil {
				t.Fatal(err)
			}
			carryOut(t, &c, files, env)
		})
		if ok {
			passed++
		}
		empty(t, p)
	}
	t.Logf("suite wsk: %d of %d", passed, all)
}

// carryOut runs the commands of a case in a shell. $ID is the last activation id that any of them printed.
func carryOut(t *testing.T, c *wskCase, dir string, env []string) {
	t.Helper()
	id := ""
	for i := range c.steps {
		s := &c.steps[i]
		deadline := time.Now().Add(30 * time.Second)
		for {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", s.command)
			cmd.Dir, cmd.Env = dir, append(slices.Clone(env), "ID="+id)
			out, _ := cmd.CombinedOutput() // how it ended is looked at
			why := s.wrong(string(out), cmd.ProcessState.ExitCode())
			if why != "" && s.again && time.Now().Before(deadline) {
				continue // a command takes long enough to be asked again at once
			}
			if why != "" {
				t.Errorf("%s: %s in\n%.2000s", s.command, why, out)
			}
			if found := activationID.FindStringSubmatch(string(out)); found != nil {
				id = found[1]
			}
			break
		}
	}
}

// empty deletes every entity in the namespace.
func empty(t *testing.T, p *platform.Platform) {
	t.Helper()
	entities := left(t, p)
	for _, collection := range []string{"rules", "triggers", "actions", "packages"} {
		for _, path := range entities[collection] {
			_, name, _ := strings.Cut(path, "/")
			req, _ := http.NewRequestWithContext(t.Context(), "DELETE",
				p.URL()+"/api/v1/namespaces/_/"+collection+"/"+strings.ReplaceAll(name, " ", "%20"), nil)
			user, key, _ := strings.Cut(p.AuthKey(), ":")
			req.SetBasicAuth(user, key)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
		}
	}
}

// runNode runs a file of cases in Node.js, each of which prints "ok NAME" or "not ok NAME: why", and tells of them.
func runNode(t *testing.T, suite string, env []string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node: scripts/test-deps.sh installs it")
	}
	script, err := filepath.Abs(filepath.Join("testdata", "suites", suite+".js"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, script)
	cmd.Dir, cmd.Env, cmd.Stderr = t.TempDir(), append(env, fmt.Sprintf("EVERY=%d", every())), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v", err)
	}
	passed, all := 0, 0
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		name, ok := strings.CutPrefix(line, "ok ")
		if !ok {
			name = strings.TrimPrefix(line, "not ok ")
		}
		all++
		title, why, _ := strings.Cut(name, ": ")
		if t.Run(title, func(t *testing.T) {
			if !ok {
				t.Error(why)
			}
		}) {
			passed++
		}
	}
	if all == 0 {
		t.Error("no case was run")
	}
	t.Logf("suite %s: %d of %d", suite, passed, all)
}

// What the integration tests of npm's openwhisk try.
func TestClientJSCases(t *testing.T) {
	module := tool(t, "DISDEL_TEST_OPENWHISK_JS")
	p := startScripts(t, filepath.Dir(module))
	_, env := environment(t, p)
	runNode(t, "clientjs", append(env, "OPENWHISK="+module))
	empty(t, p)
}

// What the tests of npm's openwhisk-composer try of its compositions on a server.
func TestComposerCases(t *testing.T) {
	module := tool(t, "DISDEL_TEST_COMPOSER")
	p := startScripts(t, filepath.Dir(module))
	_, env := environment(t, p)
	runNode(t, "composer", append(env, "COMPOSER="+module))
	empty(t, p)
}
