package kernel

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// Machine is what a processor says of itself. What it does not say is "" or 0. An arm64 one has numbers for its vendor,
// its architecture and its model, and no name.
type Machine struct {
	Vendor string       `json:"vendor,omitempty"` // AuthenticAMD, GenuineIntel; 0x41, which is Arm
	Family int          `json:"family,omitempty"`
	Model  int          `json:"model,omitempty"`
	Name   string       `json:"name,omitempty"`
	First  disdel.Bytes `json:"firstCacheBytes,omitempty"` // of data, of a core
	Second disdel.Bytes `json:"secondCacheBytes,omitempty"`
	Third  disdel.Bytes `json:"thirdCacheBytes,omitempty"` // shared
}

// ReadMachine reads what Linux tells of the first processor under root, "/" but in tests.
func ReadMachine(root string) (m Machine) {
	text, _ := os.ReadFile(filepath.Join(root, "proc/cpuinfo")) // what cannot be read is not known
	first, _, _ := bytes.Cut(text, []byte("\n\n"))
	for line := range strings.Lines(string(first)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "vendor_id", "CPU implementer":
			m.Vendor = value
		case "cpu family", "CPU architecture":
			m.Family, _ = strconv.Atoi(value)
		case "model", "CPU part":
			part, _ := strconv.ParseInt(value, 0, 32)
			m.Model = int(part)
		case "model name":
			m.Name = value
		}
	}
	caches, _ := filepath.Glob(filepath.Join(root, "sys/devices/system/cpu/cpu0/cache/index*"))
	for _, c := range caches {
		m.cache(c)
	}
	return m
}

// cache reads the folder of one cache.
func (m *Machine) cache(folder string) {
	word := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(folder, name))
		return strings.TrimSpace(string(text))
	}
	n, err := strconv.Atoi(strings.TrimSuffix(word("size"), "K"))
	if err != nil || n < 0 || word("type") == "Instruction" {
		return
	}
	size := disdel.Bytes(n) << 10
	switch word("level") {
	case "1":
		m.First = size
	case "2":
		m.Second = size
	case "3":
		m.Third = size
	}
}
