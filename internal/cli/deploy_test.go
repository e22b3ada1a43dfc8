package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/deploy"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/internal/test/deploytest"
	"github.com/disdel/disdel/platform/local"
)

// The commands that compare a package with its manifest exit with 8 while it differs, and with 0 once it does not. The
// answer in JSON says the same.
func TestADeploymentThatDiffersExitsWith8(t *testing.T) {
	d := build(t)
	cluster := *d
	cluster.home = filepath.Join(t.TempDir(), "cluster")
	_, at := cluster.up()
	key := local.ReadProperties(local.PropertiesFile(cluster.home))["AUTH"]
	t.Setenv("DISDEL_APIHOST", at.Address)
	t.Setenv("DISDEL_AUTH", key)
	check := func(when string, want, changed int) {
		t.Helper()
		for _, command := range []string{"preview", "status"} {
			if _, told, code := d.run("deploy", command); code != want {
				t.Errorf("%s: %s exits with %d, want %d\n%s", when, command, code, want, told)
			}
			out, told, code := d.run("deploy", command, "-o", "json")
			if code != want {
				t.Errorf("%s: %s -o json exits with %d, want %d\n%s", when, command, code, want, told)
			}
			var plan deploy.Plan
			read(t, out, &plan)
			if plan.Changed() != changed {
				t.Errorf("%s: %s has %d changes, want %d\n%s", when, command, plan.Changed(), changed, out)
			}
		}
	}
	check("before up", 8, 5)
	succeed(d, "deploy", "up")
	check("after up", 0, 0)

	e := deploytest.Executor(t, at.Address, key, time.Second)
	is, err := e.Deployment(t.Context(), "disdel")
	if err != nil {
		t.Fatal(err)
	}
	action := is.Actions[0]
	action.Memory -= 16 * disdel.MB
	if err := e.PutAction(t.Context(), "disdel", action); err != nil {
		t.Fatal(err)
	}
	check("after a change of an action by hand", 8, 1)
	if err := e.PutPackage(t.Context(), executor.Deployment{Package: "disdel", Version: "9.9.9"}); err != nil {
		t.Fatal(err)
	}
	check("after a change of the package by hand", 8, 2)
	if _, told, code := d.run("deploy", "up"); code != 0 || !strings.Contains(told, "2 updated") {
		t.Errorf("up exits with %d: %s", code, told)
	}
	check("after the second up", 0, 0)
	if _, told, code := d.run("deploy", "status", "--apihost", "http://127.0.0.1:1"); code == 0 || code == 8 {
		t.Errorf("a cluster that does not answer: %d %s", code, told)
	}
}
