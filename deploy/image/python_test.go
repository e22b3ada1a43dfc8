package image

import (
	"archive/zip"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/disdel/disdel"
)

// pip is a Python with pip, and its version.
func pip(t *testing.T) (interpreter, version string) {
	t.Helper()
	for _, interpreter := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(interpreter, "-m", "pip", "--version").Run() == nil {
			path, version, err := Python{Interpreter: interpreter}.interpreter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return path, version
		}
	}
	t.Skip("no Python on this machine has pip; Debian's package is python3-pip")
	return "", ""
}

// requirementsOf writes a wheel of the package drawn, and a requirements file that finds it without a network.
func requirementsOf(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	file, err := os.Create(filepath.Join(folder, "drawn-1.0-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(file)
	const wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
	for name, text := range map[string]string{
		"drawn.py":                             "value = 7\n",
		"drawn-1.0.dist-info/WHEEL":            wheel,
		"drawn-1.0.dist-info/RECORD":           "drawn.py,,\n",
		"drawn-1.0.dist-info/METADATA":         "Metadata-Version: 2.1\nName: drawn\nVersion: 1.0\n",
		"drawn-1.0.dist-info/entry_points.txt": "[console_scripts]\ndraw = drawn:value\n",
	} {
		f, err := w.Create(name)
		if _, writeErr := io.WriteString(f, text); errors.Join(err, writeErr) != nil {
			t.Fatal(err, writeErr)
		}
	}
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	requirements := filepath.Join(folder, "requirements.txt")
	text := "--no-index\n--find-links " + folder + "\ndrawn==1.0\n"
	if err := os.WriteFile(requirements, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return requirements
}

// baseOf is an image that says which Python it has, as the official ones do.
func baseOf(t *testing.T, version string) v1.Image {
	t.Helper()
	files := []entry{{"/usr/local/bin", 0o755, nil}, {"/usr/local/bin/python3", 0o755, []byte("a python")}}
	layer, err := layerOf(files, types.DockerLayer)
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	architecture, err := checkProgram(plain.Program)
	if err != nil {
		t.Fatal(err)
	}
	c.OS, c.Architecture = "linux", architecture
	c.Config.Env = []string{"PATH=/usr/local/bin:/bin", "PYTHON_VERSION=" + version}
	c.Config.Cmd = []string{"python3"}
	if image, err = mutate.ConfigFile(image, c); err != nil {
		t.Fatal(err)
	}
	return image
}

// An image with Python has the files of its base, the packages where the base's Python finds them, and the runtime. It
// is the same every time.
func TestAnImageWithPython(t *testing.T) {
	interpreter, version := pip(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/library/python:" + version
	if err := Push(t.Context(), reference, baseOf(t, version+".9")); err != nil {
		t.Fatal(err)
	}
	tar := filepath.Join(t.TempDir(), "base.tar")
	if err := WriteTar(tar, reference, baseOf(t, version+".9")); err != nil {
		t.Fatal(err)
	}
	o := plain
	o.Python = &Python{Requirements: requirementsOf(t), Interpreter: interpreter}
	var digests []string
	root, folder := t.TempDir(), ""
	for _, base := range []string{reference, tar} {
		o.Python.Base = base
		folder = filepath.Join(t.TempDir(), "layout")
		made, err := Make(t.Context(), o, Target{Layout: folder})
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, made.Digest)
	}
	unpack(t, folder, root)
	runAs(t, folder, version)
	if digests[0] != digests[1] {
		t.Errorf("the same files make %v", digests)
	}
	packages := filepath.Join(root, sitePackages(version))
	want := map[string]string{
		filepath.Join(root, "usr/local/bin/python3"): "a python", filepath.Join(packages, "drawn.py"): "value = 7\n",
	}
	for file, text := range want {
		if got, err := os.ReadFile(file); string(got) != text || err != nil {
			t.Errorf("%s has %q, not %q: %v", file, got, text, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, programPath)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(packages, "bin")); err == nil {
		t.Error("the image has programs that name this machine's Python")
	}
}

// runAs compares how an image with Python is run with the image without.
func runAs(t *testing.T, folder, version string) {
	t.Helper()
	got, err := imageIn(t, folder).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want, err := plainImage.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := want.Config
	config.Env = []string{
		"PATH=/usr/local/bin:/bin", "PYTHON_VERSION=" + version + ".9", "HOME=/tmp",
		"DISDEL_PYTHON=/usr/local/bin/python3",
	}
	if diff := cmp.Diff(config, got.Config); diff != "" {
		t.Error(diff)
	}
}

func TestPythonThatDoesNotFitAnImage(t *testing.T) {
	interpreter, version := pip(t)
	folder := t.TempDir()
	none := filepath.Join(folder, "none")
	write := func(name, version string, change func(*v1.ConfigFile)) string {
		image := baseOf(t, version)
		c, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		change(c)
		if image, err = mutate.ConfigFile(image, c); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, name+".tar")
		if err := WriteTar(file, "python:1", image); err != nil {
			t.Fatal(err)
		}
		return file
	}
	missing := filepath.Join(folder, "requirements.txt")
	if err := os.WriteFile(missing, []byte("--no-index\nnot-there==1.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	same := func(*v1.ConfigFile) {}
	good := Python{Requirements: requirementsOf(t), Interpreter: interpreter, Base: write("good", version, same)}
	for name, row := range map[string]struct {
		change func(*Python)
		kind   disdel.Kind
		words  string
	}{
		"no requirements": {func(p *Python) { p.Requirements = none }, disdel.NotFound, none},
		"no interpreter":  {func(p *Python) { p.Interpreter = none }, disdel.Invalid, "is no Python that runs"},
		"no base":         {func(p *Python) { p.Base = none + ".tar" }, disdel.NotFound, none},
		"another Python": {
			func(p *Python) { p.Base = write("old", "2.7.18", same) }, disdel.Invalid, "has Python 2.7.18, and",
		},
		"a base that says no Python": {
			func(p *Python) { p.Base = write("silent", "", func(c *v1.ConfigFile) { c.Config.Env = nil }) },
			disdel.Invalid, "does not say which Python it has",
		},
		"another processor": {
			func(p *Python) { p.Base = write("other", version, func(c *v1.ConfigFile) { c.Architecture = "s390x" }) },
			disdel.Invalid, "is for s390x",
		},
		"a package without a wheel": {func(p *Python) { p.Requirements = missing }, disdel.Invalid, "not-there==1.0"},
	} {
		bad := good
		row.change(&bad)
		o := plain
		o.Python = &bad
		_, err := Make(t.Context(), o, Target{Layout: filepath.Join(t.TempDir(), "layout")})
		if disdel.KindOf(err) != row.kind || err == nil || !strings.Contains(err.Error(), row.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The Dockerfile with Python is run as the image without.
func TestTheDockerfileWithPythonIsRunAsTheOther(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile.python")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(plain), "FROM scratch\n")
	lines := strings.Split(string(text), "\n")
	for line := range strings.Lines(last) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "ENV ") {
			line = "ENV HOME=/tmp " + pythonVariable + "=/usr/local/bin/python3" // PATH is the base's
		}
		if !strings.HasPrefix(line, "COPY --from=build /root") && !slices.Contains(lines, line) {
			t.Errorf("the Dockerfile with Python lacks %q", line)
		}
	}
}

// The steps of the Dockerfile with Python run without a container engine: the runtime is built, and pip installs the
// requirements into a new environment. Only the download of modules is not tried.
func TestTheStepsOfTheDockerfileWithPythonRun(t *testing.T) {
	interpreter, _ := pip(t)
	text, err := os.ReadFile("../Dockerfile.python")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if out, err := exec.Command(interpreter, "-m", "venv", root).CombinedOutput(); err != nil {
		t.Skipf("no virtual environment can be made: %v: %s", err, out)
	}
	inRoot := strings.NewReplacer(
		"pip install", filepath.Join(root, "bin/pip")+" install", "/requirements.txt", requirementsOf(t),
		"-o /disdel-runtime", "-o "+filepath.Join(root, "disdel-runtime"), "$VERSION", "1.0",
	)
	tried := 0
	for line := range strings.Lines(string(text)) {
		step, isRun := strings.CutPrefix(strings.TrimSpace(line), "RUN ")
		if !isRun || step == "go mod download" {
			continue
		}
		cmd := exec.Command("sh", "-c", inRoot.Replace(step))
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", step, err, out)
		}
		tried++
	}
	if tried != 2 {
		t.Errorf("%d steps were tried, want 2", tried)
	}
	if out, err := exec.Command(filepath.Join(root, "bin/python"), "-c", "import drawn").CombinedOutput(); err != nil {
		t.Errorf("the installed package: %v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(root, "disdel-runtime")); err != nil {
		t.Error(err)
	}
}
