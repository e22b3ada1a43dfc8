package slab

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// Slab is memory outside the Go heap: the collector neither scans nor counts it, and freeing gives it back at once.
type Slab struct {
	mapped []byte
	values []float32
}

const (
	page      = 4 << 10
	hugePage  = 2 << 20
	hugeFrom  = 16 << 20 // below, whole huge pages would be a large part of it
	floatSize = 4
)

// New maps n zero values and touches every page. So a lack of memory shows now, not in the middle of a step, and the
// resident memory of the process is the plan's from the start. It returns Unavailable if the system has too little
// memory.
func New(n int) (*Slab, error) {
	size := (n*floatSize + page - 1) / page * page
	extra := 0
	if size >= hugeFrom {
		extra = hugePage
	}
	mapped, err := unix.Mmap(-1, 0, size+extra, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "map memory", Msg: fmt.Sprintf("%v for the network's tensors", disdel.Bytes(size)),
			Err:  err,
			Hint: "lower training.batchSize or raise the memory limit",
		}
	}
	s := &Slab{mapped: mapped}
	start := 0
	if extra > 0 {
		start = int(-uintptr(unsafe.Pointer(&mapped[0])) % hugePage)
		rounded := size / hugePage * hugePage
		_ = unix.Madvise(mapped[start:start+rounded], unix.MADV_HUGEPAGE) // only a hint: without it pages are small
	}
	used := mapped[start : start+size]
	if unix.Madvise(used, unix.MADV_POPULATE_WRITE) != nil { // kernels before 5.14
		for i := 0; i < size; i += page {
			used[i] = 0
		}
	}
	s.values = unsafe.Slice((*float32)(unsafe.Pointer(&used[0])), n)
	return s, nil
}

// Free gives the memory back; nothing of it must be used afterwards.
func (s *Slab) Free() error {
	if s.mapped == nil {
		return nil
	}
	err := unix.Munmap(s.mapped)
	s.mapped, s.values = nil, nil
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "unmap memory", Err: err}
	}
	return nil
}
