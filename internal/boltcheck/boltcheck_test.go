package boltcheck_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/boltcheck"
)

func TestWhatWasSealedIsReadOrRefused(t *testing.T) {
	key, value := []byte("job-1"), []byte(`{"a":1}`)
	data := boltcheck.Seal(key, value)
	if got, was, err := boltcheck.Open(key, data); err != nil || !was || !bytes.Equal(got, value) {
		t.Errorf("%s, %v, %v", got, was, err)
	}
	if got, was, err := boltcheck.Open(key, value); err != nil || was || !bytes.Equal(got, value) {
		t.Errorf("without a seal: %s, %v, %v", got, was, err)
	}
	if _, _, err := boltcheck.Open([]byte("job-2"), data); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("under another key: %v", err)
	}
	for bit := range 8 * len(data) {
		damaged := bytes.Clone(data)
		damaged[bit/8] ^= 1 << (bit % 8)
		if got, was, err := boltcheck.Open(key, damaged); err == nil && was {
			t.Errorf("bit %d: %q passes", bit, got)
		}
	}
	for n := 4; n < len(data); n++ {
		if _, _, err := boltcheck.Open(key, data[:n]); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
}

func TestAPanicNamesTheFile(t *testing.T) {
	for text, f := range map[string]func() error{
		"page 7":   func() error { panic("page 7 is none") },
		"lies":     func() error { return &disdel.Error{Kind: disdel.Corrupt, Msg: "the value lies"} },
		"nil poin": func() error { var p *page; return p.err },
	} {
		err := boltcheck.Guard("/home/x.db", f)
		if !errors.Is(err, disdel.Corrupt) || !strings.Contains(err.Error(), "/home/x.db is damaged") ||
			!strings.Contains(err.Error(), text) {
			t.Errorf("%v", err)
		}
	}
	other := errors.New("other")
	if err := boltcheck.Guard("x", func() error { return other }); err != other {
		t.Errorf("an error of another kind became %v", err)
	}
}

type page struct{ err error }

// file makes a file of bbolt's with so many values, and returns its bytes.
func file(t *testing.T, values int) (string, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < values; from += 50 {
		err := db.Update(func(tx *bbolt.Tx) error {
			for i := from; i < from+50; i++ {
				b, err := tx.CreateBucketIfNotExists(fmt.Appendf(nil, "bucket%d", i%2))
				if err != nil {
					return err
				}
				if err := b.Put(fmt.Appendf(nil, "key-%06d", i*7919%values),
					bytes.Repeat([]byte{byte(i)}, 100+i%7000)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, data
}

func TestWholeFilesPass(t *testing.T) {
	for _, n := range []int{0, 50, 1000} {
		path, _ := file(t, n)
		if err := boltcheck.Check(path, time.Second); err != nil {
			t.Errorf("%d values: %v", n, err)
		}
		if err := boltcheck.CheckLeaves(path, time.Second); err != nil {
			t.Errorf("%d values and their leaves: %v", n, err)
		}
	}
	if err := boltcheck.Check(filepath.Join(t.TempDir(), "none"), time.Second); err != nil {
		t.Error(err)
	}
}

// What could end the process, or lead bbolt in circles, is refused before bbolt sees it.
func TestDamageIsNamed(t *testing.T) {
	path, data := file(t, 1000)
	refused := func(what string, damaged []byte) {
		t.Helper()
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := boltcheck.Check(path, time.Second); !errors.Is(err, disdel.Corrupt) ||
			!strings.Contains(err.Error(), path+" is damaged") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("half of it", data[:len(data)/2])
	refused("one page", data[:4096])
	refused("no bbolt file", bytes.Repeat([]byte("text "), 10000))
	for _, bit := range []int{16 * 8, 32*8 + 3, 48 * 8, 4096*8 + 64*8} {
		damaged := bytes.Clone(data)
		damaged[bit/8] ^= 1 << (bit % 8)
		refused(fmt.Sprintf("bit %d", bit), damaged)
	}
}

// Whatever is in the file, the check answers.
func TestNoDamagePanics(t *testing.T) {
	path, data := file(t, 300)
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		damaged := bytes.Clone(data)
		at := 8192 + random.IntN(len(data)-8192)
		for i := range 1 + random.IntN(200) {
			if at+i < len(damaged) {
				damaged[at+i] = byte(random.Uint32())
			}
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := boltcheck.Check(path, time.Second); err != nil && !errors.Is(err, disdel.Corrupt) {
			t.Errorf("%v", err)
		}
	}
}

func TestWhoWritesIsWaitedFor(t *testing.T) {
	path, _ := file(t, 50)
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := boltcheck.Check(path, 0); !errors.Is(err, boltcheck.ErrBusy) {
		t.Errorf("%v", err)
	}
}

// Leaves whose elements, keys or places are not what they were are found before bbolt walks them.
func TestDamagedLeavesAreFound(t *testing.T) {
	path, whole := file(t, 1000)
	const page = 4096
	found := 0
	for at := 0; at+page <= len(whole); at += page {
		flags, count := whole[at+8], int(whole[at+10])|int(whole[at+11])<<8
		if flags != 0x02 || count < 2 || bytes.Contains(whole[at:at+page], []byte("bucket")) {
			continue
		}
		for name, change := range map[string]func(p []byte){
			"more elements": func(p []byte) { p[11] ^= 0x40 }, "an element elsewhere": func(p []byte) { p[16+4+2] ^= 0x10 },
			"a longer key": func(p []byte) { p[16+8+3] ^= 0x20 }, "a bucket": func(p []byte) { p[16] ^= 1 },
			"goes on for ever": func(p []byte) { p[15] ^= 1 },
		} {
			data := bytes.Clone(whole)
			change(data[at : at+page])
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := boltcheck.CheckLeaves(path, time.Second); errors.Is(err, disdel.Corrupt) &&
				strings.Contains(err.Error(), path) {
				found++
			} else if boltcheck.Check(path, time.Second) == nil && used(t, path, whole, at) {
				t.Errorf("%s on page %d: %v", name, at/page, err)
			}
		}
		if found > 50 {
			return
		}
	}
	if found == 0 {
		t.Error("no leaf was found to damage")
	}
}

// used tells whether a page of a file is reached: one that was freed may be anything.
func used(t *testing.T, path string, whole []byte, at int) bool {
	t.Helper()
	data := bytes.Clone(whole)
	data[at] ^= 1 // its own number
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return boltcheck.CheckLeaves(path, time.Second) != nil
}
