package program_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service/program"
)

// A server installs the wheels of its index once for each text. A package that is there only as source is refused.
func TestAServerInstallsWheelsOnce(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(needPip(t))+":"+os.Getenv("PATH"))
	t.Setenv("DISDEL_REDIS_PASSWORD", "secret")
	index, cache := t.TempDir(), t.TempDir()
	wheel(t, filepath.Join(index, "tiny-1.0-py3-none-any.whl"))
	if err := os.WriteFile(filepath.Join(index, "source-1.0.tar.gz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := program.Packages{Requirements: "tiny ~= 1.0  # the only one\n", Index: index, Cache: cache}
	name, err := p.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(cache, "environments", name, "bin", "python")
	if out, err := exec.Command(at, "-c", "import tiny").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	p.Room = func(context.Context) (disdel.Bytes, func(), error) {
		return 0, nil, errors.New("nothing is to be installed")
	}
	if again, err := p.Install(t.Context()); again != name || err != nil {
		t.Errorf("environment %q (%v), want the first one, %q", again, err, name)
	}
	p.Requirements, p.Room = "tiny==1.0\nsource==1.0\n", nil
	_, err = p.Install(t.Context())
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), index+" has no wheel of source==1.0") {
		t.Errorf("error %v, want one that names the package without a wheel", err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "environments", "*")); len(left) != 1 {
		t.Errorf("%v stays, want one environment", left)
	}
}

// What pip prints becomes an error of the right kind that says what to do. Pip sees no secret of the server.
func TestAnErrorOfPipIsToldWithTheNextStep(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		kind   disdel.Kind
		want   string
	}{
		"version": {
			"echo 'ERROR: Could not find a version that satisfies the requirement a==9 (from versions: 1.0, 1.1)'\n" +
				"echo 'ERROR: No matching distribution found for a==9'",
			disdel.Invalid, "has no wheel of a==9 for the server's Python; it has 1.0, 1.1",
		},
		"network": {
			"echo 'WARNING: Retrying (Retry(total=4)) after connection broken'\n" +
				"echo 'ERROR: No matching distribution found for a'",
			disdel.Unavailable, "the package index https://xxxxx@index.example/simple does not answer",
		},
		"conflict": {
			"echo 'ERROR: Cannot install a==1 and b==2 because these package versions have conflicting dependencies.'",
			disdel.Invalid, "Cannot install a==1 and b==2",
		},
		"large":  {"head -c 3000000 /dev/zero >$TMPDIR/wheel; sleep 30", disdel.OverLimit, "more than the 1.00 MB"},
		"secret": {"env", disdel.Invalid, "pip failed: "},
	} {
		t.Run(name, func(t *testing.T) {
			bin, cache := t.TempDir(), t.TempDir()
			fake := "#!/bin/sh\ncase \"$*\" in\n*disdel-description*) printf 'disdel-description: 3.11.0 %s' ;;\n" +
				"*venv*) mkdir -p \"$4/bin\"; cp \"$0\" \"$4/bin/python\" ;;\n*) { %s\n} >&2; exit 1 ;;\nesac\n"
			python := filepath.Join(bin, "python3")
			if err := os.WriteFile(python, fmt.Appendf(nil, fake, python, c.script), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+":/usr/bin:/bin")
			t.Setenv("DISDEL_REDIS_PASSWORD", "hunter2")
			_, err := program.Packages{
				Requirements: "a\n", Index: "https://me:hunter2@index.example/simple", Cache: cache,
				Room: func(context.Context) (disdel.Bytes, func(), error) { return disdel.MB, func() {}, nil },
			}.Install(t.Context())
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %v with %q", err, c.kind, c.want)
			}
			if strings.Contains(fmt.Sprint(err), "hunter2") || disdel.AsError(err).Hint == "" {
				t.Errorf("error %v with hint %q, want a hint and no password", err, disdel.AsError(err).Hint)
			}
		})
	}
}

// A server reads no files and no addresses for its clients: all other lines than names with versions are refused at
// once.
func TestAServerTakesNamesOfPackagesOnly(t *testing.T) {
	bad := []string{
		"-r /etc/passwd", "--index-url https://evil.example", "--find-links /", "-e .", "./tiny.whl", "/tmp/tiny.whl",
		"https://evil.example/a.whl", "a @ file:///etc/a.whl", "git+https://evil.example/a", "a==${HOME}",
		"a; os_name == 'posix' --index-url https://evil.example",
	}
	good := "# comment\nnumpy\nnumpy>=1.24,<3\ntorch == 2.1.*\nPillow[extra,more] ~= 9.0 ; python_version < \"3.13\"\n" +
		"a==1 \\\n    --hash=sha256:00ff \\\n    --hash=sha256:11ee\nb!=1.0+cpu  # not this one\n"
	_, err := program.Packages{
		Requirements: good + strings.Join(bad, "\n"), Index: "/nowhere", Cache: t.TempDir(),
	}.Install(t.Context())
	if !errors.Is(err, disdel.Invalid) {
		t.Fatal(err)
	}
	for _, line := range bad {
		if !strings.Contains(err.Error(), fmt.Sprintf("%q", line)) {
			t.Errorf("%s is taken", line)
		}
	}
	if n := strings.Count(err.Error(), `", "`); n != len(bad)-1 {
		t.Errorf("%d lines are refused, want %d: %v", n+1, len(bad), err)
	}
}
