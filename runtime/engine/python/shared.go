package python

import (
	"math"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// shared is the file in memory that engine and worker have in common. It has no name: it is gone with its users.
type shared struct {
	file   *os.File
	mapped []byte
}

// newShared makes a file of zeros. The program cannot change its size, which would end this process.
func newShared(size int) (*shared, error) {
	fail := func(err error) (*shared, error) {
		return nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "map memory", Err: err,
			Msg: disdel.Bytes(size).String() + " for the program's weights and batches", Hint: "lower training.batchSize or raise the memory limit",
		}
	}
	fd, err := createMemoryFile()
	if err != nil {
		return fail(err)
	}
	s := &shared{file: os.NewFile(uintptr(fd), "program")}
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		s.mapped, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil {
		err = sealSize(fd)
	}
	if err != nil {
		s.close() //nolint:errcheck // the first error says more
		return fail(err)
	}
	return s, nil
}

func (s *shared) close() error {
	var err error
	if s.mapped != nil {
		err = unix.Munmap(s.mapped)
		s.mapped = nil
	}
	s.file.Close()
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "unmap memory", Err: err}
	}
	return nil
}

// part is n values of the file from a byte on.
func part[T float32 | int32 | int64](s *shared, at, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&s.mapped[at])), n)
}

// integers are the values of a buffer of whole numbers.
type integers []int64

// ReadAt implements engine.Values.
func (v integers) ReadAt(dst []float32, at int) {
	for i := range dst {
		dst[i] = float32(v[at+i])
	}
}

// WriteAt implements engine.Values. Means are rounded. A number that float32 cannot hold stays as it is where nothing
// else was written.
func (v integers) WriteAt(src []float32, at int) {
	for i, x := range src {
		switch {
		case float32(v[at+i]) == x:
		case x >= math.MaxInt64:
			v[at+i] = math.MaxInt64
		case x <= math.MinInt64:
			v[at+i] = math.MinInt64
		default:
			v[at+i] = int64(math.Round(float64(x)))
		}
	}
}
