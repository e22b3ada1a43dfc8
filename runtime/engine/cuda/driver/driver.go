// Package driver is what the cuda engine sees of a GPU: memory that is taken, written and read, and lists of kernel
// launches that are run. Two drivers implement it: device, by NVIDIA's driver through gorgonia.org/cu, in programs that
// are built with the tag nvidia; and emulated, a process of kernels that were compiled for the processor, for tests.
//
// The package has the interface and its errors alone: a Fault says which call of how many failed, on which device, and
// what the driver said. It refuses nothing. Invariant: a device does what it is told in the order that it is told.
package driver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// Pointer is an address in a device's memory; 0 is none.
type Pointer uint64

// At is the address n float32 values further on.
func (p Pointer) At(n int) Pointer { return p + Pointer(4*n) }

// Launch is a kernel on a grid of blocks, or a product of the driver's library.
type Launch struct {
	Kernel string
	Grid   [3]int
	Args   []byte // the kernel's one argument, a struct

	Product *Product // nil: it is a kernel
}

// Product is C = A B of float32 matrices, or C += A B, as BLAS has it: by columns, each LD values from the one before.
// C is M x N; A is M x K, or, transposed, K x M, and B is K x N or N x K. Of a batch every matrix lies its stride from
// the one before; with a stride of 0 all have the same.
type Product struct {
	A, B, C                   Pointer
	M, N, K                   int
	LDA, LDB, LDC             int
	TransA, TransB            bool
	StrideA, StrideB, StrideC int // in values
	Batch                     int
	Add                       bool // to what is there
	TF32                      bool // both sides may be rounded to that
}

// Program is launches that a device was made ready for, as its Prepare numbers them.
type Program int

// Info says what a device is.
type Info struct {
	Index      int    // among those that the process may use
	ID         string // by which CUDA_VISIBLE_DEVICES may name it; "": not known
	Name       string
	Memory     disdel.Bytes // all of it
	Free       disdel.Bytes // when it was asked
	Capability [2]int       // major and minor: 8 and 0 of an A100
	Library    bool         // its Prepare takes a Product
}

// Driver finds devices and opens them.
type Driver interface {
	// Devices lists the devices that this process may use. It returns Unavailable with NoDevice where there is none, or
	// no driver.
	Devices() ([]Info, error)

	// Open makes a device ready. It returns Unavailable with NoDevice for a device that is not there.
	Open(index int) (Device, error)
}

// Turn is when a Write happens, among all else that a device is told to do.
type Turn uint8

// The turns.
const (
	InOrder Turn = iota // after all before it
	Ahead               // at once, beside what is running; whatever Run comes next waits for it
)

// Device is one queue of one device, for one goroutine. But for what is written Ahead, what it is told to do happens in
// that order. Where nothing else is said, an error is a Fault: of Launch, if a kernel could not be started or went
// wrong, or of Lost, after which nothing but Close works.
type Device interface {
	// Alloc takes memory, whose content is anything. It returns a Fault of Memory where there is not as much.
	Alloc(n disdel.Bytes) (Pointer, error)

	// Write copies src to the device, and has read it when it returns. Whoever writes Ahead has waited, by a Read, for
	// all that was told before and uses what is written to, and does not write InOrder to it before the next Run.
	Write(dst Pointer, src []byte, turn Turn) error

	// Read copies from the device once all before it is done.
	Read(dst []byte, src Pointer) error

	// Prepare makes launches ready to be run again and again.
	Prepare(launches []Launch) (Program, error)

	// Run has a program run. What goes wrong in it may show only in a later Read.
	Run(p Program) error

	// Close waits, and gives all memory back.
	Close() error
}

// Cause is what is wrong with a device.
type Cause uint8

// The causes.
const (
	NoDevice     Cause = 1 + iota // there is no driver, no such device, or none that this process may use
	NoMemory                      // an allocation did not fit
	BadLaunch                     // a kernel could not be started, or went wrong
	DeviceLost                    // the device is gone: reset, fallen off its bus, or its process has died
	NoHostMemory                  // the host had no memory for copies to go through
)

// String names the cause in messages.
func (c Cause) String() string {
	names := [...]string{
		NoDevice: "no device", NoMemory: "out of device memory", BadLaunch: "launch failed", DeviceLost: "device lost",
		NoHostMemory: "out of host memory",
	}
	if int(c) >= len(names) || names[c] == "" {
		return "unknown fault"
	}
	return names[c]
}

// Kind is the kind of error that a cause is. A device that is lost or missing may be there in another container.
func (c Cause) Kind() disdel.Kind {
	kinds := [...]disdel.Kind{
		NoDevice: disdel.Unavailable, NoMemory: disdel.OOM, BadLaunch: disdel.Internal, DeviceLost: disdel.Unavailable,
		NoHostMemory: disdel.OOM,
	}
	if int(c) >= len(kinds) || kinds[c] == 0 {
		return disdel.Internal
	}
	return kinds[c]
}

// Fault describes the failure of a call to a device.
type Fault struct {
	Cause  Cause
	Device int          // its index
	Call   string       // "allocation", or a kernel's name; "" where none can be named
	Number int          // which of the device's calls of that kind it was, from 1; 0 where they are not counted
	Wanted disdel.Bytes // of memory
	Taken  disdel.Bytes // of memory, by the same engine before
	Free   disdel.Bytes // of memory, when it was asked for
	Said   string       // the driver's own words, which nothing is decided by
}

// Error says what is known, the driver's own words last.
func (f *Fault) Error() string {
	parts := []string{fmt.Sprintf("device %d: %v", f.Device, f.Cause)}
	if f.Call != "" {
		call := f.Call
		if f.Number > 0 {
			call = fmt.Sprintf("%s %d", call, f.Number)
		}
		parts = append(parts, call)
	}
	if f.Wanted > 0 {
		parts = append(parts, fmt.Sprintf("%v wanted, %v free, %v taken before", f.Wanted, f.Free, f.Taken))
	}
	if f.Said != "" {
		parts = append(parts, f.Said)
	}
	return strings.Join(parts, ": ")
}

// Unwrap gives the kind to errors.Is.
func (f *Fault) Unwrap() error { return f.Cause.Kind() }

// Visible are the devices of those with these ids that a list leaves to a process, in the list's order, as CUDA reads
// its variable CUDA_VISIBLE_DEVICES: numbers, or ids or the beginnings of one, separated by commas. What stands behind
// an entry that is no device, or that names one a second time, is not read. An empty list leaves none.
func Visible(list string, ids []string) []int {
	out := []int{}
	for entry := range strings.SplitSeq(list, ",") {
		i := named(strings.TrimSpace(entry), ids)
		if i < 0 || slices.Contains(out, i) {
			break
		}
		out = append(out, i)
	}
	return out
}

// named is the device that an entry names, -1 where it names none, or several.
func named(entry string, ids []string) int {
	if n, err := strconv.Atoi(entry); err == nil {
		if n < 0 || n >= len(ids) {
			return -1
		}
		return n
	}
	found := -1
	for i, id := range ids {
		switch {
		case entry == "" || !strings.HasPrefix(id, entry):
		case found >= 0:
			return -1
		default:
			found = i
		}
	}
	return found
}
