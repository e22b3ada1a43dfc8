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

// errEnough ends a reading early: what follows would say nothing new.
var errEnough = errors.New("enough is known")

// inOrder has all cores work on the items that next gives, and takes them in that order. next fills an item, or says
// that there are no more, in a goroutine of its own; work is done on several items at once; take is called from here. A
// few items are there at a time, and each is used again and again. It returns the first error of take, which ends it
// all; errEnough ends it without one.
func inOrder[T any](next func(*T) bool, work func(*T), take func(*T) error) error {
	type errand struct {
		item T
		done chan struct{}
	}
	cores := runtime.GOMAXPROCS(0)
	most := 2*cores + 2
	free, todo, line := make(chan *errand, most), make(chan *errand, most), make(chan *errand, most)
	for range most {
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
				todo <- e // there is room for all that there are
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
