package exchange

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// Delta is what a member sends of a step: changes of some weights, by their indices, which ascend.
type Delta struct {
	Index []int32
	Value []float32 // none is zero
}

// Len is how many weights change.
func (d Delta) Len() int { return len(d.Index) }

// Append writes a delta behind dst: the number of its entries, then each entry's distance from the one before (from
// index -1 for the first, so that it is never 0) as a varint and its value as a float32, little-endian.
func (d Delta) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(d.Index)))
	before := int32(-1)
	for k, i := range d.Index {
		dst = binary.AppendUvarint(dst, uint64(i-before))
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(d.Value[k]))
		before = i
	}
	return dst
}

// Read reads what Append wrote of a delta of n weights. It trusts no byte: it returns Corrupt for entries that do not
// ascend below n, for values that are zero or not finite, and for bytes that are missing or too many.
func Read(data []byte, n int) (Delta, error) {
	bad := func(format string, args ...any) (Delta, error) {
		return Delta{}, &disdel.Error{Kind: disdel.Corrupt, Op: "read delta", Msg: fmt.Sprintf(format, args...)}
	}
	count, size := binary.Uvarint(data)
	if size <= 0 || count > uint64(n) || count > uint64(len(data)/leastEntry) {
		return bad("it says that it has %d entries, of %d weights in %d bytes", count, n, len(data))
	}
	data = data[size:]
	d := Delta{Index: make([]int32, 0, count), Value: make([]float32, 0, count)}
	before := int64(-1)
	for k := range count {
		gap, size := binary.Uvarint(data)
		if size <= 0 || gap == 0 || gap > uint64(n) || before+int64(gap) >= int64(n) || len(data) < size+valueBytes {
			return bad("entry %d is %d after %d, of %d weights", k, gap, before, n)
		}
		before += int64(gap)
		v := math.Float32frombits(binary.LittleEndian.Uint32(data[size:]))
		if v == 0 || v-v != 0 {
			return bad("entry %d is %v", k, v)
		}
		d.Index, d.Value = append(d.Index, int32(before)), append(d.Value, v)
		data = data[size+valueBytes:]
	}
	if len(data) > 0 {
		return bad("%d bytes follow its entries", len(data))
	}
	return d, nil
}

const (
	valueBytes = 4
	leastEntry = 1 + valueBytes
)
