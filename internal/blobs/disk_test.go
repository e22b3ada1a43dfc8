package blobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/disdel/disdel/internal/test/faults"
)

// Whatever call to the disk fails, a blob is there whole or not at all: what was acknowledged can be read, and no
// temporary file is left.
func TestAFailedCallToTheDiskLeavesNoHalfBlob(t *testing.T) {
	ctx := context.Background()
	content := func(key string, version int) []byte {
		return bytes.Repeat(fmt.Appendf(nil, "%s %d ", key, version), 9000)
	}
	faults.FailEveryDiskCall(t, func(dir string, done func(string), failed func(error)) {
		b, err := openFolder(dir)
		if err != nil {
			failed(err)
			return
		}
		made := 0
		for i := range 3 {
			key := fmt.Sprintf("folder/key%d", i)
			for version := range 2 {
				if err := WriteAll(ctx, b, key, content(key, version)); err != nil {
					failed(err)
				} else {
					done(fmt.Sprintf("%s %d", key, version))
				}
			}
			if err := b.Create(ctx, "made/"+key, content(key, 0)); err != nil {
				failed(err)
			} else {
				done(fmt.Sprintf("made/%s 0", key))
				made++
			}
		}
		seen := 0
		for _, err := range b.List(ctx, "made/") {
			if err != nil {
				failed(err)
				return
			}
			seen++
		}
		if seen < made {
			t.Errorf("the list has %d of %d keys, and no error", seen, made)
		}
	}, func(t *testing.T, dir string, done []string) {
		b, err := openFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		newest := map[string]int{}
		for _, what := range done {
			var key string
			var version int
			fmt.Sscan(what, &key, &version) //nolint:errcheck // the test wrote it
			newest[key] = version
		}
		for i := range 3 {
			for _, key := range []string{fmt.Sprintf("folder/key%d", i), fmt.Sprintf("made/folder/key%d", i)} {
				data, err := ReadAll(ctx, b, key)
				version, acknowledged := newest[key]
				whole := err == nil && (bytes.Equal(data, content(strings.TrimPrefix(key, "made/"), 0)) ||
					bytes.Equal(data, content(key, 1)))
				switch {
				case errors.Is(err, fs.ErrNotExist) && !acknowledged:
				case !whole:
					t.Errorf("%s: %d bytes, %v", key, len(data), err)
				case acknowledged && version == 1 && !bytes.Equal(data, content(key, 1)):
					t.Errorf("%s: not the version that was acknowledged", key)
				}
			}
		}
		stuck := 0 // temporary files that cannot be deleted
		if strings.Contains(t.Name(), "unlinkat") {
			stuck = 1
		}
		left, _ := filepath.Glob(filepath.Join(dir, "*", "*"+draftSuffix))
		if more, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*"+draftSuffix)); len(left)+len(more) > stuck {
			t.Errorf("temporary files: %v %v", left, more)
		}
	})
}

// A file that cannot be written to the disk does not get its name: after a power failure it may be empty.
func TestAFileThatIsNotOnTheDiskGetsNoName(t *testing.T) {
	r, w, err := os.Pipe() // pipes cannot be synced
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d := &draft{File: w, ctx: t.Context(), target: "target"}
	err = d.finish(func(string, string) error {
		t.Error("it has its name")
		return nil
	})
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("%v", err)
	}
}
