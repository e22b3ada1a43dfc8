package robust

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// unpacked is a home that an earlier version left.
func unpacked(t *testing.T, archive string) disdelIn {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatal(h, err)
		}
		path := filepath.Join(home, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			var data []byte
			data, err = io.ReadAll(files)
			err = errors.Join(err, os.WriteFile(path, data, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return disdelIn{path: program(t), home: home}
}

// oldHomes opens what earlier versions left: their records are listed and explained, their models infer, a job that was
// interrupted goes on from its checkpoint, new jobs learn from the old ones, and a platform knows its actions.
func oldHomes(c *trial) {
	archives, err := filepath.Glob("testdata/home-*.tar.gz")
	if err != nil || len(archives) == 0 {
		c.t.Fatal("no home of an earlier version", err)
	}
	for _, archive := range archives {
		c.t.Run(filepath.Base(archive), func(t *testing.T) { oldHome(t, unpacked(t, archive)) })
	}
}

func oldHome(t *testing.T, d disdelIn) {
	ok := func(args ...string) ran {
		t.Helper()
		r := d.run(t, patience, args...)
		if r.code != 0 {
			t.Errorf("%v: %v", args, r)
		}
		return r
	}
	byName := map[string]disdel.Record{}
	for _, r := range records(t, ok("history", "-o", "json")) {
		byName[r.Job.Metadata.Name] = r
	}
	for _, name := range []string{"digits-cnn", "own-layers", "diverged", "interrupted", "stopped"} {
		rec, there := byName[name]
		if !there {
			t.Errorf("the record of %q is gone", name)
			continue
		}
		ok("report", string(rec.ID))
		ok("history", "show", string(rec.ID))
	}
	ok("dataset", "show", "digits")
	ok("model", "list")
	row := filepath.Join(d.home, "row.json")
	if err := os.WriteFile(row, []byte(ok("dataset", "sample", "digits", "--row", "3").out), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"digits-cnn", "own-layers"} {
		ok("model", "show", model+":v1")
		ok("infer", model, "--input", row)
	}
	resumed := record(t, ok("resume", string(byName["interrupted"].ID), "-o", "json", "-q"))
	if resumed.Status != disdel.StatusSucceeded || resumed.Accuracy < 0.95 {
		t.Errorf("the interrupted job: %v, accuracy %v", resumed.Status, resumed.Accuracy)
	}
	ok("submit", d.job(t, "digits-cnn", shortJob(2)), "-q")
	ok("history", "-o", "json")
	if db := filepath.Join(d.home, "platform", "platform.db"); exists(db) {
		p := platformUp(t, d)
		p.cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it is waited for
		if r := p.wait(t, patience); strings.Contains(r.err, "panic") {
			t.Error(r)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
