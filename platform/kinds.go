package platform

import (
	"context"
	_ "embed"
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

// DefaultKinds are the containers that this machine can start: those of disdelBinary, and Python's and Node's scripts
// where there is an interpreter. Clients name them python:default and nodejs:default as well.
func DefaultKinds(disdelBinary string) map[string]Kind {
	kinds := map[string]Kind{disdel.RuntimeKind: {Command: []string{disdelBinary, "runtime", "--listen", "{listen}"}}}
	if path, major := interpreter("python3", "-c", "import sys; print(sys.executable, sys.version_info[0])"); path != "" {
		kinds["python:"+major] = Kind{Command: []string{path, "-c", launchPython, archivePython, "{listen}"}, OwnUser: true}
	}
	if path, major := interpreter("node", "-e",
		"console.log(process.execPath, process.versions.node.split('.')[0])"); path != "" {
		kinds["nodejs:"+major] = Kind{Command: []string{path, "-e", launchNode, archiveNode, "{listen}"}, OwnUser: true}
	}
	return kinds
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
	if canSwitch() && !openToAll(modules) {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "find packages of Node.js",
			Msg:  "scripts run as users of their own here, and " + modules + " cannot be read by every user",
			Hint: "choose a folder below one that every user may enter, such as /opt",
		}
	}
	for name, kind := range kinds {
		if family(name) == "nodejs" {
			kind.Env = append(slices.Clone(kind.Env), "NODE_PATH="+modules)
			kinds[name] = kind
		}
	}
	return nil
}

// interpreterWait bounds the question for an interpreter's version; it usually takes less than a tenth of a second.
const interpreterWait = 10 * time.Second

// interpreter asks a program for its true path and major version. What PATH has may be a version manager's script,
// which would find nothing in a container's empty home.
func interpreter(name string, ask ...string) (path, major string) {
	ctx, stop := context.WithTimeout(context.Background(), interpreterWait)
	defer stop()
	out, err := exec.CommandContext(ctx, name, ask...).Output() //nolint:gosec // names and questions are written above
	if err != nil {
		return "", ""
	}
	answer := strings.TrimSpace(string(out))
	i := strings.LastIndexByte(answer, ' ') // the path may have spaces
	if i < 0 {
		return "", ""
	}
	return answer[:i], answer[i+1:]
}
