package boltcheck

import (
	"bytes"
	"encoding/binary"
	"os"
	"time"
)

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
		least := bytes.Compare(before, key)
		if least > 0 || i > 0 && least == 0 || high != nil && bytes.Compare(key, high) >= 0 {
			return damage("the keys of page %d are not in order", id)
		}
		before = key
	}
	return nil
}
