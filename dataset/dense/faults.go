package dense

import (
	"fmt"
	"path/filepath"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

const bufferBytes = 256 << 10

// base is the last part of a file's name, for titles.
func base(name string) string { return filepath.Base(name) }

// faults is everything that is wrong with a file, as far as anybody reads it.
type faults struct {
	file string
	list []disdel.Fault
	more int
}

// mostFaults is how many are told: who has more has one cause for them.
const mostFaults = 20

func (f *faults) add(fault disdel.Fault) {
	if len(f.list) >= mostFaults {
		f.more++
		return
	}
	f.list = append(f.list, fault)
}

// at adds a fault of a line; 0: of the file.
func (f *faults) at(line, column int, path, format string, args ...any) {
	f.add(disdel.Fault{Line: line, Column: column, Path: path, Msg: fmt.Sprintf(format, args...)})
}

// full says whether nothing more would be told.
func (f *faults) full() bool { return f.more > 0 }

// err is nil where nothing is wrong.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	list := f.list
	if f.more > 0 {
		list = append(list, disdel.Fault{Path: "more", Msg: fmt.Sprintf("%d faults or more besides", f.more)})
	}
	return &disdel.Faults{File: f.file, Faults: list}
}

// plain drops the path that a message names already.
func plain(err error) error { return files.Plain(err) }
