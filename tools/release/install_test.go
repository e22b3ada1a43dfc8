package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// releasedPrograms writes a release of small scripts, one for each version, for machines of both names of uname -m.
func releasedPrograms(t *testing.T, versions ...string) string {
	t.Helper()
	r := release{root: "..", revision: strings.Repeat("a", 40), out: t.TempDir()}
	var names []string
	for _, r.version = range versions {
		for _, platform := range []string{"linux_amd64", "linux_arm64"} {
			base := "disdel_" + r.version + "_" + platform
			programs := []file{
				{"disdel", []byte("#!/bin/sh\necho " + base + "\n"), 0o755},
				{"disdel-runtime", []byte("#!/bin/sh\n"), 0o755},
			}
			data, err := pack(base, programs, time.Unix(0, 0))
			if err == nil {
				err = os.WriteFile(filepath.Join(r.out, base+".tar.gz"), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, base+".tar.gz")
		}
	}
	if err := r.finish(names, nil); err != nil {
		t.Fatal(err)
	}
	return r.out
}

// install runs the script as on a machine with this system and processor.
func install(t *testing.T, system, machine string, args ...string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" = -s ] && echo " + system + " || echo " + machine + "\n"
	if err := os.WriteFile(filepath.Join(bin, "uname"), []byte(script), 0o700); err != nil { //nolint:gosec // started
		t.Fatal(err)
	}
	c := exec.Command("/bin/sh", append([]string{"../../scripts/install.sh"}, args...)...)
	c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	return string(out), err
}

// The script installs the programs of this machine from a folder, a file URL and a server, also over older ones.
func TestInstallTakesThePlatformsArchive(t *testing.T) {
	dir := releasedPrograms(t, "v0.1.0")
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	to := filepath.Join(t.TempDir(), "new", "bin")
	for from, machine := range map[string]string{
		dir: "x86_64", "file://" + dir: "aarch64", server.URL + "/": "arm64", server.URL: "amd64",
	} {
		if out, err := install(t, "Linux", machine, "--from", from, "--to", to); err != nil {
			t.Fatalf("%s: %s", from, out)
		}
		want := "disdel_v0.1.0_linux_amd64\n"
		if strings.HasPrefix(machine, "a") && machine != "amd64" {
			want = "disdel_v0.1.0_linux_arm64\n"
		}
		if out, err := exec.Command(filepath.Join(to, "disdel")).Output(); err != nil || string(out) != want {
			t.Errorf("%s installed %q, want %q, %v", from, out, want, err)
		}
	}
	if list, err := os.ReadDir(to); err != nil || len(list) != 2 {
		t.Errorf("the folder has %v, not two programs; %v", list, err)
	}
}

// Of several versions the script installs the one that is named, and asks where none is.
func TestInstallTakesTheNamedVersion(t *testing.T) {
	dir, to := releasedPrograms(t, "v0.1.0", "v0.2.0"), t.TempDir()
	out, err := install(t, "Linux", "x86_64", "--from", dir, "--to", to)
	if err == nil || !strings.Contains(out, "--version") || !strings.Contains(out, "v0.2.0") {
		t.Errorf("several versions: %s, %v", out, err)
	}
	if out, err := install(t, "Linux", "x86_64", "--from", dir, "--to", to, "--version", "v0.1.0"); err != nil {
		t.Fatal(out)
	}
	if out, _ := exec.Command(filepath.Join(to, "disdel")).Output(); string(out) != "disdel_v0.1.0_linux_amd64\n" {
		t.Errorf("installed %q", out)
	}
}

// What cannot be installed is refused with the reason, and the folder keeps the program that it had.
func TestInstallRefuses(t *testing.T) {
	dir, to := releasedPrograms(t, "v0.1.0"), t.TempDir()
	name := filepath.Join(dir, "disdel_v0.1.0_linux_amd64.tar.gz")
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(dir, "disdel_v0.1.0_linux_arm64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(to, "disdel")
	if err := os.WriteFile(older, []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says, system, machine string
		archive               []byte
		args                  []string
	}{
		{"Nothing was installed", "Linux", "x86_64", other, []string{"--from", dir}},
		{"Nothing was installed", "Linux", "x86_64", good[:len(good)-1], []string{"--from", dir}},
		{"cannot be read", "Linux", "x86_64", nil, []string{"--from", dir}},
		{"cannot be read", "Linux", "x86_64", good, []string{"--from", dir + "/none"}},
		{"no programs of version v9", "Linux", "x86_64", good, []string{"--from", dir, "--version", "v9"}},
		{"no programs for darwin/arm64", "Darwin", "arm64", good, []string{"--from", dir}},
		{"for FreeBSD", "FreeBSD", "amd64", good, []string{"--from", dir}},
		{"riscv64 processors", "Linux", "riscv64", good, []string{"--from", dir}},
		{"--from is missing", "Linux", "x86_64", good, nil},
		{"--from has no value", "Linux", "x86_64", good, []string{"--from"}},
		{"no option --form", "Linux", "x86_64", good, []string{"--form", dir}},
	} {
		if err := os.WriteFile(name, c.archive, 0o600); err != nil {
			t.Fatal(err)
		}
		if c.archive == nil {
			os.Remove(name) //nolint:errcheck // the next case writes it
		}
		out, err := install(t, c.system, c.machine, append([]string{"--to", to}, c.args...)...)
		if err == nil || !strings.Contains(out, c.says) {
			t.Errorf("%v on %s/%s says %q, not %q", c.args, c.system, c.machine, out, c.says)
		}
		if list, _ := os.ReadDir(to); len(list) != 1 {
			t.Errorf("%s: the folder has %d files", c.says, len(list))
		}
		if data, _ := os.ReadFile(older); string(data) != "older" {
			t.Errorf("%s: the older program is lost", c.says)
		}
	}
}
