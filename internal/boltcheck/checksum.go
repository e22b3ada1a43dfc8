package boltcheck

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime/debug"

	"github.com/disdel/disdel"
)

// mark begins every sealed value: no JSON text and no program begins so.
var mark = []byte{0, 'c', 'r', 'c'}

// headSize is the length of what stands before a sealed value: mark and checksum.
const headSize = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the checksum of a value under its key: one that was moved to another key does not have it.
func Sum(key, value []byte) uint32 {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(key)))
	sum := crc32.Update(crc32.Checksum(size[:], castagnoli), castagnoli, key)
	return crc32.Update(sum, castagnoli, value)
}

// Seal returns what is to be stored for a value under its key.
func Seal(key, value []byte) []byte {
	out := make([]byte, headSize, headSize+len(value))
	copy(out, mark)
	binary.LittleEndian.PutUint32(out[len(mark):], Sum(key, value))
	return append(out, value...)
}

// Open returns the value that was sealed under key, which shares memory with data, and whether there was a seal at all:
// what an earlier version stored without one is returned as it is. It returns Corrupt for a value that is not the one
// that was sealed.
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

// Named is err with the name of the file where err says that something is damaged, and err itself otherwise.
func Named(path string, err error) error {
	if !errors.Is(err, disdel.Corrupt) {
		return err
	}
	return &disdel.Error{Kind: disdel.Corrupt, Msg: path + " is damaged", Err: err}
}

// Guard runs f, which works with the mapped file at path, and returns Corrupt with the file's name where the file's
// damage makes f panic or touch a page that is not there. What f itself returns as Corrupt is named as well.
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
