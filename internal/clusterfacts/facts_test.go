package clusterfacts

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

func Example() {
	home, _ := os.MkdirTemp("", "facts-")
	defer os.RemoveAll(home)
	if err := Write(home, "https://whisk.example", Facts{Pool: 8 * disdel.GB, Processors: 4, Nodes: 2}); err != nil {
		fmt.Println(err)
	}
	f, known, _ := Read(home, "https://whisk.example/")
	fmt.Println(known, f.Pool, f.Shared())
	// Output: true 8.00 GB 8
}

func TestEveryClusterHasFactsOfItsOwn(t *testing.T) {
	home, yes := t.TempDir(), true
	one, two := Facts{Pool: disdel.GB, AtLeast: true}, Facts{Processors: 8, TellsOOM: &yes}
	for host, f := range map[string]Facts{"http://one": one, "http://two": two} {
		if err := Write(home, host, f); err != nil {
			t.Fatal(err)
		}
	}
	for host, want := range map[string]Facts{"http://one": one, "http://two": two, "http://three": {}} {
		got, known, err := Read(home, host)
		if diff := cmp.Diff(want, got); diff != "" || err != nil || known != (host != "http://three") {
			t.Errorf("%s: %v, %v\n%s", host, known, err, diff)
		}
	}
}

func TestADamagedFileIsToldAndWrittenAnew(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(File(home), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(home, "http://one"); disdel.KindOf(err) != disdel.Corrupt {
		t.Errorf("%v", err)
	}
	if err := Write(home, "http://one", Facts{Nodes: 1}); err != nil {
		t.Fatal(err)
	}
	if f, known, err := Read(home, "http://one"); err != nil || !known || f.Nodes != 1 {
		t.Errorf("%+v, %v, %v", f, known, err)
	}
}
