package native

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/disdel/disdel"
)

// pages is a file in the temporary folder with moments as float32. It is read and written and not mapped: a full disk
// is then an error of a call and no signal, and the action's memory has only the piece that a worker computes with.
type pages struct {
	file   *os.File
	size   int64       // bytes
	zero   atomic.Bool // all of them are zero
	broken atomic.Pointer[error]
}

// page is one moment of an array of weights in the file.
type page struct {
	*pages
	at int64
}

// place gives n moments a place behind the others.
func (f *pages) place(n int) *page {
	p := &page{f, f.size}
	f.size += 4 * int64(n)
	return p
}

// open makes the file.
func (f *pages) open() (err error) {
	if f.file, err = os.CreateTemp("", "moments-*"); err != nil {
		return f.explained("make", err)
	}
	return nil
}

// clear writes zeros, so that the disk has the space from the start.
func (f *pages) clear() error {
	if f.zero.Load() {
		return nil
	}
	zeros := make([]byte, min(f.size, 1<<20))
	for at := int64(0); at < f.size; at += int64(len(zeros)) {
		if _, err := f.file.WriteAt(zeros[:min(int64(len(zeros)), f.size-at)], at); err != nil {
			return f.explained("write", err)
		}
	}
	f.zero.Store(true)
	f.broken.Store(nil)
	return nil
}

// close deletes the file.
func (f *pages) close() error {
	if f.file == nil {
		return nil
	}
	return errors.Join(f.file.Close(), os.Remove(f.file.Name()))
}

// Read implements kernel.Moments. A failed read gives values that are not numbers, and the next step fails. A state
// that is saved with them is refused by the engine that reads it: zeros would pass as moments.
func (p *page) Read(dst []float32, from int) {
	if _, err := p.file.ReadAt(inBytes(dst), p.at+4*int64(from)); err != nil {
		for i := range dst {
			dst[i] = float32(math.NaN())
		}
		p.broken.CompareAndSwap(nil, new(p.explained("read", err)))
	}
}

// Write implements kernel.Moments.
func (p *page) Write(src []float32, from int) {
	p.zero.Store(false)
	if _, err := p.file.WriteAt(inBytes(src), p.at+4*int64(from)); err != nil {
		p.broken.CompareAndSwap(nil, new(p.explained("write", err)))
	}
}

// failure is why moments were lost in a step, nil if none were.
func (f *pages) failure() error {
	if f == nil {
		return nil
	}
	if err := f.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// explained is an error of the file as the action's.
func (f *pages) explained(what string, err error) error {
	out := &disdel.Error{
		Kind: disdel.Unavailable, Op: "page moments", Err: err,
		Msg:  fmt.Sprintf("could not %s the file of the moments in %s", what, os.TempDir()),
		Hint: "leave training.optimizerState out, or write int8",
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		out.Kind = disdel.NoSpace
		out.Msg = fmt.Sprintf("the moments take %v of disk in %s, and there is not so much", disdel.Bytes(f.size),
			os.TempDir())
		out.Hint = "give the action more disk, leave training.optimizerState out, or write int8"
	}
	return out
}

func inBytes(values []float32) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 4*len(values))
}
