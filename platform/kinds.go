package platform

import (
	"context"
	_ "embed"
	"os/exec"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

//go:embed launchers/launch.py
var launchPython string

//go:embed launchers/launch.js
var launchNode string

// DefaultKinds are the containers that this machine can start: those of disdelBinary, and Python's and Node's scripts
// where there is an interpreter. Clients name them python:default and nodejs:default as well.
func DefaultKinds(disdelBinary string) map[string]Kind {
	kinds := map[string]Kind{disdel.RuntimeKind: {Command: []string{disdelBinary, "runtime", "--listen", "{listen}"}}}
	if path, major := interpreter("python3", "-c", "import sys; print(sys.executable, sys.version_info[0])"); path != "" {
		kinds["python:"+major] = Kind{Command: []string{path, "-c", launchPython, "{listen}"}, OwnUser: true}
	}
	if path, major := interpreter("node", "-e",
		"console.log(process.execPath, process.versions.node.split('.')[0])"); path != "" {
		kinds["nodejs:"+major] = Kind{Command: []string{path, "-e", launchNode, "{listen}"}, OwnUser: true}
	}
	return kinds
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
