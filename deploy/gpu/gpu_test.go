package gpu_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/deploy/gpu"
)

var update = flag.Bool("update", false, "write the files in deploy/cluster/gpu anew")

var machines = gpu.Machines{
	Count: 2, GPUs: 1, Memory: 16 * disdel.GB, Share: 4 * disdel.GB, Action: 2 * disdel.GB, Route: gpu.LimitRange,
}

// The files beside the cluster's others are those that are written for two machines with a GPU of 16 GB each.
func TestTheExampleIsWhatIsWritten(t *testing.T) {
	m := machines
	for _, m.Route = range []gpu.Route{gpu.LimitRange, gpu.RuntimeClass} { // the second one's pod template stays
		files, err := m.Files()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := filepath.Join("..", "cluster", "gpu", f.Name)
			if m.Route == gpu.LimitRange && f.Name == "pod-template.yaml" {
				continue
			}
			if *update {
				if err := os.WriteFile(name, []byte(f.Text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if text, err := os.ReadFile(name); err != nil || string(text) != f.Text {
				t.Errorf("%s is not what is written: go test ./deploy/gpu -update (%v)", name, err)
			}
		}
	}
}

// Every route's pods are pods, divide the machine as told, and reach a GPU in one way.
func TestEveryRouteDividesTheMachine(t *testing.T) {
	for _, route := range gpu.Routes() {
		m := machines
		m.Route, m.GPUs = route, 3
		files, err := m.Files()
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, f := range files {
			text.WriteString(f.Text)
			if strings.HasSuffix(f.Name, ".yaml") {
				var v map[string]any
				if err := yaml.Load([]byte(f.Text), &v); err != nil || v["kind"] == nil {
					t.Errorf("%s: %s: %v", route, f.Name, err)
				}
			}
		}
		all := text.String()
		if !strings.Contains(all, "user-memory = 24576m") || !strings.Contains(all, "--gpus 6 --gpu-memory 16384MB") {
			t.Errorf("%s: the pool of twelve actions of 2 GB is missing:\n%s", route, all)
		}
		ways := map[gpu.Route]string{
			gpu.RuntimeClass: "runtimeClassName: nvidia", gpu.LimitRange: "nvidia.com/gpu: 1", gpu.Docker: `gpus: ["all"]`,
		}
		for other, way := range ways {
			if strings.Contains(all, way) != (other == route) {
				t.Errorf("%s: %q is there, or missing", route, way)
			}
		}
	}
}

func TestMachinesThatCannotBeDividedAreRefused(t *testing.T) {
	for name, change := range map[string]func(m *gpu.Machines){
		"no machine": func(m *gpu.Machines) { m.Count = 0 }, "no GPU": func(m *gpu.Machines) { m.GPUs = 0 },
		"no memory":   func(m *gpu.Machines) { m.Memory = 0 },
		"a large one": func(m *gpu.Machines) { m.Share = 17 * disdel.GB },
		"no share":    func(m *gpu.Machines) { m.Share = 0 },
		"no route":    func(m *gpu.Machines) { m.Route = "teleport" },
		"no action":   func(m *gpu.Machines) { m.Action = 0 },
	} {
		m := machines
		change(&m)
		if _, err := m.Files(); disdel.KindOf(err) != disdel.Invalid || disdel.AsError(err).Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ExampleMachines_PerMachine() {
	m := gpu.Machines{GPUs: 2, Memory: 16 * disdel.GB, Share: 5 * disdel.GB, Action: disdel.GB}
	fmt.Println(m.PerMachine(), "train actions in a pool of", m.Pool())
	// Output: 6 train actions in a pool of 6144m
}
