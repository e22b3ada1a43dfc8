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
