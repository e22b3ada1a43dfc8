//go:build nvidia

package device

// #include <cuda.h>
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// Pinned is what a device takes of the process's memory for copies: a part for those that go in order, and one for
// those that go ahead.
const Pinned disdel.Bytes = 2 * pinnedLen

// pinnedLen is how much of the host's memory the copies of a stream go through.
const pinnedLen = 8 << 20

// queue is a stream with the pinned memory that its copies go through.
type queue struct {
	stream cu.Stream
	pinned unsafe.Pointer
	used   int // of pinned, by copies that may not have been done yet
}

// open makes the stream and takes the memory.
func (q *queue) open(d *device) (err error) {
	if q.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return d.fault("make stream", err)
	}
	if err := result(C.cuMemHostAlloc(&q.pinned, pinnedLen, 0)); err != nil {
		return d.unpinned(err)
	}
	return nil
}

// c is the stream as this package's calls take it.
func (q *queue) c() C.CUstream { return C.CUstream(unsafe.Pointer(q.stream.C())) }

// wait waits until all is done; the pinned memory is free again then.
func (q *queue) wait(d *device) error {
	q.used = 0
	return d.fault("wait", q.stream.Synchronize())
}

// pieces calls f with a part of the pinned memory for every part of so many bytes.
func (q *queue) pieces(d *device, n int, f func(pinned []byte, from int) error) error {
	for from := 0; from < n; {
		if q.used == pinnedLen {
			if err := q.wait(d); err != nil {
				return err
			}
		}
		size := min(n-from, pinnedLen-q.used)
		part := unsafe.Slice((*byte)(unsafe.Add(q.pinned, q.used)), size)
		q.used += size
		if err := f(part, from); err != nil {
			return err
		}
		from += size
	}
	return nil
}

// write copies src to pinned memory, from where the device takes it when the stream gets there.
func (q *queue) write(d *device, dst driver.Pointer, src []byte) error {
	return q.pieces(d, len(src), func(pinned []byte, from int) error {
		copy(pinned, src[from:])
		return d.fault("write", cu.MemcpyHtoDAsync(cu.DevicePtr(dst)+cu.DevicePtr(from), unsafe.Pointer(&pinned[0]),
			int64(len(pinned)), q.stream))
	})
}

// read waits for all that is on the stream.
func (q *queue) read(d *device, dst []byte, src driver.Pointer) error {
	return q.pieces(d, len(dst), func(pinned []byte, from int) error {
		if err := cu.MemcpyDtoHAsync(unsafe.Pointer(&pinned[0]), cu.DevicePtr(src)+cu.DevicePtr(from),
			int64(len(pinned)), q.stream); err != nil {
			return d.fault("read", err)
		}
		if err := q.wait(d); err != nil {
			return err
		}
		copy(dst[from:], pinned)
		return nil
	})
}

// await has what comes next on the stream wait for all that is on another.
func (q *queue) await(d *device, other *queue) error {
	if err := d.ahead.Record(other.stream); err != nil {
		return d.fault("record event", err)
	}
	return d.fault("wait for event", q.stream.Wait(d.ahead, 0))
}
