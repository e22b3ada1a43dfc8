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

// language is a family of kinds whose containers an interpreter of the machine runs.
type language struct {
	family, title, program string
	ask                    []string // has it print its true path, its version and the folders that it is installed in
	run                    []string // what follows the path
	env                    []string
	// names are those of OpenWhisk's own kinds of the family, which stand for what the machine has.
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

// DefaultKinds are the containers that this machine can start: those of disdelBinary, and Python's and Node's scripts
// where there is an interpreter, under its major version and under the names that OpenWhisk's own kinds have. Whatever
// the name, it is the machine's version that runs, and Kind.Says tells it. Clients name them python:default and
// nodejs:default as well.
func DefaultKinds(disdelBinary string) map[string]Kind {
	kinds := map[string]Kind{disdel.RuntimeKind: {
		Command: []string{disdelBinary, "runtime", "--listen", "{listen}"}, Env: []string{allowConcurrent + "=true"},
		Together: []string{string(disdel.TaskInfer)}, // what trains has the whole process for itself
	}}
	for _, s := range languages {
		found, ok := findInterpreter(s.program, s.ask...)
		if !ok {
			continue
		}
		path, version := found.Path, found.Version
		kind := Kind{
			Command: append([]string{path}, s.run...), Env: s.env, OwnUser: true, Reads: found.reads(),
			Says: s.title + " " + version,
		}
		for _, name := range s.names {
			kinds[s.family+":"+name] = kind
		}
		if s.family == "python" {
			native := kind
			native.Command = append([]string{path, "-c", launchPython, "native"}, s.run[2:]...)
			native.Unlisted, native.Says = true, "programs"
			kinds[nativeKind] = native
		}
		major, _, _ := strings.Cut(version, ".")
		kind.Default = true
		kinds[s.family+":"+major] = kind
	}
	return kinds
}

// nativeKind runs actions that are programs of their own. Python carries them out.
const nativeKind = "native:1"

// DefaultImages are the container images that one of the kinds stands for: that of native actions.
func DefaultImages(kinds map[string]Kind) map[string]string {
	images := map[string]string{}
	if _, ok := kinds[nativeKind]; ok {
		for _, tag := range []string{"", ":latest", ":nightly"} {
			images["openwhisk/dockerskeleton"+tag] = nativeKind
		}
	}
	return images
}

// AddNodeModules lets actions of Node.js require the packages of a folder that npm installed into, such as openwhisk.
// It returns Invalid for a folder that has none.
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

// interpreterWait bounds the question for an interpreter's version; it usually takes less than a tenth of a second.
const interpreterWait = 10 * time.Second

// interpreter is one that the machine has.
type interpreter struct {
	Path    string   `json:"path"`
	Version string   `json:"version"`
	Folders []string `json:"folders"` // that it is installed in, beside the one above its own
}

// findInterpreter asks an interpreter for its true path, version and folders. PATH may lead to the script of a version
// manager, which would not work in a container's empty home.
func findInterpreter(name string, ask ...string) (found interpreter, ok bool) {
	ctx, stop := context.WithTimeout(context.Background(), interpreterWait)
	defer stop()
	out, err := exec.CommandContext(ctx, name, ask...).Output() //nolint:gosec // names and questions are written above
	if err != nil || json.Unmarshal(out, &found) != nil || found.Path == "" {
		return interpreter{}, false
	}
	return found, true
}

// reads are the files that an interpreter needs: its libraries, and the files that mark a virtual environment.
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

// realPath is a path without links, or the path itself where it leads nowhere.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
