package platform

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
)

// damagedState fills a store and returns its file's bytes.
func damagedState(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	s, err := openStore(dir, true, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		err := s.update(func(t tx) error {
			a := &action{
				header: header{Namespace: "guest", Name: fmt.Sprintf("a%02d", i), Version: "0.0.1"},
				Exec:   execSpec{Kind: "disdel:1", Code: strings.Repeat(fmt.Sprint(i), 500*i)},
			}
			return t.putAction(a)
		})
		if err == nil {
			err = s.saveRecord(&activation{
				Namespace: "guest", Name: fmt.Sprintf("a%02d", i), ActivationID: fmt.Sprintf("%032x", i),
				Start: int64(1000 + i), Logs: []string{strings.Repeat("x", 100*i)},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "platform.db"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// told reads everything of a state, as text.
func told(dir string) (string, error) {
	s, err := openStore(dir, true, 1000)
	if err != nil {
		return "", err
	}
	defer s.close()
	var out strings.Builder
	err = s.view(func(t tx) error {
		list, err := actionsUnder(t, "guest")
		if err != nil {
			return err
		}
		for _, a := range list {
			whole, err := s.actionWithCode(t, a.path())
			if err != nil {
				return err
			}
			if whole == nil {
				return &disdel.Error{Kind: disdel.Corrupt, Msg: s.path + ": no action " + a.path()}
			}
			fmt.Fprintf(&out, "%s %s %s\n", whole.Name, whole.Version, whole.Exec.Code)
		}
		var ids []string
		if err := t.newest("guest", 0, 1<<62,
			func(v *summary) bool { ids = append(ids, v.ActivationID); return true }); err != nil {
			return err
		}
		for _, id := range ids {
			v, err := get[activation](t, records, "guest\x00"+id)
			if err != nil {
				return err
			}
			if v == nil {
				return &disdel.Error{Kind: disdel.Corrupt, Msg: s.path + ": no record of " + id}
			}
			fmt.Fprintf(&out, "%s %s %d %s\n", v.ActivationID, v.Name, v.Start, v.Logs)
		}
		return nil
	})
	return out.String(), err
}

// Whatever becomes of the file, nothing that was not stored is told, no stack trace is, and what is damaged is named:
// flipped bits, pages written over, the end cut off.
func TestADamagedStateIsNeverBelieved(t *testing.T) {
	race.SkipSequential(t)
	whole := damagedState(t)
	parent, n, path := t.TempDir(), 0, ""
	read := func(data []byte) (string, error) {
		n++ // a file of its own each time: bbolt keeps its lock where it panics, as its process does not go on
		dir := filepath.Join(parent, fmt.Sprint(n))
		path = filepath.Join(dir, "platform.db")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return told(dir)
	}
	want, err := read(whole)
	if err != nil || strings.Count(want, "\n") != 80 {
		t.Fatalf("%d lines, %v", strings.Count(want, "\n"), err)
	}
	lines := map[string]bool{}
	for line := range strings.SplitSeq(want, "\n") {
		lines[line] = true
	}
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 0))
	refused, less := 0, 0
	try := func(what string, data []byte) {
		got, err := read(data)
		switch {
		case err == nil && got == want:
		case err != nil:
			refused++
			if !errors.Is(err, disdel.Corrupt) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s (seed %d): not named: %v", what, seed, err)
			}
		default:
			less++
			for line := range strings.SplitSeq(got, "\n") {
				if !lines[line] {
					t.Errorf("%s (seed %d): another truth: %.100s", what, seed, line)
					return
				}
			}
		}
	}
	flips := 200
	if testing.Short() {
		flips = 60
	}
	for range flips {
		data := append([]byte{}, whole...)
		at := r.IntN(len(data))
		data[at] ^= 1 << r.IntN(8)
		try(fmt.Sprintf("a bit of byte %d", at), data)
	}
	for range flips / 4 {
		data := append([]byte{}, whole...)
		at := r.IntN(len(data)/4096) * 4096
		for i := range 4096 {
			data[at+i] = byte(r.Uint32())
		}
		try(fmt.Sprintf("the page at %d", at), data)
		try(fmt.Sprintf("cut at %d", at), whole[:at+r.IntN(4096)])
	}
	t.Logf("%d damages refused, %d told less than there was", refused, less)
	if refused == 0 || less > refused/10 {
		t.Errorf("%d damages refused, %d told less than there was", refused, less)
	}
}

// What was stored before there were checksums is read, and gets one when it is written again.
func TestAStateWithoutChecksumsIsRead(t *testing.T) {
	s := tempStore(t, 10)
	err := s.update(func(t tx) error {
		if err := t.bucket(counts).Put([]byte("guest"), []byte{0, 0, 0, 0, 0, 0, 0, 3}); err != nil {
			return err
		}
		return t.bucket(packages).Put([]byte("guest/p"), []byte(`{"namespace":"guest","name":"p"}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	s.view(func(x tx) error {
		v, err := get[pkg](x, packages, "guest/p")
		if err != nil || v == nil || v.Name != "p" || x.count("guest") != 3 {
			t.Errorf("%v, %v, %d", v, err, x.count("guest"))
		}
		return nil
	})
}

// A client is told which file is damaged, and the rest goes on.
func TestADamagedValueIsNamedToTheClient(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/packages/p", `{"parameters":[{"key":"a","value":1}]}`)
	must(t, p, "PUT", "_/packages/q", `{}`)
	err := p.store.update(func(t tx) error {
		data := append([]byte{}, t.bucket(packages).Get([]byte("guest/p"))...)
		data[len(data)-3] ^= 1
		return t.bucket(packages).Put([]byte("guest/p"), data)
	})
	if err != nil {
		t.Fatal(err)
	}
	got := ask(t, p, p.AuthKey(), "GET", "_/packages/p", "")
	if got.status != 500 || !strings.Contains(got.text(), "platform.db is damaged") ||
		!strings.Contains(got.text(), "guest/p") {
		t.Errorf("%d %s", got.status, got.body)
	}
	must(t, p, "GET", "_/packages/q", "")
}
