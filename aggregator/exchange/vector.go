package exchange

import (
	"encoding/binary"
	"fmt"

	"github.com/disdel/disdel"
)

// Vector is what an eager member's step began with: by member the newest step that it had of it; of itself, those that
// it had made. It goes ahead of the step's delta, so that who makes the step again begins with the same.
type Vector []int

// Append writes a vector behind dst: a varint for each member.
func (v Vector) Append(dst []byte) []byte {
	for _, step := range v {
		dst = binary.AppendUvarint(dst, uint64(step))
	}
	return dst
}

// ReadVector reads a vector of so many members, and returns what follows it. It returns Corrupt where there is none, or
// one of steps beyond most.
func ReadVector(data []byte, members, most int) (v Vector, rest []byte, err error) {
	for m := range members {
		step, size := binary.Uvarint(data)
		if size <= 0 || step > uint64(most) {
			return nil, nil, &disdel.Error{
				Kind: disdel.Corrupt, Op: "read delta", Msg: fmt.Sprintf("it began with step %d of member %d", step, m),
			}
		}
		v, data = append(v, int(step)), data[size:]
	}
	return v, data, nil
}
