package boltcheck

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/disdel/disdel"
)

// Scan calls f with every key and value that a page of the bbolt file at path has, whatever leads to the page: of a
// damaged file it finds what is whole, and what was written over since as well. They are valid until f returns. Who
// calls it looks at the seals.
func Scan(path string, f func(key, value []byte)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	size := scanSize(file, info.Size())
	for id := uint64(2); id*size < uint64(info.Size()); id++ {
		p, err := leafAt(file, id, size, uint64(info.Size()))
		if err != nil {
			return err
		}
		for i := range p.count {
			if key, value, ok := p.pair(i); ok {
				f(key, value)
			}
		}
	}
	return nil
}

// scanSize is the size of a file's pages, by whichever head is whole.
func scanSize(f io.ReaderAt, size int64) uint64 {
	for at := int64(0); at < min(size, 1<<24); at += 512 {
		if m, err := readMeta(f, at); err == nil {
			return m.pageSize
		}
	}
	return uint64(os.Getpagesize())
}

// leafAt is the leaf that starts at a page, and one without elements where none does.
func leafAt(f io.ReaderAt, id, size, all uint64) (page, error) {
	var head [pageHead]byte
	if _, err := f.ReadAt(head[:], int64(id*size)); err != nil {
		return page{}, ignoreEOF(err)
	}
	le := binary.LittleEndian
	pages := 1 + uint64(le.Uint32(head[12:]))
	if le.Uint64(head[:]) != id || le.Uint16(head[8:]) != leafPage || pages > all/size {
		return page{}, nil
	}
	p := page{flags: leafPage, count: int(le.Uint16(head[10:])), data: make([]byte, pages*size)}
	n, err := f.ReadAt(p.data, int64(id*size))
	p.data = p.data[:n]
	p.count = min(p.count, max(0, (n-pageHead)/elementSize))
	return p, ignoreEOF(err)
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// pair is the key and the value of an element of a leaf.
func (p page) pair(i int) (key, value []byte, ok bool) {
	e, le := p.data[pageHead+i*elementSize:], binary.LittleEndian
	if le.Uint32(e)&bucketLeaf != 0 {
		return nil, nil, false
	}
	key, err := p.slice(i, uint64(le.Uint32(e[4:])), le.Uint32(e[8:]))
	if err != nil {
		return nil, nil, false
	}
	value, err = p.slice(i, uint64(le.Uint32(e[4:]))+uint64(le.Uint32(e[8:])), le.Uint32(e[12:]))
	return key, value, err == nil
}

// CheckLeaves is Check, and looks at the leaves as well: that every page is in one place alone, that each element lies
// within its page, and that all keys are in order. Who opens a file without a stored list of free pages needs it: bbolt
// then walks all of the file in a goroutine of its own, where what it panics with ends the process. Values are not
// read.
func CheckLeaves(path string, wait time.Duration) error {
	return inspect(path, wait, func(f *os.File) error {
		t, err := open(f)
		if t == nil || err != nil {
			return err
		}
		t.leaf = t.order
		return t.all()
	})
}

// order looks at a leaf's elements: low is the least key that it may have, high what is above all of them, nil for
// none.
func (t *tree) order(id uint64, low, high []byte) error {
	if err := t.visit(id); err != nil {
		return err
	}
	le, size := binary.LittleEndian, t.meta.pageSize
	start := int64(id * size)
	head := make([]byte, size)
	if _, err := t.file.ReadAt(head, start); err != nil {
		return err
	}
	count, more := int(le.Uint16(head[10:])), uint64(le.Uint32(head[12:]))
	if le.Uint64(head) != id || le.Uint16(head[8:]) != leafPage || more >= t.meta.pages-id {
		return damage("page %d is not what it was", id)
	}
	for i := range more {
		if err := t.visit(id + 1 + i); err != nil {
			return err
		}
	}
	length := (more + 1) * size
	elements := head[pageHead:]
	if end := uint64(pageHead + count*elementSize); end > length {
		return damage("page %d has %d elements", id, count)
	} else if end > size {
		elements = make([]byte, count*elementSize)
		if _, err := t.file.ReadAt(elements, start+pageHead); err != nil {
			return err
		}
	}
	before := low
	for i := range count {
		e := elements[i*elementSize:]
		at := uint64(pageHead+i*elementSize) + uint64(le.Uint32(e[4:]))
		keySize, valueSize := uint64(le.Uint32(e[8:])), uint64(le.Uint32(e[12:]))
		if le.Uint32(e) != 0 || at+keySize+valueSize > length || at < uint64(pageHead+count*elementSize) {
			return damage("element %d of page %d is not what it was", i, id)
		}
		key := make([]byte, keySize)
		if at+keySize <= size {
			copy(key, head[at:])
		} else if _, err := t.file.ReadAt(key, start+int64(at)); err != nil {
			return err
		}
		minimum := bytes.Compare(before, key)
		if minimum > 0 || i > 0 && minimum == 0 || high != nil && bytes.Compare(key, high) >= 0 {
			return damage("the keys of page %d are not in order", id)
		}
		before = key
	}
	return nil
}

// mark begins every sealed value: no JSON text and no program begins so.
var mark = []byte{0, 'c', 'r', 'c'}

// headSize is the length of what stands before a sealed value: mark and checksum.
const headSize = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the checksum of a value under its key. A value that moves to another key does not match it.
func Sum(key, value []byte) uint32 {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(key)))
	sum := crc32.Update(crc32.Checksum(size[:], castagnoli), castagnoli, key)
	return crc32.Update(sum, castagnoli, value)
}

// Seal adds a checksum to a value for storing under its key.
func Seal(key, value []byte) []byte {
	out := make([]byte, headSize, headSize+len(value))
	copy(out, mark)
	binary.LittleEndian.PutUint32(out[len(mark):], Sum(key, value))
	return append(out, value...)
}

// Open returns a stored value without its checksum; it shares memory with data. was is false for a value of an earlier
// version without a checksum. It returns Corrupt if the checksum does not match.
func Open(key, data []byte) (value []byte, was bool, err error) {
	if !bytes.HasPrefix(data, mark) {
		return data, false, nil
	}
	if len(data) < headSize {
		return nil, true, damage("the value of %.80q is cut short", key)
	}
	if Sum(key, data[headSize:]) != binary.LittleEndian.Uint32(data[len(mark):]) {
		return nil, true, damage("the value of %.80q has another checksum than was stored with it", key)
	}
	return data[headSize:], true, nil
}

func damage(format string, args ...any) *disdel.Error {
	return &disdel.Error{Kind: disdel.Corrupt, Msg: fmt.Sprintf(format, args...)}
}

// Named adds the file's name to an error about damage.
func Named(path string, err error) error {
	if !errors.Is(err, disdel.Corrupt) {
		return err
	}
	return &disdel.Error{Kind: disdel.Corrupt, Msg: path + " is damaged", Err: err}
}

// Guard runs f on the mapped file at path. It returns Corrupt with the file's name if damage makes f panic or read a
// missing page, or if f returns Corrupt.
func Guard(path string, f func() error) (err error) {
	faults := debug.SetPanicOnFault(true) // of this goroutine alone
	defer debug.SetPanicOnFault(faults)
	defer func() {
		if p := recover(); p != nil {
			err = Named(path, damage("%v", p))
		}
	}()
	return Named(path, f())
}
