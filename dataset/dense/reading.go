package dense

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// errEnough ends a reading early: the rest would add nothing new.
var errEnough = errors.New("enough is known")

// inOrder works on items on all cores, and takes them in order. next fills an item, or says that there are no more,
// in a goroutine of its own; work handles several items at once; take is called from this goroutine. A few items
// exist at a time, and are reused. inOrder returns the first error of take, which ends everything; errEnough ends it
// without an error.
func inOrder[T any](next func(*T) bool, work func(*T), take func(*T) error) error {
	type errand struct {
		item T
		done chan struct{}
	}
	cores := runtime.GOMAXPROCS(0)
	maximum := 2*cores + 2
	free, todo, line := make(chan *errand, maximum), make(chan *errand, maximum), make(chan *errand, maximum)
	for range maximum {
		free <- &errand{done: make(chan struct{}, 1)}
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		defer close(todo)
		defer close(line)
		for {
			select {
			case e := <-free:
				if !next(&e.item) {
					return
				}
				todo <- e // there is room for all items
				line <- e
			case <-stop:
				return
			}
		}
	})
	for range cores {
		all.Go(func() {
			for e := range todo {
				work(&e.item)
				e.done <- struct{}{}
			}
		})
	}
	var err error
	for e := range line {
		<-e.done
		if err != nil {
			continue
		}
		if err = take(&e.item); err != nil {
			close(stop)
			continue
		}
		free <- e
	}
	all.Wait()
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

const bufferBytes = 256 << 10

// base is the last part of a file's name, for titles.
func base(name string) string { return filepath.Base(name) }

// faults collects the faults of a file, up to mostFaults.
type faults struct {
	file string
	list []disdel.Fault
	more int

	unlabelled int // rows of a table without a label
}

// mostFaults is how many faults are reported: more than that usually have one cause.
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

// full tells whether further faults would not be reported.
func (f *faults) full() bool { return f.more > 0 }

func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	list := f.list
	if f.more > 0 {
		list = append(list, disdel.Fault{Path: "more", Msg: disdel.Counted(f.more, "fault") + " or more besides"})
	}
	return &disdel.Faults{File: f.file, Faults: list}
}

// plain removes a path that the message has already.
func plain(err error) error { return files.Plain(err) }
