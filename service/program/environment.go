package program

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/terminal"
)

// oldest is the first version of Python 3 that the package disdel runs on.
const oldest = 9

// installTimeout limits the installation of packages: PyTorch has gigabytes.
const installTimeout = 2 * time.Hour

// interpreter is a Python that was found.
type interpreter struct {
	path    string
	version string // 3.11.2
}

// needs is what disdel.describe tells of a program without running it.
type needs struct {
	File    string   `json:"file"`
	Files   []string `json:"files"`   // of a program of one file
	Missing []string `json:"missing"` // packages that it imports
	Unmet   []string `json:"unmet"`   // lines of its requirements
}

// environment is the Python that has everything the program needs, and what it needs.
func (d *description) environment(ctx context.Context) (interpreter, needs, error) {
	i, err := d.find(ctx)
	if err != nil {
		return i, needs{}, err
	}
	n, err := d.needs(ctx, i)
	if err != nil {
		return i, n, err
	}
	if len(n.Unmet) > 0 {
		if i, err = d.virtual(ctx, i, n.Unmet); err == nil {
			n, err = d.needs(ctx, i)
		}
	}
	if err == nil && len(n.Missing) > 0 {
		err = d.invalid(fmt.Sprintf("it imports packages that Python %s at %s does not have: %s",
			i.version, i.path, strings.Join(n.Missing, ", ")), d.install(i, n.Missing)+d.other(ctx, i))
	}
	return i, n, err
}

// other names another Python on the path that has what the program needs.
func (d *description) other(ctx context.Context, than interpreter) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path, err := exec.LookPath(filepath.Join(dir, "python3"))
		if err != nil {
			continue
		}
		i, err := d.examine(ctx, path)
		if err != nil || i.path == than.path {
			continue
		}
		if n, err := d.needs(ctx, i); err == nil && len(n.Missing)+len(n.Unmet) == 0 {
			return fmt.Sprintf("; %s has them: --python %s", i.path, i.path)
		}
	}
	return ""
}

func (d *description) needs(ctx context.Context, i interpreter) (n needs, err error) {
	request := map[string]any{"needs": true, "folder": d.source, "entry": d.Python.Entry, "timeoutS": d.Timeout.Seconds()}
	if info, err := os.Stat(d.source); err == nil && !info.IsDir() {
		request["folder"], request["file"] = filepath.Dir(d.source), filepath.Base(d.source)
	}
	if d.Python.Requirements != "" {
		request["requirements"] = d.path(d.Python.Requirements)
		if _, err := os.Stat(d.path(d.Python.Requirements)); err != nil {
			return n, d.invalid("there is no file "+d.Python.Requirements, "check model.python.requirements")
		}
	}
	answer, err := d.ask(ctx, i, request)
	if err == nil {
		err = json.Unmarshal(answer, &n)
	}
	return n, err
}

// find is the Python that was asked for, else the project's, else python3.
func (d *description) find(ctx context.Context) (interpreter, error) {
	if d.Interpreter != "" {
		return d.examine(ctx, d.Interpreter)
	}
	folder := filepath.Dir(d.source)
	for _, dir := range []string{d.source, folder, d.Dir} {
		path := filepath.Join(dir, ".venv", "bin", "python")
		if _, err := os.Stat(path); err == nil {
			return d.examine(ctx, path)
		}
	}
	path, err := exec.LookPath("python3")
	if err != nil {
		return interpreter{}, d.invalid("there is no Python on this machine",
			fmt.Sprintf("install Python 3.%d or newer, or name one with --python", oldest))
	}
	return d.examine(ctx, path)
}

const question = `import sys
sys.stdout.write("%s%d.%d.%d %s" % (("` + prefix + `",) + tuple(sys.version_info[:3]) + (sys.executable or "",)))`

// examine asks an interpreter for its version. Every Python since 2.6 can answer.
func (d *description) examine(ctx context.Context, name string) (interpreter, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return interpreter{}, d.invalid("there is no Python at "+name, "name a Python that exists with --python")
	}
	i := interpreter{path: path}
	out, prints, err := d.run(ctx, d.asUser(), d.Timeout, nil, path, "-s", "-c", question)
	answer, found := answerLine(out)
	version, executable, _ := strings.Cut(string(answer), " ")
	if err != nil || !found {
		return i, &disdel.Error{
			Kind: disdel.Invalid, Op: d.op(), Msg: fmt.Sprintf("%s is no Python that runs: %s", path,
				strings.TrimSpace(terminal.Clean(string(prints)))), Err: err, Hint: "name another one with --python",
		}
	}
	i.version, i.path = version, cmp.Or(executable, path) // a shim is not what actions run
	var major, minor int
	if n, _ := fmt.Sscanf(i.version, "%d.%d", &major, &minor); n < 2 || major != 3 || minor < oldest {
		return i, d.invalid(fmt.Sprintf("%s is Python %s, and 3.%d is the oldest that works", path, i.version, oldest),
			"name a newer one with --python")
	}
	return i, nil
}

// virtual is the virtual environment for the program's requirements. Every program with the same ones shares it.
func (d *description) virtual(ctx context.Context, base interpreter, unmet []string) (interpreter, error) {
	text, err := os.ReadFile(d.path(d.Python.Requirements))
	if err != nil {
		return base, &disdel.Error{Kind: disdel.Invalid, Op: d.op(), Err: err}
	}
	sum := sha256.Sum256([]byte(base.path + "\x00" + base.version + "\x00" + d.index + string(text)))
	dir := filepath.Join(d.Cache, "environments", hex.EncodeToString(sum[:8]))
	made := interpreter{path: filepath.Join(dir, "bin", "python"), version: base.version}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return base, &disdel.Error{Kind: disdel.Invalid, Op: "make the folder of environments", Err: err}
	}
	lock, err := lockOf(ctx, dir+".lock")
	if err != nil {
		return base, err
	}
	defer files.Unlock(lock) //nolint:errcheck // another description makes it anew
	if _, err := os.Stat(dir); err == nil {
		now := time.Now()
		os.Chtimes(dir, now, now) //nolint:errcheck // prune keeps what was used lately
		return made, nil
	}
	if err := d.make(ctx, base, dir); err != nil {
		os.RemoveAll(dir) //nolint:errcheck // the first error is the one to tell
		return base, d.uninstalled(err, unmet)
	}
	return made, nil
}

// lockOf waits for another process that makes the same environment.
func lockOf(ctx context.Context, path string) (*os.File, error) {
	for {
		lock, err := files.Lock(path)
		if err == nil || !files.Held(err) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, &disdel.Error{Kind: disdel.Canceled, Op: "wait for " + path, Err: ctx.Err()}
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// make fills a new environment. Packages that its base has are used: PyTorch is large.
func (d *description) make(ctx context.Context, base interpreter, dir string) error {
	draft := dir + ".part"
	if err := os.RemoveAll(draft); err != nil {
		return err
	}
	defer os.RemoveAll(draft) //nolint:errcheck // nothing is there after the rename
	fill := d.fill
	if d.index != "" {
		fill = d.fillBounded
	}
	if err := fill(ctx, d.steps(base, draft), draft); err != nil {
		return err
	}
	if err := readOnly(draft); err != nil {
		return err
	}
	return os.Rename(draft, dir)
}

// steps are the commands that make an environment in a folder and install the packages.
func (d *description) steps(base interpreter, draft string) [][]string {
	python := filepath.Join(draft, "bin", "python")
	packages := append(d.sources(), "-r", d.path(d.Python.Requirements))
	if uv, err := exec.LookPath("uv"); err == nil {
		return [][]string{
			{uv, "venv", "-q", "--system-site-packages", "--python", base.path, draft},
			append([]string{uv, "pip", "install", "-q", "--link-mode", "copy", "--python", python}, packages...),
		}
	}
	return [][]string{
		{base.path, "-m", "venv", "--system-site-packages", draft},
		append([]string{python, "-m", "pip", "install", "-q", "--disable-pip-version-check"}, packages...),
	}
}

// fill installs packages as the user would.
func (d *description) fill(ctx context.Context, steps [][]string, _ string) error {
	for _, step := range steps {
		if _, prints, err := d.run(ctx, d.asUser(), installTimeout, nil, step[0], step[1:]...); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(step[:3], " "), err, strings.TrimSpace(terminal.Clean(string(prints))))
		}
	}
	return nil
}

// readOnly takes the right to write from every file of an environment, which programs share.
func readOnly(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode().Perm()&^0o222)
	})
}

// uninstalled is the error for requirements that could not be installed.
func (d *description) uninstalled(err error, unmet []string) error {
	var full *disdel.Error
	if errors.As(err, &full) {
		return err
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: d.op(), Err: err,
		Msg:  fmt.Sprintf("its requirements could not be installed; missing are %s", strings.Join(unmet, ", ")),
		Hint: "without a network, name a Python that has the packages with --python",
	}
}
