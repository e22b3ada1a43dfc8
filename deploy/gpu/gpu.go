// Package gpu writes the files for an OpenWhisk whose invokers run on machines with GPUs: pod template, configuration,
// and what the cluster needs besides. OpenWhisk counts memory but not GPUs, so the pool is sized so that as many train
// actions fit into it as share the machine's GPUs.
//
// There are three routes; none has been tried (see Route). The package contacts no cluster. Invariant: with these
// files, no more train actions of the given size run on a machine than its GPUs can hold.
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

// Route is how a container gets access to a GPU.
type Route string

// The routes. On Kubernetes the invoker overwrites a container's resources, so a pod template cannot ask for a GPU.
const (
	// RuntimeClass lets every pod use all GPUs of its machine. Kubernetes counts none of them.
	RuntimeClass Route = "runtime-class"
	// LimitRange makes the namespace give each pod a GPU that the device plugin counts; several pods share one GPU. Only
	// old sources say that admission adds a resource that a pod does not name.
	LimitRange Route = "limit-range"
	// Docker is for invokers that start containers themselves. Each container gets all GPUs.
	Docker Route = "docker"
)

// Routes lists all routes.
func Routes() []Route { return []Route{RuntimeClass, LimitRange, Docker} }

// Machines are the equal machines with GPUs that invokers run on.
type Machines struct {
	Count  int
	GPUs   int          // of each machine
	Memory disdel.Bytes // of each GPU
	Share  disdel.Bytes // memory of a GPU that a train action uses
	Action disdel.Bytes // memory of a train action
	Route  Route
}

// File is a file to write.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

//go:embed *.tmpl
var templates embed.FS

// filesOfRoute are the files of each route, in order.
var filesOfRoute = map[Route][]string{
	RuntimeClass: {"pod-template.yaml", "whiskconfig.conf"},
	LimitRange:   {"pod-template.yaml", "whiskconfig.conf", "limit-range.yaml", "device-plugin.yaml"},
	Docker:       {"whiskconfig.conf"},
}

// Files are the files for the admin of the cluster. It returns Invalid for machines that cannot be divided.
func (m Machines) Files() ([]File, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	all, err := template.New("").ParseFS(templates, "*.tmpl")
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Internal, Op: "write GPU files", Err: err}
	}
	var out []File
	for _, name := range filesOfRoute[m.Route] {
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
		return bad("--gpus 2 --gpu-memory 16GB --machines 2",
			"machines, GPUs, their memory and an action's memory must be positive")
	case m.Share <= 0 || m.Share > m.Memory:
		return bad("disdel estimate JOB shows the GPU memory of a train action",
			"an action's share of a GPU, %v, must be positive and at most the GPU's %v", m.Share, m.Memory)
	}
	return nil
}

// PerGPU is how many train actions share a GPU.
func (m Machines) PerGPU() int { return int(m.Memory / m.Share) }

// PerMachine is how many train actions run on a machine.
func (m Machines) PerMachine() int { return m.GPUs * m.PerGPU() }

// Pool is the memory of an invoker's pool in MB: as many train actions fit into it as on the machine's GPUs.
func (m Machines) Pool() string { return fmt.Sprintf("%dm", m.PerMachine()*m.Action.MB()) }

// ClientFlags are the flags that clients need, because the cluster's API does not report GPUs.
func (m Machines) ClientFlags() string {
	return fmt.Sprintf("--gpus %d --gpu-memory %dMB", m.Count*m.GPUs, m.Memory/disdel.MB)
}

// Kubernetes tells whether a template makes pods.
func (m Machines) Kubernetes() bool { return m.Route != Docker }

// UsesRuntimeClass tells whether pods use GPUs by a runtime class.
func (m Machines) UsesRuntimeClass() bool { return m.Route == RuntimeClass }
