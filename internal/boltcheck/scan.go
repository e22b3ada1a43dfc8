package boltcheck

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
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
