package dataset

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/faults"
)

// Whatever call to the disk fails, a data set that was acknowledged can be read whole. One that was not acknowledged is
// whole or not there, and the same command again adds it.
func TestAFailedCallToTheDiskLosesNoDataSet(t *testing.T) {
	const sets, rows = 3, 400
	faults.FailEveryDiskCall(t, func(dir string, done func(string), failed func(error)) {
		s, err := OpenStore(ctx, "file://"+dir)
		if err != nil {
			failed(err)
			return
		}
		for i := range sets {
			name := fmt.Sprintf("set%d", i)
			if _, err := s.Add(ctx, someInput(name, rows+i, 7), false); err != nil {
				failed(err)
			} else {
				done(name)
			}
		}
		if err := s.Close(); err != nil {
			failed(err)
		}
	}, func(t *testing.T, dir string, done []string) {
		s, err := OpenStore(ctx, "file://"+dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i := range sets {
			name := fmt.Sprintf("set%d", i)
			m, err := s.Manifest(ctx, name)
			if slices.Contains(done, name) && err != nil || err != nil && !errors.Is(err, disdel.NotFound) {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if err != nil {
				if m, err = s.Add(ctx, someInput(name, rows+i, 7), false); err != nil {
					t.Errorf("%s, added again: %v", name, err)
					continue
				}
			}
			ref := disdel.DataRef{Name: name, Checksum: m.Checksum()}
			shard, err := s.ReadTrain(ctx, ref, disdel.RowRange{End: rows + i})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for r, label := range shard.Labels() {
				if int(label) != r%10 {
					t.Errorf("%s: row %d has label %d", name, r, label)
					break
				}
			}
		}
	})
}
