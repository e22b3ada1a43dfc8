package couchlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/boltcheck"
)

// Repaired is what a repair came to.
type Repaired struct {
	Kept  int    // documents of the new file
	Aside string // where the damaged file is now
}

// Repair makes a new file at path of the documents that can be read in the old one, which it puts aside. Of a document
// it takes the newest state that is whole; all of them go into one database. It returns NotFound where there is no
// file, and leaves the old file where it is if anything fails.
func Repair(path, name string) (Repaired, error) {
	fail := func(err error) (Repaired, error) {
		return Repaired{}, &disdel.Error{Kind: disdel.Unavailable, Op: "repair history", Msg: path, Err: plain(err)}
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return Repaired{}, &disdel.Error{Kind: disdel.NotFound, Op: "repair history", Msg: "there is no " + path}
	}
	values, err := newestStates(path)
	if err != nil {
		return fail(err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".history-*")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "new")
	if err := opened(made, &bbolt.Options{}, time.Second,
		func(db *bbolt.DB) error { return fillNew(db, name, values) }); err != nil {
		return fail(err)
	}
	out := Repaired{Aside: path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000")}
	for _, v := range values {
		if !v.Deleted {
			out.Kept++
		}
	}
	if err := os.Link(path, out.Aside); err != nil {
		return fail(err)
	}
	if err := os.Rename(made, path); err != nil {
		return fail(errors.Join(err, os.Remove(out.Aside)))
	}
	return out, nil
}

// newestStates is the newest whole state of every document of a file.
func newestStates(path string) (map[string]stored, error) {
	out := map[string]stored{}
	err := boltcheck.Scan(path, func(key, value []byte) {
		if len(key) == 0 || bytes.IndexByte(key, 0) >= 0 { // a catalog's
			return
		}
		d, _, err := parse(key, value)
		if before, there := out[string(key)]; err != nil || there && before.Seq >= d.Seq {
			return
		}
		d.Body = slices.Clone(d.Body)
		out[string(key)] = d
	})
	return out, err
}

func fillNew(db *bbolt.DB, name string, values map[string]stored) error {
	return db.Update(func(tx *bbolt.Tx) error {
		docs, err := tx.CreateBucket([]byte(name))
		if err != nil {
			return err
		}
		c, err := openCatalog(tx, name)
		if err != nil {
			return err
		}
		last := uint64(0)
		for id, d := range values {
			last = max(last, d.Seq)
			value := d.value(id)
			if err := docs.Put([]byte(id), value); err != nil {
				return fmt.Errorf("document %q: %w", id, err)
			}
			if err := c.add(id, d, value); err != nil {
				return err
			}
		}
		if err := docs.SetSequence(last); err != nil {
			return err
		}
		return c.flush(tx)
	})
}
