package aggregator

import (
	"encoding/binary"
	"math"
	"slices"
)

// blockValues is how many int8 values share a scale: 260 bytes for 256 values, 0.254 of float32.
const blockValues = 256

// int8s sends blocks of values as a scale, which is the block's largest value over 127, and multiples of it.
type int8s struct{}

func (int8s) plain() bool { return false }

func (int8s) size(runs []int) (minimum, maximum int) {
	n := 0
	for _, r := range runs {
		n += r + 4*((r+blockValues-1)/blockValues)
	}
	return exactSize(n)
}

func (int8s) encode(dst []byte, c encodeInput) []byte {
	v := c.values
	for _, r := range c.runs {
		for b := range slices.Chunk(v[:r], blockValues) {
			dst = encodeBlock(dst, b)
		}
		v = v[r:]
	}
	return dst
}

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

func (f int8s) decode(dst []float32, runs []int, b []byte) error {
	if err := checkSize(f, runs, len(b)); err != nil {
		return err
	}
	for _, r := range runs {
		for block := range slices.Chunk(dst[:r], blockValues) {
			b = decodeBlock(block, b)
		}
		dst = dst[r:]
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

func (f int8s) add(s sums, c column, runs []int, space *scratch) (bad int, err error) {
	return addDecoded(f, s, c, runs, space)
}
