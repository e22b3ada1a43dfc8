package kernel

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/disdel/disdel"
)

// linux is a root folder with what Linux tells of a processor.
func linux(t *testing.T, files map[string]string) string {
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

func TestAMachineIsRead(t *testing.T) {
	const caches = "sys/devices/system/cpu/cpu0/cache/"
	root := linux(t, map[string]string{
		"proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n" +
			"model name\t: Some Xeon\n\nprocessor\t: 1\nvendor_id\t: Other\n",
		caches + "index0/size": "48K\n", caches + "index0/level": "1\n", caches + "index0/type": "Data\n",
		caches + "index1/size": "32K\n", caches + "index1/level": "1\n", caches + "index1/type": "Instruction\n",
		caches + "index2/size": "2048K\n", caches + "index2/level": "2\n", caches + "index2/type": "Unified\n",
		caches + "index3/size": "odd\n", caches + "index3/level": "3\n", caches + "index3/type": "Unified\n",
	})
	want := Machine{
		Vendor: "GenuineIntel", Family: 6, Model: 143, Name: "Some Xeon", First: 48 * disdel.KB, Second: 2 * disdel.MB,
	}
	if got := ReadMachine(root); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	arm := linux(t, map[string]string{
		"proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n" +
			"CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\nprocessor\t: 1\n",
	})
	if got, want := ReadMachine(arm), (Machine{Vendor: "0x41", Family: 8, Model: 0xd0c}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := ReadMachine(t.TempDir()); got != (Machine{}) {
		t.Errorf("of nothing: %+v", got)
	}
}
