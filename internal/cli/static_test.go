package cli

import (
	"debug/elf"
	"os"
	"strings"
	"testing"
)

// The released program is one file: it asks for no loader and no library, and says so.
func TestTheProgramIsStatic(t *testing.T) {
	environment := []string{"CGO_ENABLED=0"} // as make build does
	if os.Getenv("CGO_ENABLED") == "0" {
		environment = nil // so is the program of all tests
	}
	d := build(t, environment...)
	f, err := elf.Open(d.path)
	if err != nil {
		t.Skip(err) // no ELF here
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it asks for a loader")
		}
	}
	if libraries, _ := f.ImportedLibraries(); len(libraries) > 0 {
		t.Errorf("it asks for %v", libraries)
	}
	if out, errs, code := d.run("version"); code != 0 || !strings.Contains(out, "statically") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
