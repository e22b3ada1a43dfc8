// Package gpu writes what an OpenWhisk needs whose invokers' machines have GPUs: pod template, configuration, and what
// the cluster around it has to have. OpenWhisk counts memory and knows no GPUs, so that the pool has to divide them: it
// is made so large that as many train actions fit it as share the machine's GPUs.
//
// There are three routes, none of which has been tried: see Route. It asks no cluster, and refuses what cannot be
// divided. Invariant: with what it writes no more train actions of the size that it was told run on a machine than its
// GPUs hold.
package gpu

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/disdel/disdel"
)

// Route is the way by which a container gets to a GPU.
type Route string

// The routes. On Kubernetes the invoker overwrites a container's resources, so that no pod template can ask for a GPU.
const (
	// RuntimeClass has every pod reach all GPUs of its machine; Kubernetes counts none of them.
	RuntimeClass Route = "runtime-class"
	// LimitRange has the namespace of the actions' pods give each of them a GPU that the device plugin counts, several of
	// them the same one. Whether admission adds a resource that a pod does not name is read in old sources alone.
	LimitRange Route = "limit-range"
	// Docker is for invokers that start containers themselves: each of them gets all GPUs.
	Docker Route = "docker"
)

// Routes lists them.
func Routes() []Route { return []Route{RuntimeClass, LimitRange, Docker} }

// Machines are those that invokers with GPUs run on, all alike.
type Machines struct {
	Count  int
	GPUs   int          // of each
	Memory disdel.Bytes // of each GPU
	Share  disdel.Bytes // of a GPU, that a train action takes
	Action disdel.Bytes // memory of a train action
	Route  Route
}

// File is one that is written.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

//go:embed *.tmpl
var templates embed.FS

// written are the files of each route, in their order.
var written = map[Route][]string{
	RuntimeClass: {"pod-template.yaml", "whiskconfig.conf"},
	LimitRange:   {"pod-template.yaml", "whiskconfig.conf", "limit-range.yaml", "device-plugin.yaml"},
	Docker:       {"whiskconfig.conf"},
}

// Files are what an admin has to bring to the cluster. It returns Invalid for machines that cannot be divided so.
func (m Machines) Files() ([]File, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	all, err := template.New("").ParseFS(templates, "*.tmpl")
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Internal, Op: "write GPU files", Err: err}
	}
	var out []File
	for _, name := range written[m.Route] {
		var text bytes.Buffer
		if err := all.ExecuteTemplate(&text, name+".tmpl", m); err != nil {
			return nil, &disdel.Error{Kind: disdel.Internal, Op: "write " + name, Err: err}
		}
		out = append(out, File{name, text.String()})
	}
	return out, nil
}

func (m Machines) check() error {
	bad := func(hint, format string, args ...any) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "write GPU files", Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	switch {
	case !slices.Contains(Routes(), m.Route):
		var words []string
		for _, r := range Routes() {
			words = append(words, string(r))
		}
		return bad("use "+strings.Join(words, ", "), "there is no route %q", m.Route)
	case m.Count < 1 || m.GPUs < 1 || m.Memory <= 0 || m.Action <= 0:
		return bad("--gpus 2 --gpu-memory 16GB --machines 2", "machines, GPUs, their memory and an action's are at least one")
	case m.Share <= 0 || m.Share > m.Memory:
		return bad("disdel estimate JOB says what a train action takes of one",
			"an action's share of a GPU, %v, is not within a GPU's %v", m.Share, m.Memory)
	}
	return nil
}

// PerGPU is how many train actions share a GPU.
func (m Machines) PerGPU() int { return int(m.Memory / m.Share) }

// PerMachine is how many run on a machine.
func (m Machines) PerMachine() int { return m.GPUs * m.PerGPU() }

// Pool is the pool of an invoker, in whole megabytes: it holds as many train actions as the machine's GPUs do.
func (m Machines) Pool() string { return fmt.Sprintf("%dm", m.PerMachine()*m.Action.MB()) }

// Says is what clients have to be told: the cluster's API does not.
func (m Machines) Says() string {
	return fmt.Sprintf("--gpus %d --gpu-memory %dMB", m.Count*m.GPUs, m.Memory/disdel.MB)
}

// Kubernetes tells whether pods are made by a template.
func (m Machines) Kubernetes() bool { return m.Route != Docker }

// Class tells whether pods reach GPUs by a runtime class.
func (m Machines) Class() bool { return m.Route == RuntimeClass }
