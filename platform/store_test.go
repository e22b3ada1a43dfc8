package platform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/boltcheck"
	"github.com/disdel/disdel/internal/test/race"
)

// What was created, and what ran, is there after a restart; and a folder belongs to one platform at a time.
func TestAStateInADataFolderSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	durable := func(c *Config) { c.DataDir = dir }
	p := start(t, durable)
	must(t, p, "PUT", "_/packages/p", `{"parameters":[{"key":"a","value":1}]}`)
	must(t, p, "PUT", "_/actions/p/a", code("mirror", ""))
	must(t, p, "PUT", "_/triggers/t", `{}`)
	must(t, p, "PUT", "_/rules/r", `{"trigger":"/_/t","action":"/_/p/a"}`)
	id := must(t, p, "POST", "_/actions/p/a?blocking=true", `{"b":2}`).at("activationId").(string)

	cfg := p.cfg
	if _, err := New(cfg); disdel.KindOf(err) != disdel.Unavailable {
		t.Errorf("a second platform on the folder: %v", err)
	}
	if err := p.Close(context.Background()); err != nil {
		t.Fatal(err)
	}

	p = start(t, durable)
	for path, want := range map[string]any{
		"_/actions/p/a": "exec.code=x", "_/packages/p": "parameters.0.value=1",
		"_/rules/r": "status=active", "_/triggers/t": "version=0.0.1", "_/activations/" + id: "response.result.b=2",
	} {
		key, value, _ := strings.Cut(want.(string), "=")
		if got := must(t, p, "GET", path, ""); fmt.Sprint(got.at(key)) != value {
			t.Errorf("%s after the restart: %s", path, got.body)
		}
	}
	if got := must(t, p, "POST", "_/actions/p/a?blocking=true&result=true", `{}`); got.body != `{"a":1}` {
		t.Errorf("the action after the restart: %s", got.body)
	}
	if got := must(t, p, "GET", "_/activations?count=true", ""); got.at("activations") != 2.0 {
		t.Errorf("count after the restart: %s", got.body)
	}
}

func TestWithoutADataFolderNothingIsLeft(t *testing.T) {
	p := start(t, nil) // its clean-up looks for what is left
	if _, err := os.Stat(filepath.Join(p.temp.dir, "platform.db")); err != nil {
		t.Error(err)
	}
}

func tempStore(t *testing.T, kept int) *store {
	t.Helper()
	s, err := openStore(t.TempDir(), false, kept)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func fileMany(t *testing.T, s *store, ns string, n int) {
	t.Helper()
	err := s.update(func(t tx) error {
		for i := range n {
			a := &activation{
				Namespace: ns, Name: "a", Version: "0.0.1", ActivationID: fmt.Sprintf("%032x", i),
				Start: int64(1000 + i), Response: response{Status: statusSuccess},
			}
			if err := s.putRecord(t, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The newest 30 of very many: the walk passes 30 records, not all.
func TestTheNewestOfManyActivationsAreReadAlone(t *testing.T) {
	race.SkipSequential(t)
	const many = 100_000
	s := tempStore(t, many)
	fileMany(t, s, "ns", many)
	fileMany(t, s, "other", 3)
	passed, last := 0, int64(0)
	err := s.view(func(t tx) error {
		return t.newest("ns", 0, 1<<62, func(v *summary) bool {
			passed++
			last = v.Start
			return passed < 30
		})
	})
	if err != nil || passed != 30 || last != 1000+many-30 {
		t.Errorf("passed %d, the last began at %d, %v", passed, last, err)
	}
}

// Bounds of time are inclusive on both sides, and no other namespace's records are seen.
func TestActivationsAreFoundByTime(t *testing.T) {
	s := tempStore(t, 100)
	for _, ns := range []string{"a", "b", "c"} {
		fileMany(t, s, ns, 10)
	}
	for _, c := range []struct{ since, upto, want int64 }{
		{0, 1 << 62, 10},
		{1003, 1005, 3},
		{1009, 1009, 1},
		{1010, 2000, 0},
		{0, 999, 0},
		{0, 1000, 1},
	} {
		var n int64
		if err := s.view(func(t tx) error {
			return t.newest("b", c.since, c.upto, func(v *summary) bool {
				if v.Namespace == "b" {
					n++
				}
				return true
			})
		}); err != nil || n != c.want {
			t.Errorf("%d to %d: %d, want %d, %v", c.since, c.upto, n, c.want, err)
		}
	}
}

// Beyond the bound the oldest go, of the same namespace alone, whole and from the lists.
func TestTheOldestActivationsGoFirst(t *testing.T) {
	s := tempStore(t, 5)
	fileMany(t, s, "other", 3)
	fileMany(t, s, "ns", 12)
	var starts []int64
	err := s.view(func(t tx) error {
		if n := t.bucket(records).Stats().KeyN; n != 8 {
			return fmt.Errorf("%d records, want 5 and 3", n)
		}
		if n, m := t.count("ns"), t.count("other"); n != 5 || m != 3 {
			return fmt.Errorf("counts %d and %d", n, m)
		}
		return t.newest("ns", 0, 1<<62, func(v *summary) bool { starts = append(starts, v.Start); return true })
	})
	if err != nil || fmt.Sprint(starts) != "[1011 1010 1009 1008 1007]" {
		t.Errorf("%v, %v", starts, err)
	}
}

// A list of actions reads no code, and an update is seen by the next invocation at once.
func TestCodeLiesApartFromItsAction(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/actions/a", `{"exec":{"kind":"disdel:1","code":"CODE","main":"echo"},"limits":{"memory":128}}`)
	err := p.store.view(func(t tx) error {
		if data := t.bucket(actions).Get([]byte("guest/a")); strings.Contains(string(data), "CODE") {
			return fmt.Errorf("code within %s", data)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, main := range []string{"mirror", "app-error"} {
		must(t, p, "PUT", "_/actions/a?overwrite=true", code(main, ""))
		if got := ask(t, p, p.AuthKey(), "POST", "_/actions/a?blocking=true&result=true",
			`{}`); (got.status == 200) != (main == "mirror") {
			t.Errorf("updated to %s: %d %s", main, got.status, got.body)
		}
	}
	must(t, p, "DELETE", "_/actions/a", "")
	if got := ask(t, p, p.AuthKey(), "POST", "_/actions/a", `{}`); got.status != 404 {
		t.Errorf("after its deletion: %d", got.status)
	}
}

// A stored value that a field's own reader refuses is damage, and not the answer to a request.
func TestAStoredValueWithABadFieldIsDamage(t *testing.T) {
	key := []byte("_/a")
	_, err := decode[pkg](key, boltcheck.Seal(key, []byte(`{"binding":3}`)))
	var refusal apiError
	if disdel.KindOf(err) != disdel.Corrupt || errors.As(err, &refusal) {
		t.Errorf("%v, want Corrupt and no refusal", err)
	}
}
