package aggregator

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// caught keeps the first panic of goroutines that work for a caller, who raises it again: in theirs it would end the
// process, in the caller's the action runtime makes an answer of it.
type caught struct{ first atomic.Pointer[elsewhere] }

// elsewhere is what a goroutine panicked with, and where.
type elsewhere struct {
	value any
	stack []byte
}

// String is the value, as if it had been raised here.
func (e *elsewhere) String() string { return fmt.Sprint(e.value) }

// Stack is the goroutine's, as debug.Stack writes it.
func (e *elsewhere) Stack() []byte { return e.stack }

// capture is to be deferred by the goroutine. then is called after a panic, to let the others know.
func (c *caught) capture(then func()) {
	if r := recover(); r != nil {
		c.first.CompareAndSwap(nil, &elsewhere{r, debug.Stack()})
		then()
	}
}

// raise is to be called when all of them have ended.
func (c *caught) raise() {
	if e := c.first.Load(); e != nil {
		panic(e)
	}
}
