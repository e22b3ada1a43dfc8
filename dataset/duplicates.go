package dataset

import (
	"fmt"
	"hash/crc32"
	"maps"

	"github.com/disdel/disdel"
)

// mostHashes limits the memory for hashes of rows to some megabytes.
const mostHashes = 1 << 17

// duplicates counts the held-out rows that equal a training row, in any order of rows. Up to mostHashes different rows
// the count is exact. With more rows it keeps only hashes that end in zero bits, and counts this share of the rows.
type duplicates struct {
	train   map[uint64]struct{}
	heldOut map[uint64]int // rows of each hash
	mask    uint64         // bits that are zero in the kept hashes
}

func newDuplicates() *duplicates {
	return &duplicates{train: map[uint64]struct{}{}, heldOut: map[uint64]int{}}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add takes a row as it is stored: its values, and its label or targets. Two checksums are one hash: both use
// instructions of the processor.
func (d *duplicates) add(heldOut bool, values, label []byte) {
	high := crc32.Update(crc32.ChecksumIEEE(values), crc32.IEEETable, label)
	low := crc32.Update(crc32.Checksum(values, castagnoli), castagnoli, label)
	hash := uint64(high)<<32 | uint64(low)
	if hash&d.mask != 0 {
		return
	}
	if heldOut {
		d.heldOut[hash]++
	} else {
		d.train[hash] = struct{}{}
	}
	for len(d.train)+len(d.heldOut) > mostHashes {
		d.mask = d.mask<<1 | 1
		maps.DeleteFunc(d.train, func(hash uint64, _ struct{}) bool { return hash&d.mask != 0 })
		maps.DeleteFunc(d.heldOut, func(hash uint64, _ int) bool { return hash&d.mask != 0 })
	}
}

// rows is the number of held-out rows that equal a training row; an estimate if not all hashes were kept.
func (d *duplicates) rows() int {
	n := 0
	for hash, rows := range d.heldOut {
		if _, ok := d.train[hash]; ok {
			n += rows
		}
	}
	return n * int(d.mask+1)
}

// duplicatesNote is a warning about held-out rows that are also training rows; "" if there are none.
func (m *Manifest) duplicatesNote() string {
	if m.Duplicates == 0 {
		return ""
	}
	about := ""
	if m.EstimatesDuplicates() {
		about = "about "
	}
	return fmt.Sprintf("%s%d of %s are also training rows; their metrics look better than those of new rows",
		about, m.Duplicates, disdel.Counted(m.Test.Rows, "held-out row"))
}

// EstimatesDuplicates tells whether Duplicates may be an estimate.
func (m *Manifest) EstimatesDuplicates() bool { return m.Train.Rows+m.Test.Rows > mostHashes }
