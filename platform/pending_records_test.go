package platform

import (
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
)

// An answer does not wait for the disk. Its record is in every list from then on, once, and outlives a kill, whether
// the disk took it before or not.
func TestAnAnswerDoesNotWaitForTheDisk(t *testing.T) {
	dir := t.TempDir()
	p := start(t, func(c *Config) { c.DataDir, c.PoolMemory = dir, 256*disdel.MB })
	newTestAction(t, p, "echo", 60000, 128)
	first := must(t, p, "POST", "_/actions/echo?blocking=true", `{"a":1}`).at("activationId").(string)
	wait.Until(t, "the first record on the disk", func() bool { return len(p.pending.newest("guest")) == 0 })

	busy, err := p.store.db.Begin(true) // nothing is written before it ends
	if err != nil {
		t.Fatal(err)
	}
	second := must(t, p, "POST", "_/actions/echo?blocking=true", `{"a":2}`).at("activationId").(string)
	both := func(t *testing.T, p *Platform) {
		t.Helper()
		for id, want := range map[string]float64{first: 1, second: 2} {
			if got := must(t, p, "GET", "_/activations/"+id, ""); got.at("response.result.got.a") != want {
				t.Errorf("%s: %s", id, got.body)
			}
		}
		for _, list := range []string{"_/activations", "_/activations?docs=true&name=echo"} {
			got := must(t, p, "GET", list, "")
			if got.at("0.activationId") != second || got.at("1.activationId") != first || got.at("2") != nil {
				t.Errorf("%s: %s", list, got.body)
			}
		}
		for _, count := range []string{"_/activations?count=true", "_/activations?count=true&name=echo"} {
			if got := must(t, p, "GET", count, ""); got.at("activations") != 2.0 {
				t.Errorf("%s: %s", count, got.body)
			}
		}
	}
	both(t, p)
	before := copyData(t, dir)
	if err := busy.Rollback(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the second record on the disk", func() bool { return len(p.pending.newest("guest")) == 0 })
	both(t, p)
	for name, left := range map[string]string{"before": before, "after": copyData(t, dir)} {
		t.Run("killed "+name, func(t *testing.T) {
			both(t, start(t, func(c *Config) { c.DataDir = left }))
		})
	}
}

// A list that was begun while a record was on its way to the disk has it once, whichever of the two it finds.
func TestARecordThatReachesTheDiskMeanwhileIsListedOnce(t *testing.T) {
	p := start(t, func(c *Config) { c.DataDir = t.TempDir() })
	record := &activation{Namespace: "guest", Name: "a", ActivationID: newID(), Start: 1000, Logs: []string{}}
	if !p.pending.enqueue(record) {
		t.Fatal("no room for one record")
	}
	err := p.viewRecords("guest", func(_ tx, waiting []*activation) error {
		if len(waiting) != 1 {
			t.Errorf("%d records wait, want 1", len(waiting))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.store.saveRecord(record); err != nil {
		t.Fatal(err)
	}
	if got := must(t, p, "GET", "_/activations?count=true", ""); got.at("activations") != 1.0 {
		t.Errorf("%s", got.body)
	}
	if got := must(t, p, "GET", "_/activations", ""); got.at("0.activationId") != record.ActivationID ||
		got.at("1") != nil {
		t.Errorf("%s", got.body)
	}
}

// Who ends while too many records are on their way to the disk waits for its own.
func TestOnlySoManyRecordsAreOnTheirWay(t *testing.T) {
	var u pendingRecords
	for range maxQueued {
		if !u.enqueue(&activation{}) {
			t.Fatal("refused too early")
		}
	}
	if u.enqueue(&activation{}) {
		t.Error("more are announced than may be")
	}
}
