package clusterfacts

import (
	"fmt"
	"os"
	"testing"
	"time"

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

// Another look replaces the known facts. A pool that was measured whole stays if the new look found no bound, unless
// more ran than that pool would hold, or a job has contradicted it.
func TestAWholePoolIsNotReplacedByAPartOfIt(t *testing.T) {
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	whole := Facts{At: day, Pool: 4 * disdel.GB, Nodes: 2, PerMinute: 60}
	doubted := whole
	doubted.Doubts = []Doubt{{Fact: Pool}}
	least := Facts{At: day, Pool: disdel.GB, AtLeast: true}
	later := day.Add(24 * time.Hour)
	atLeast := func(pool disdel.Bytes) Facts { return Facts{At: later, Pool: pool, AtLeast: true} }
	for name, c := range map[string]struct {
		old, found Facts
		pool       disdel.Bytes
		atLeast    bool
		poolAt     time.Time
	}{
		"less, under a quota":        {whole, atLeast(128 * disdel.MB), 4 * disdel.GB, false, day},
		"not measured":               {whole, Facts{At: later}, 4 * disdel.GB, false, day},
		"measured whole":             {whole, Facts{At: later, Pool: disdel.GB}, disdel.GB, false, later},
		"at least more":              {whole, atLeast(8 * disdel.GB), 8 * disdel.GB, true, later},
		"contradicted":               {doubted, atLeast(disdel.GB), disdel.GB, true, later},
		"no bound before":            {least, atLeast(128 * disdel.MB), 128 * disdel.MB, true, later},
		"nothing known":              {Facts{}, Facts{At: later, Pool: disdel.GB}, disdel.GB, false, later},
		"contradicted, not measured": {doubted, Facts{At: later}, 0, false, later},
	} {
		got := Renewed(c.old, c.found)
		if got.Pool != c.pool || got.AtLeast != c.atLeast || !got.PoolFoundAt().Equal(c.poolAt) || !got.At.Equal(later) ||
			len(got.Doubts) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if again := Renewed(got, Facts{At: later.Add(time.Hour)}); !c.atLeast && !again.PoolFoundAt().Equal(c.poolAt) &&
			again.Pool > 0 {
			t.Errorf("%s, and another look: %+v", name, again)
		}
	}
}
