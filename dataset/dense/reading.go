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
// exist at a time, no more than most (0: as suits the cores), and are reused. inOrder returns the first error of take,
// which ends everything; errEnough ends it without an error.
func inOrder[T any](most int, next func(*T) bool, work func(*T), take func(*T) error) error {
	type errand struct {
		item T
		done chan struct{}
	}
	cores := runtime.GOMAXPROCS(0)
	maximum := 2*cores + 2
	if most > 0 {
		maximum = min(most, maximum)
	}
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

// textSet is up to mostCategories different texts in one piece of memory of 64 KB at most, in the order in which they
// came. A map would need ten times as much, and a table may have a million columns.
type textSet struct {
	all    []byte
	starts []uint16 // where each begins in all
	slots  []uint8  // numbers of texts, from 1, by their hash; 0: none
}

// bytes is a text, valid until the next one is added.
func (s *textSet) bytes(k int) []byte {
	if k+1 < len(s.starts) {
		return s.all[s.starts[k]:s.starts[k+1]]
	}
	return s.all[s.starts[k]:]
}

// texts returns all texts.
func (s *textSet) texts() []string {
	out := make([]string, len(s.starts))
	for k := range out {
		out[k] = string(s.bytes(k))
	}
	return out
}

// add returns the number of a text from 0, and adds the text if it is new. It returns -1 instead of adding a text
// beyond most. Of a text that is longer than longestName it keeps the start.
func (s *textSet) add(text string, most int) (k int, isNew bool) {
	text = text[:min(len(text), longestName+1)]
	slot, found := s.find(text)
	switch n := len(s.starts); {
	case found:
		return int(s.slots[slot]) - 1, false
	case n == most:
		return -1, false
	case 2*n >= len(s.slots):
		s.slots = make([]uint8, max(4, 2*len(s.slots)))
		s.starts = append(make([]uint16, 0, len(s.slots)/2), s.starts...)
		for k := range n {
			slot, _ := s.find(string(s.bytes(k)))
			s.slots[slot] = uint8(k + 1)
		}
		slot, _ = s.find(text)
	}
	s.starts = append(s.starts, uint16(len(s.all)))
	s.all = append(s.all, text...)
	s.slots[slot] = uint8(len(s.starts))
	return len(s.starts) - 1, true
}

// find returns the slot of a text, or the empty one that it belongs to. Without slots it finds nothing.
func (s *textSet) find(text string) (slot uint32, found bool) {
	if len(s.slots) == 0 {
		return 0, false
	}
	const prime = 16777619 // of the hash FNV-1a
	hash := uint32(2166136261)
	for i := range len(text) {
		hash = (hash ^ uint32(text[i])) * prime
	}
	mask := uint32(len(s.slots) - 1)
	for slot = hash & mask; s.slots[slot] != 0; slot = (slot + 1) & mask {
		if string(s.bytes(int(s.slots[slot])-1)) == text {
			return slot, true
		}
	}
	return slot, false
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
