package dense

import (
	"errors"
	"runtime"
	"sync"
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
