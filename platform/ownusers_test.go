package platform

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// reachScripts are actions that try what their user must not be able to do. Each gets files to read, files to write and
// folders to list. It answers its user's id and what it could read, write and list.
var reachScripts = map[string]string{
	"python": `
import os
def main(a):
    def able(f, mode):
        try:
            open(f, mode).read(1) if mode == 'rb' else open(f, mode).close()
            return True
        except OSError:
            return False
    listed = [f for f in a['list'] if os.path.isdir(f) and os.access(f, os.R_OK) and os.listdir(f)]
    return {'uid': os.getuid(), 'gid': os.getgid(), 'read': [f for f in a['read'] if able(f, 'rb')],
        'wrote': [f for f in a['write'] if able(f, 'wb')], 'listed': listed, 'mine': able('mine', 'wb'),
        'json': __import__('json').dumps([1]), 'ssl': bool(__import__('hashlib').sha256(b'').hexdigest())}
`,
	"nodejs": `
const fs = require('fs')
function main (a) {
  const able = (f, mode) => {
    try {
      const d = fs.openSync(f, mode)
      if (mode === 'r') fs.readSync(d, Buffer.alloc(1))
      return true
    } catch (e) {
      return false
    }
  }
  const lists = f => { try { return fs.readdirSync(f).length > 0 } catch (e) { return false } }
  return { uid: process.getuid(), gid: process.getgid(), read: a.read.filter(f => able(f, 'r')),
    wrote: a.write.filter(f => able(f, 'w')), listed: a.list.filter(lists), mine: able('mine', 'w') }
}
`,
	"native": `#!/bin/sh
# the arguments come as JSON; the files have no spaces
names() { printf '%s' "$2" | sed "s/.*\"$1\": *\[\([^]]*\)\].*/\1/; s/[\",]/ /g"; }
read=; wrote=; listed=
for f in $(names read "$1"); do head -c 1 "$f" >/dev/null 2>&1 && read="$read\"$f\","; done
for f in $(names write "$1"); do (: >"$f") 2>/dev/null && wrote="$wrote\"$f\","; done
for f in $(names list "$1"); do [ -n "$(ls "$f" 2>/dev/null)" ] && listed="$listed\"$f\","; done
mine=false; : >mine && mine=true
files="\"read\": [${read%,}], \"wrote\": [${wrote%,}], \"listed\": [${listed%,}]"
echo "{\"uid\": $(id -u), \"gid\": $(id -g), $files, \"mine\": $mine}"
`,
}

// closedFolder is a folder that only its owner may enter, as a home is, outside the folder of the test.
func closedFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "closed-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// secrets are files that no action may read, files that it may not write and folders that it may not list.
func secrets(t *testing.T) map[string][]string {
	t.Helper()
	home := closedFolder(t)
	token := filepath.Join(home, "server.token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	user, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Base(home)
	forbidden := []string{"/usr/" + mark, "/etc/" + mark, filepath.Join(user, mark), filepath.Join(home, mark)}
	t.Cleanup(func() {
		for _, file := range forbidden {
			os.Remove(file)
		}
	})
	return map[string][]string{
		"read": {"/etc/shadow", fmt.Sprintf("/proc/%d/environ", os.Getpid()), "/proc/1/environ", token},
		"list": {home}, "write": forbidden,
	}
}

// Scripts of every kind run as users of their own, wherever the interpreter and the platform's own folder lie.
func TestScriptsOfEveryKindHaveUsersOfTheirOwn(t *testing.T) {
	if !canSwitch() {
		t.Skip("this process cannot start others as other users")
	}
	for name := range reachScripts {
		t.Run(name, func(t *testing.T) { runsAsItsOwnUser(t, name) })
	}
	for place, dir := range map[string]string{"open": t.TempDir(), "closed": closedFolder(t)} {
		t.Run("environment in a folder that is "+place, func(t *testing.T) {
			enterEnvironment(t, dir)
			for _, name := range []string{"python", "native"} {
				t.Run(name, func(t *testing.T) { runsAsItsOwnUser(t, name) })
			}
		})
	}
}

// enterEnvironment makes a virtual environment of Python in a folder, and has it be the first on PATH.
func enterEnvironment(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", dir).CombinedOutput(); err != nil {
		t.Skipf("this machine makes no virtual environment: %v: %s", err, out)
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
}

func runsAsItsOwnUser(t *testing.T, name string) {
	t.Helper()
	kinds := DefaultKinds(os.Args[0])
	if !slices.ContainsFunc(slices.Collect(maps.Keys(kinds)), func(k string) bool { return family(k) == name }) {
		t.Skip("this machine has no interpreter")
	}
	p := start(t, func(c *Config) { c.TempDir, c.Kinds, c.Images = closedFolder(t), kinds, DefaultImages(kinds) })
	args, _ := json.Marshal(secrets(t))
	run := map[string]any{"kind": name + ":default", "code": reachScripts[name]}
	if name == "native" {
		run["kind"], run["image"] = "blackbox", "openwhisk/dockerskeleton"
	}
	body, _ := json.Marshal(map[string]any{"exec": run})
	must(t, p, "PUT", "_/actions/"+name, string(body))
	got := must(t, p, "POST", "_/actions/"+name+"?blocking=true&result=true", string(args))
	uid, _ := got.at("uid").(float64)
	gid, _ := got.at("gid").(float64)
	if uid < firstUser || gid < firstUser || got.at("mine") != true {
		t.Errorf("%s", got.body)
	}
	for _, able := range []string{"read", "wrote", "listed"} {
		if list, ok := got.at(able).([]any); !ok || len(list) != 0 {
			t.Errorf("%s: %s", able, got.body)
		}
	}
}

// programIn puts this test's program, which serves actions, into a folder.
func programIn(t *testing.T, dir string, mode os.FileMode) string {
	t.Helper()
	data, err := os.ReadFile(os.Args[0])
	program := filepath.Join(dir, "program")
	if err == nil {
		err = os.WriteFile(program, data, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// A program below several closed folders and links is reached, and nothing else of those folders is seen.
func TestAClosedFolderShowsTheProgramAlone(t *testing.T) {
	if !canSwitch() {
		t.Skip("this process cannot start others as other users")
	}
	closed := closedFolder(t)
	inner := filepath.Join(closed, "a", "b")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	programIn(t, inner, 0o755)
	other := filepath.Join(inner, "other")
	if err := os.WriteFile(other, []byte("x"), 0o644); err != nil { // readable, if the folder were not closed
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "a/b", "again": "link/../b/program"} {
		if err := os.Symlink(to, filepath.Join(closed, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"a/b/program", "link/program", "again"} {
		p := start(t, func(c *Config) {
			c.Kinds = map[string]Kind{disdel.RuntimeKind: {
				Command: []string{filepath.Join(closed, program), "serve", "{listen}"}, OwnUser: true,
			}}
		})
		newTestAction(t, p, "reach", 60000, 128)
		args, _ := json.Marshal(map[string]any{"files": []string{other}})
		_, got := call(t, p, "POST", ns+"/actions/reach?blocking=true&result=true", string(args))
		if uid, _ := got["uid"].(float64); uid < firstUser || got["readable"] != nil || got["writes"] != true {
			t.Errorf("%s: %v", program, got)
		}
	}
	for _, dir := range []string{closed, filepath.Join(closed, "a"), inner} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s is now %v, %v", dir, info.Mode(), err)
		}
	}
	if data, err := os.ReadFile(other); err != nil || string(data) != "x" {
		t.Errorf("outside: %q, %v", data, err)
	}
}

// The platform refuses a kind whose scripts could only run as root, unless the administrator allows it. Users tells the
// truth in both cases.
func TestAKindThatCouldOnlyRunAsRootIsRefused(t *testing.T) {
	if !realRoot() {
		t.Skip("this process is not root")
	}
	for _, allow := range []bool{false, true} {
		p := start(t, func(c *Config) {
			c.AllowRoot = allow
			c.Kinds = map[string]Kind{
				disdel.RuntimeKind: {Command: []string{programIn(t, closedFolder(t), 0o700), "serve", "{listen}"}, OwnUser: true},
			}
		})
		body := `{"exec":{"kind":"` + disdel.RuntimeKind + `","code":"x","main":"reach"}}`
		made := ask(t, p, p.AuthKey(), "PUT", ns+"/actions/reach", body)
		standing := p.Users()
		if len(standing) != 1 || (standing[0].Refused != "") == allow || standing[0].Own {
			t.Errorf("allowed %v: %+v", allow, standing)
		}
		if strings.Contains(p.Confinement(), "own users") {
			t.Errorf("it says: %s", p.Confinement())
		}
		if !allow {
			if made.status != 400 || !strings.Contains(made.text(), "root") ||
				!strings.Contains(made.text(), "--allow-root") {
				t.Errorf("refused: %d %s", made.status, made.body)
			}
			if _, err := p.startContainer(size{disdel.RuntimeKind, 128 * disdel.MB}); err == nil {
				t.Error("a container was started")
			}
			continue
		}
		_, got := call(t, p, "POST", ns+"/actions/reach?blocking=true&result=true", `{}`)
		if got["uid"] != 0.0 {
			t.Errorf("allowed: %v", got)
		}
	}
}

// Actions of each kind run as the user that Users tells.
func TestUsersAreToldByKind(t *testing.T) {
	kinds := DefaultKinds(os.Args[0])
	kinds[disdel.RuntimeKind] = Kind{Command: []string{os.Args[0], "serve", "{listen}"}}
	p := start(t, func(c *Config) { c.Kinds = kinds })
	refusal := map[string]KindUser{}
	for _, u := range p.Users() {
		refusal[u.Kind] = u
	}
	newTestAction(t, p, "reach", 60000, 128)
	_, got := call(t, p, "POST", ns+"/actions/reach?blocking=true&result=true", `{}`)
	if uid, _ := got["uid"].(float64); refusal[disdel.RuntimeKind].Own || int(uid) != os.Geteuid() {
		t.Errorf("%v, told %+v", got, refusal[disdel.RuntimeKind])
	}
	for name := range kinds {
		if u, ok := refusal[name]; !ok || u.Own && !canSwitch() || u.Refused != "" && !realRoot() {
			t.Errorf("%s: %+v", name, u)
		}
	}
}
