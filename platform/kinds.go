package platform

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

//go:embed launchers/launch.py
var launchPython string

//go:embed launchers/archive.py
var archivePython string

//go:embed launchers/launch.js
var launchNode string

//go:embed launchers/archive.js
var archiveNode string

// language is a family of kinds whose containers run an interpreter of this machine.
type language struct {
	family, title, program string
	ask                    []string // arguments that print its real path, its version and its folders
	run                    []string // arguments that start a container
	env                    []string
	// names are OpenWhisk's own kinds of the family. They stand for the machine's version.
	names []string
}

var languages = []language{
	{
		family: "python", title: "Python", program: "python3",
		ask: []string{"-c", "import sys, platform, json; print(json.dumps({'path': sys.executable, " +
			"'version': platform.python_version(), 'folders': [sys.prefix, sys.base_prefix, sys.base_exec_prefix]}))"},
		run: []string{"-c", launchPython, archivePython, "{listen}"}, names: []string{"3.10", "3.11"},
	},
	{
		family: "nodejs", title: "Node.js", program: "node",
		ask: []string{
			"-e", "console.log(JSON.stringify({ path: process.execPath, version: process.versions.node, folders: [] }))",
		},
		run: []string{"-e", launchNode, archiveNode, "{listen}"}, names: []string{"14", "16", "18", "20"},
		env: []string{allowConcurrent + "=true"},
	},
}

// DefaultKinds are the kinds of this machine: that of disdelBinary, and Python and Node.js if there is an interpreter,
// under its major version and under OpenWhisk's names. The machine's version runs under every name; Kind.Description
// tells it. Clients can also name python:default and nodejs:default.
func DefaultKinds(disdelBinary string) map[string]Kind {
	kinds := map[string]Kind{disdel.RuntimeKind: {
		Command: []string{disdelBinary, "runtime", "--listen", "{listen}"}, Env: []string{allowConcurrent + "=true"},
		Forks: true, SharedMains: []string{string(disdel.TaskInfer)}, // training uses the whole process
	}}
	for _, s := range languages {
		found, ok := findInterpreter(s.program, s.ask...)
		if !ok {
			continue
		}
		path, version := found.Path, found.Version
		kind := Kind{
			Command: append([]string{path}, s.run...), Env: s.env, OwnUser: true, Reads: found.reads(),
			Description: s.title + " " + version,
		}
		for _, name := range s.names {
			kinds[s.family+":"+name] = kind
		}
		if s.family == "python" {
			native := kind
			native.Command = append([]string{path, "-c", launchPython, "native"}, s.run[2:]...)
			native.Unlisted, native.Description = true, "programs"
			kinds[nativeKind] = native
		}
		major, _, _ := strings.Cut(version, ".")
		kind.Default = true
		kinds[s.family+":"+major] = kind
	}
	return kinds
}

// nativeKind runs actions that are programs of their own, started by Python.
const nativeKind = "native:1"

// DefaultImages maps the image of native actions to its kind.
func DefaultImages(kinds map[string]Kind) map[string]string {
	images := map[string]string{}
	if _, ok := kinds[nativeKind]; ok {
		for _, tag := range []string{"", ":latest", ":nightly"} {
			images["openwhisk/dockerskeleton"+tag] = nativeKind
		}
	}
	return images
}

// AddNodeModules lets Node.js actions require the packages that npm installed into a folder. It returns Invalid for a
// folder without node_modules.
func AddNodeModules(kinds map[string]Kind, folder string) error {
	modules, err := filepath.Abs(folder)
	if err == nil && filepath.Base(modules) != "node_modules" {
		modules = filepath.Join(modules, "node_modules")
	}
	info, bad := os.Stat(modules)
	if err != nil || bad != nil || !info.IsDir() {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "find packages of Node.js", Msg: folder + " has no node_modules",
			Err: errors.Join(err, bad), Hint: "npm install --prefix " + folder + " openwhisk",
		}
	}
	for name, kind := range kinds {
		if family(name) == "nodejs" {
			kind.Env = append(slices.Clone(kind.Env), "NODE_PATH="+modules)
			kind.Reads = append(slices.Clone(kind.Reads), modules)
			kinds[name] = kind
		}
	}
	return nil
}

// interpreterWait bounds the question for an interpreter's version, which usually takes less than 0.1 s.
const interpreterWait = 10 * time.Second

// interpreter is an interpreter of this machine.
type interpreter struct {
	Path    string   `json:"path"`
	Version string   `json:"version"`
	Folders []string `json:"folders"` // installation folders
}

// findInterpreter asks an interpreter for its real path, version and folders. PATH may name a version manager's script,
// which does not work in a container's empty home.
func findInterpreter(name string, ask ...string) (found interpreter, ok bool) {
	ctx, stop := context.WithTimeout(context.Background(), interpreterWait)
	defer stop()
	out, err := exec.CommandContext(ctx, name, ask...).Output() //nolint:gosec // names and questions are written above
	if err != nil || json.Unmarshal(out, &found) != nil || found.Path == "" {
		return interpreter{}, false
	}
	return found, true
}

// reads are the files that an interpreter needs: its libraries, and the markers of a virtual environment.
func (i interpreter) reads() []string {
	folders := slices.Clone(i.Folders)
	for _, program := range []string{i.Path, realPath(i.Path)} {
		folders = append(folders, filepath.Dir(filepath.Dir(program)))
	}
	var out []string
	for _, folder := range folders {
		for _, name := range []string{"lib", "lib64", "pyvenv.cfg"} {
			path := filepath.Join(folder, name)
			if _, err := os.Stat(path); err == nil && !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	return out
}

// realPath resolves links; it returns path itself if that fails.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
