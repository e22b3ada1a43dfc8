package dataset

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// diskRows are the rows of a shard in a file, as they are stored: memory does not grow with them. Each goroutine has a
// view of its own. A new row goes to the end of the file, and place finds it. Small rows at drawn places would take a file
// system many times as long.
type diskRows struct {
	file   *os.File // without a name: it goes when nothing has it open
	place  []int32  // of each row in the file
	places int      // that are written
	new    *bufio.Writer
	row    []byte // working memory
}

// newDiskRows makes a file for so many rows of so many bytes, in the first folder that is on a disk and has room. It
// returns NoSpace if there is none.
func newDiskRows(name string, rows, rowBytes int) (*diskRows, error) {
	size := disdel.Bytes(rows) * disdel.Bytes(rowBytes)
	var why []string
	for _, dir := range slices.Compact([]string{os.TempDir(), "/var/tmp"}) {
		if inMemory(dir) {
			why = append(why, dir+" is in memory")
			continue
		}
		if free := files.Free(dir); free < size {
			why = append(why, fmt.Sprintf("%s has %v", dir, free))
			continue
		}
		f, err := os.CreateTemp(dir, "disdel-rows-*")
		if err != nil {
			why = append(why, files.Plain(err).Error())
			continue
		}
		if err := os.Remove(f.Name()); err != nil {
			f.Close()
			return nil, err
		}
		files.ReadAtRandom(f)
		return &diskRows{
			file: f, place: make([]int32, rows), new: bufio.NewWriterSize(f, writtenAtOnce), row: make([]byte, rowBytes),
		}, nil
	}
	return nil, &disdel.Error{
		Kind: disdel.NoSpace, Op: "read data set " + name,
		Msg:  fmt.Sprintf("the rows of an action have %v, and no disk has room: %v", size, why),
		Hint: "name a folder on a disk with TMPDIR, use more workers, or leave data.keep out",
	}
}

// tmpfs is the type of Linux' file system in memory.
const tmpfs = 0x01021994

// inMemory tells whether a folder's files take memory.
func inMemory(dir string) bool {
	var at unix.Statfs_t
	return unix.Statfs(dir, &at) == nil && int64(at.Type) == tmpfs
}

// writtenAtOnce is the size of a write in bytes.
const writtenAtOnce = 256 << 10

// view is the same rows for another goroutine.
func (d *diskRows) view() *diskRows {
	return &diskRows{file: d.file, place: d.place, row: make([]byte, len(d.row))}
}

func (d *diskRows) write(row int, data []byte) error {
	d.place[row] = int32(d.places)
	d.places++
	_, err := d.new.Write(data)
	return notKept(err)
}

// finish ends the writing. Only then rows can be read.
func (d *diskRows) finish() error {
	err := d.new.Flush()
	d.new = nil
	return notKept(err)
}

// notKept is the error of a write.
func notKept(err error) error {
	if err == nil {
		return nil
	}
	kind := disdel.Unavailable
	if files.DiskFull(err) {
		kind = disdel.NoSpace
	}
	return &disdel.Error{Kind: kind, Op: "keep rows on disk", Err: err, Hint: "make room, or use more workers"}
}

// prepare lets the disk read rows side by side before the first of them is needed.
func (d *diskRows) prepare(rows []int32) {
	size := int64(len(d.row))
	for _, row := range rows {
		files.ReadSoon(d.file, int64(d.place[row])*size, size)
	}
}

// read returns n bytes of a row from an offset on, valid until the next call. It panics with a *disdel.Error if the
// disk fails: nothing can be trained without the row, and the action is tried again elsewhere.
func (d *diskRows) read(row, from, n int) []byte {
	at := int64(d.place[row])*int64(len(d.row)) + int64(from)
	if _, err := d.file.ReadAt(d.row[:n], at); err != nil {
		panic(&disdel.Error{Kind: disdel.Unavailable, Op: "read rows from disk", Err: err, Hint: "check the action's disk"})
	}
	return d.row[:n]
}

// fromDisk writes scaled values of a row from at on.
func (s *Shard) fromDisk(dst []float32, at int) {
	value := len(s.disk.row) / s.sample // bytes
	row := s.disk.read(at/s.sample, at%s.sample*value, len(dst)*value)
	if s.levels != nil {
		s.levels.scale(dst, row)
		return
	}
	for k := range dst {
		dst[k] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*k:]))*s.scale + s.offset
	}
}

// Close frees the file of rows on disk. Rows in memory need no Close.
func (s *Shard) Close() error {
	if s.disk == nil {
		return nil
	}
	return s.disk.file.Close()
}
