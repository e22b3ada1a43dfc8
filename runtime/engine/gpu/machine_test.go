package gpu_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/gpu"
)

// machine is a file system with what a driver shows of itself.
func machine(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

var whole = map[string]string{
	"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  " +
		"Tue Sep 23 10:11:16 UTC 2025\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n",
	"proc/driver/nvidia/gpus/0000:65:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 120\n",
	"proc/driver/nvidia/gpus/0000:17:00.0/information": "Model: \t\t Tesla V100\n",
	"usr/lib/x86_64-linux-gnu/libcuda.so.1":            "",
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	seen := func() ([]gpu.Device, error) {
		return []gpu.Device{{Name: "NVIDIA H100", Memory: 80 * disdel.GB, Capability: "9.0"}}, nil
	}
	none := func() ([]gpu.Device, error) {
		return nil, &disdel.Error{Kind: disdel.Unavailable, Msg: "CUDA sees no device"}
	}
	without := func(name string) map[string]string {
		out := map[string]string{}
		for k, v := range whole {
			if !strings.Contains(k, name) {
				out[k] = v
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		files   map[string]string
		engine  bool
		devices func() ([]gpu.Device, error)
		missing []string // words of each
	}{
		"nothing":    {nil, false, nil, []string{"driver", "engine"}},
		"no engine":  {whole, false, nil, []string{"engine"}},
		"no library": {without("libcuda"), true, none, []string{"libcuda.so.1", "sees no device"}},
		"hidden":     {whole, true, none, []string{"sees no device"}},
		"whole":      {whole, true, seen, nil},
	} {
		r := gpu.Inspect(gpu.MachineConfig{Root: machine(t, c.files), Engine: c.engine, Devices: c.devices})
		if len(r.Missing) != len(c.missing) {
			t.Errorf("%s: %q is missing, want %q", name, r.Missing, c.missing)
			continue
		}
		for i, words := range c.missing {
			if !strings.Contains(r.Missing[i], words) {
				t.Errorf("%s: %q is missing, want %q", name, r.Missing[i], words)
			}
		}
		if c.files["proc/driver/nvidia/version"] != "" && (r.Driver != "580.95.05" || len(r.Cards) != 2) {
			t.Errorf("%s: driver %q, cards %v", name, r.Driver, r.Cards)
		}
	}
}

// What hides devices from programs is told, and where it hides all, that is what is missing.
func TestHiddenDevicesAreTold(t *testing.T) {
	for list, missing := range map[string]int{"": 1, "-1": 0, "0": 0} {
		r := gpu.Inspect(gpu.MachineConfig{
			Root: machine(t, whole), Engine: true, Visible: &list,
			Devices: func() ([]gpu.Device, error) { return nil, nil },
		})
		var text strings.Builder
		r.Print(&text)
		if len(r.Missing) != missing || !strings.Contains(text.String(), "CUDA_VISIBLE_DEVICES="+list) {
			t.Errorf("%q: %q\n%s", list, r.Missing, text.String())
		}
	}
}

func ExampleMachineReport_Print() {
	gpu.MachineReport{
		Engine: true, Driver: "580.95.05", Library: "/usr/lib64/libcuda.so.1",
		Cards:   []gpu.Card{{Model: "NVIDIA H100 80GB HBM3", Bus: "0000:65:00.0"}},
		Devices: []gpu.Device{{Name: "NVIDIA H100 80GB HBM3", Memory: 80 * disdel.GB, Capability: "9.0"}},
	}.Print(os.Stdout)
	// Output:
	// engine    cuda
	// driver    580.95.05
	// library   /usr/lib64/libcuda.so.1
	// card      NVIDIA H100 80GB HBM3 at 0000:65:00.0
	// device 0  NVIDIA H100 80GB HBM3, 80.0 GB, compute capability 9.0
	// jobs with resources.device: gpu can run here
}
