package program_test

import (
	"archive/zip"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service/program"
)

// An interpreter that cannot run programs is refused with the reason and the way on.
func TestAnInterpreterIsExamined(t *testing.T) {
	for name, c := range map[string]struct {
		script string // "": there is none
		want   string
	}{
		"none":   {"", "there is no Python at"},
		"old":    {"#!/bin/sh\nprintf 'disdel-description: 3.8.1 /old'\n", "Python 3.8.1, and 3.9 is the oldest"},
		"two":    {"#!/bin/sh\nprintf 'disdel-description: 2.7.18 /old'\n", "Python 2.7.18, and 3.9 is the oldest"},
		"broken": {"#!/bin/sh\necho no library >&2\nexit 1\n", "no Python that runs: no library"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, filepath.Join(t.TempDir(), "python"), map[string]string{"net.py": "def train(run): pass\n"})
			if c.script != "" {
				if err := os.WriteFile(o.Interpreter, []byte(c.script), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := program.Describe(t.Context(), o)
			if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one that says %q", err, c.want)
			}
			if hint := disdel.AsError(err).Hint; !strings.Contains(hint, "--python") {
				t.Errorf("hint %q, want --python", hint)
			}
		})
	}
}

// A machine without Python is told so.
func TestAMachineWithoutPythonIsToldSo(t *testing.T) {
	o := options(t, "", map[string]string{"net.py": "def train(run): pass\n"})
	t.Setenv("PATH", t.TempDir())
	_, _, err := program.Describe(t.Context(), o)
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(disdel.AsError(err).Hint, "install Python 3.9 or newer") {
		t.Errorf("error %v with hint %q", err, disdel.AsError(err).Hint)
	}
}

// The project's own environment is preferred to python3.
func TestTheProjectsEnvironmentIsPreferred(t *testing.T) {
	o := options(t, "", map[string]string{"net.py": network, "layers.py": layers})
	path := filepath.Join(o.Dir, ".venv", "bin", "python")
	venv := []string{"-m", "venv", "--without-pip", "--system-site-packages", filepath.Join(o.Dir, ".venv")}
	if out, err := exec.Command(needTorch(t), venv...).CombinedOutput(); err != nil {
		t.Skipf("this Python makes no virtual environments: %s", out)
	}
	python, _, err := program.Describe(t.Context(), o)
	if err != nil || python.Interpreter != path || python.Network.Python.Interpreter != path {
		t.Errorf("interpreter %s (%v), want %s", python.Interpreter, err, path)
	}
}

// A Python without PyTorch is refused, and another on the path that has it is named.
func TestAPythonWithoutTorchIsRefused(t *testing.T) {
	o := options(t, "", map[string]string{"net.py": network, "layers.py": layers})
	bare := filepath.Join(t.TempDir(), "bare")
	if out, err := exec.Command(needTorch(t), "-m", "venv", "--without-pip", bare).CombinedOutput(); err != nil {
		t.Skipf("this Python makes no virtual environments: %s", out)
	}
	o.Interpreter = filepath.Join(bare, "bin", "python")
	if exec.Command(o.Interpreter, "-s", "-c", "import torch").Run() == nil {
		t.Skip("a virtual environment without site packages has torch here")
	}
	t.Setenv("PATH", filepath.Dir(torch()))
	_, _, err := program.Describe(t.Context(), o)
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), o.Interpreter+" does not have: torch") {
		t.Fatalf("error %v, want one that says that torch is missing", err)
	}
	hint := disdel.AsError(err).Hint
	if !strings.Contains(hint, "-m pip install torch") || !strings.Contains(hint, "has them: --python "+torch()) {
		t.Errorf("hint %q, want pip and the other Python", hint)
	}
}

// Requirements that the interpreter fulfils need no environment and no network.
func TestFulfilledRequirementsNeedNoEnvironment(t *testing.T) {
	o := options(t, needTorch(t), map[string]string{
		"net.py": network, "layers.py": layers,
		"requirements.txt": "# as on the cluster\ntorch>=1.10  # any\nabsent; python_version < '3'\n",
	})
	o.Python.Requirements = "requirements.txt"
	python, _, err := program.Describe(t.Context(), o)
	if err != nil || strings.HasPrefix(python.Interpreter, o.Cache) {
		t.Errorf("interpreter %s (%v), want the one of the machine", python.Interpreter, err)
	}
}

// Programs with the same requirements share one environment, whose files nobody changes.
func TestRequirementsAreInstalledOnce(t *testing.T) {
	o := options(t, needPip(t), map[string]string{
		"net.py": "import tiny\n" + network, "layers.py": layers, "requirements.txt": "./tiny-1.0-py3-none-any.whl\n",
	})
	wheel(t, filepath.Join(o.Dir, "tiny-1.0-py3-none-any.whl"))
	o.Python.Requirements = "requirements.txt"
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			python, _, err := program.Describe(t.Context(), o)
			if err != nil || !strings.HasPrefix(python.Interpreter, o.Cache) {
				t.Errorf("interpreter %s (%v), want one below %s", python.Interpreter, err, o.Cache)
			}
		})
	}
	group.Wait()
	entries, err := os.ReadDir(filepath.Join(o.Cache, "environments"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v (%v), want one environment and no lock", entries, err)
	}
	err = filepath.WalkDir(filepath.Join(o.Cache, "environments"), func(path string, e fs.DirEntry, err error) error {
		if info, _ := e.Info(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s can be written", path)
			return fs.SkipAll
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// What cannot be installed is named, and nothing of the environment stays. Where the interpreter has another version
// than the requirements name, both versions are told.
func TestRequirementsThatCannotBeInstalledAreNamed(t *testing.T) {
	o := options(t, needPip(t), map[string]string{
		"net.py": network, "layers.py": layers, "requirements.txt": "--no-index\n./nowhere.whl\ntorch==0.0.1\n",
	})
	o.Python.Requirements = "requirements.txt"
	_, _, err := program.Describe(t.Context(), o)
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "missing are ./nowhere.whl, torch==0.0.1 (") ||
		!strings.Contains(err.Error(), " is installed)") {
		t.Errorf("error %v, want one that names both lines and the version that is installed", err)
	}
	if entries, _ := os.ReadDir(filepath.Join(o.Cache, "environments")); len(entries) > 0 {
		t.Errorf("%v stays", entries)
	}
}

func needPip(t *testing.T) string {
	t.Helper()
	path := needTorch(t)
	if err := exec.Command(path, "-c", "import ensurepip").Run(); err != nil {
		t.Skip("the Python with torch has no ensurepip; Debian's package is python3-venv")
	}
	return path
}

// wheel writes a package that pip installs without a network.
func wheel(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := zip.NewWriter(f)
	for name, text := range map[string]string{
		"tiny/__init__.py":            "",
		"tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
		"tiny-1.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"tiny-1.0.dist-info/RECORD":   "tiny/__init__.py,,\ntiny-1.0.dist-info/METADATA,,\n",
	} {
		part, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
