package aggregator

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// blockValues is how many values of int8 share a scale: 260 bytes for 256 values, 0.254 of float32.
const blockValues = 256

// wires numbers the formats in an envelope.
var wires = []disdel.Wire{disdel.WireFloat32, disdel.WireBfloat16, disdel.WireInt8}

// format is a wire's number, -1 for one that is none. No wire is float32.
func format(w disdel.Wire) int {
	if w == "" {
		return 0
	}
	return slices.Index(wires, w)
}

// wireSize is the bytes of a column in a format.
func wireSize(w disdel.Wire, runs []int) int {
	n := 0
	for _, r := range runs {
		switch w {
		case disdel.WireBfloat16:
			n += 2 * r
		case disdel.WireInt8:
			n += r + 4*((r+blockValues-1)/blockValues)
		default:
			n += 4 * r
		}
	}
	return n
}

// WireBytes is what the values of like take on the wire, without the envelope of less than a thousandth.
func WireBytes(like disdel.Weights, w disdel.Wire) disdel.Bytes {
	l := newLayout(like, columnValues)
	n := 0
	for k := range l.columns() {
		n += wireSize(w, l.runs(k))
	}
	return disdel.Bytes(n)
}

// encodeColumn appends the values of a column.
func encodeColumn(dst []byte, w disdel.Wire, runs []int, v []float32) []byte {
	le := binary.LittleEndian
	switch w {
	case disdel.WireBfloat16:
		for _, x := range v {
			dst = le.AppendUint16(dst, uint16(math.Float32bits(roundBfloat16(x))>>16))
		}
	case disdel.WireInt8:
		for _, r := range runs {
			for b := range slices.Chunk(v[:r], blockValues) {
				dst = encodeBlock(dst, b)
			}
			v = v[r:]
		}
	default:
		at := len(dst)
		dst = slices.Grow(dst, 4*len(v))[:at+4*len(v)]
		for i, x := range v {
			le.PutUint32(dst[at+4*i:], math.Float32bits(x))
		}
	}
	return dst
}

// roundBfloat16 rounds to the nearest value with 8 bits of mantissa, ties to even.
func roundBfloat16(x float32) float32 {
	bits := math.Float32bits(x)
	bits += 0x7fff + bits>>16&1
	return math.Float32frombits(bits &^ 0xffff)
}

// encodeBlock writes a block's scale, its largest value over 127, and its values in multiples of it.
func encodeBlock(dst []byte, v []float32) []byte {
	scale := blockScale(v)
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(scale))
	for _, x := range v {
		dst = append(dst, byte(quantise(x, scale)))
	}
	return dst
}

func blockScale(v []float32) float32 {
	largest := float32(0)
	for _, x := range v {
		largest = max(largest, x, -x)
	}
	return largest / 127
}

func quantise(x, scale float32) int8 {
	if scale == 0 {
		return 0
	}
	return int8(min(127, max(-127, math.RoundToEven(float64(x)/float64(scale)))))
}

// decodeColumn reads the values of a column into dst, which has their number.
func decodeColumn(dst []float32, w disdel.Wire, runs []int, b []byte) error {
	if want := wireSize(w, runs); len(b) != want {
		return fmt.Errorf("%d bytes for %d", len(b), want)
	}
	le := binary.LittleEndian
	switch w {
	case disdel.WireBfloat16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(le.Uint16(b[2*i:])) << 16)
		}
	case disdel.WireInt8:
		for _, r := range runs {
			for block := range slices.Chunk(dst[:r], blockValues) {
				b = decodeBlock(block, b)
			}
			dst = dst[r:]
		}
	default:
		for i := range dst {
			dst[i] = math.Float32frombits(le.Uint32(b[4*i:]))
		}
	}
	return nil
}

func decodeBlock(dst []float32, b []byte) []byte {
	scale := math.Float32frombits(binary.LittleEndian.Uint32(b))
	for i, q := range b[4 : 4+len(dst)] {
		dst[i] = float32(float32(int8(q)) * scale)
	}
	return b[4+len(dst):]
}

// notFinite returns the index of the first NaN or infinity, or -1.
func notFinite(v []float32) int {
	for i, x := range v {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return i
		}
	}
	return -1
}
