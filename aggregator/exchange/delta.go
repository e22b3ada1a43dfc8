package exchange

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/disdel/disdel"
)

// Delta is what a member sends in a step: changes of some weights, by ascending index.
type Delta struct {
	Index []int32
	Value []float32 // not zero, and rounded to the format: see Rounded
	// Values is the format of the values: float32 (also ""), bfloat16 or int8.
	Values disdel.Wire
}

// Len is the number of weights that change.
func (d Delta) Len() int { return len(d.Index) }

// The first byte of a delta: the format of its values, and whether its indices are encoded as rows.
const (
	asFloat32 = iota + 1
	asBfloat16
	asInt8

	inRows = 0x80
)

var formatBytes = map[disdel.Wire]byte{
	"": asFloat32, disdel.WireFloat32: asFloat32, disdel.WireBfloat16: asBfloat16, disdel.WireInt8: asInt8,
}

// Append encodes a delta after dst. After the first byte and the number of entries come the indices, in the shorter of
// two encodings: each entry's distance from the previous one (from index -1 for the first, so never 0), or rows of
// neighbouring entries: the number of rows, and for each row the distance of its first entry and its length. All are
// varints. The values follow: float32 and bfloat16 in 4 and 2 bytes, little-endian; int8 as multiples of a power of two
// that 4,096 neighbouring weights share, with its exponent before the first of them.
func (d Delta) Append(dst []byte) []byte {
	form, head := formatBytes[d.Values], len(dst)
	dst = binary.AppendUvarint(append(dst, form|inRows), uint64(len(d.Index)))
	start, gaps := len(dst), 0
	before := int32(-1)
	for k := 0; k < len(d.Index); {
		end := d.rowEnd(k)
		gap := uint64(d.Index[k] - before)
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, gap), uint64(end-k))
		gaps += varintBytes(int(gap)) + end - k - 1 // neighbours have the distance 1
		before, k = d.Index[end-1], end
	}
	if len(dst)-start >= gaps { // single distances are shorter: encode them instead
		dst[head], dst, before = form, dst[:start], -1
		for _, i := range d.Index {
			dst = binary.AppendUvarint(dst, uint64(i-before))
			before = i
		}
	}
	switch form {
	case asFloat32:
		at := len(dst)
		dst = slices.Grow(dst, 4*len(d.Value))[:at+4*len(d.Value)]
		for k, v := range d.Value {
			binary.LittleEndian.PutUint32(dst[at+4*k:], math.Float32bits(v))
		}
	case asBfloat16:
		for _, v := range d.Value {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(math.Float32bits(v)>>16))
		}
	default:
		dst = d.appendInt8(dst)
	}
	return dst
}

// rowEnd is the end of the row of neighbouring indices that starts with entry k. Indices ascend, so if the last of
// several is as far from the first as without gaps, there are no gaps between them.
func (d Delta) rowEnd(k int) int {
	const stride = 8
	index := d.Index
	before := int(index[k]) - k
	end := k + 1
	for end+stride <= len(index) && int(index[end+stride-1]) == before+end+stride-1 {
		end += stride
	}
	for end < len(index) && int(index[end]) == before+end {
		end++
	}
	return end
}

func varintBytes(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

// MaxBytes is the largest encoded size of a delta with so many entries, of a model with so many weights.
func MaxBytes(entries, weights int, values disdel.Wire) disdel.Bytes {
	each := map[byte]int{asFloat32: 4, asBfloat16: 2, asInt8: 1}[formatBytes[values]]
	gap := varintBytes(2 * weights / max(1, entries)) // gaps differ, so some are longer than the mean
	return disdel.Bytes(1 + binary.MaxVarintLen32 + entries*(each+gap) + min(entries, weights/region+1))
}

// Read decodes a delta of n weights into the memory of d. It returns Corrupt for an unknown format and for indices that
// do not ascend below n. Values that are zero or not finite, and missing or extra bytes, are Corrupt too.
func (d Delta) Read(data []byte, n int) (Delta, error) {
	r := reader{data: data, weights: n}
	d = r.delta(d)
	if r.fault == "" && len(r.data) > 0 {
		r.fail("%d bytes follow its entries", len(r.data))
	}
	if r.fault != "" {
		return Delta{}, &disdel.Error{Kind: disdel.Corrupt, Op: "read delta", Msg: r.fault}
	}
	return d, nil
}

// reader decodes a delta. It keeps the first fault and reads nothing after it.
type reader struct {
	data    []byte
	weights int
	fault   string
}

func (r *reader) fail(format string, args ...any) {
	if r.fault == "" {
		r.fault, r.data = fmt.Sprintf(format, args...), nil
	}
}

func (r *reader) byte() byte {
	if len(r.data) == 0 {
		r.fail("it ends too soon")
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

// number reads a varint of 1 to maximum.
func (r *reader) number(maximum int) int {
	if len(r.data) > 0 && r.data[0]-1 < 0x7f && int(r.data[0]) <= maximum { // one byte, as most are
		v := int(r.data[0])
		r.data = r.data[1:]
		return v
	}
	v, size := binary.Uvarint(r.data)
	if size <= 0 || v == 0 || v > uint64(max(maximum, 0)) {
		r.fail("a number is %d, of 1 to %d", v, maximum)
		return 0
	}
	r.data = r.data[size:]
	return int(v)
}

func (r *reader) delta(into Delta) (d Delta) {
	head := r.byte()
	for wire, form := range formatBytes {
		if wire != "" && form == head&^inRows {
			d.Values = wire
		}
	}
	count, size := binary.Uvarint(r.data)
	if d.Values == "" || size <= 0 || count > uint64(r.weights) || count > uint64(len(r.data)) {
		r.fail("it says that it has %d entries in format %d, of %d weights in %d bytes", count, head, r.weights, len(r.data))
		return d
	}
	r.data = r.data[size:]
	d.Index = slices.Grow(into.Index[:0], int(count))
	if d.Index == nil {
		d.Index = []int32{}
	}
	if head&inRows != 0 {
		r.rows(&d, int(count))
	} else {
		r.gaps(&d, int(count))
	}
	if r.fault == "" {
		d.Value = slices.Grow(into.Value[:0], int(count))[:count]
		r.values(&d)
	}
	return d
}

func (r *reader) gaps(d *Delta, count int) {
	at := -1
	for range count {
		at += r.number(r.weights - 1 - at)
		if r.fault != "" {
			return
		}
		d.Index = append(d.Index, int32(at))
	}
}

func (r *reader) rows(d *Delta, count int) {
	at := -1
	for len(d.Index) < count && r.fault == "" {
		at += r.number(r.weights - 1 - at)
		length := r.number(min(count-len(d.Index), r.weights-at))
		from := len(d.Index)
		d.Index = d.Index[:from+length]
		for k, row := 0, d.Index[from:]; k < len(row); k++ {
			row[k] = int32(at + k)
		}
		at += length - 1 // the row's last
	}
}

func (r *reader) values(d *Delta) {
	width := map[disdel.Wire]int{disdel.WireFloat32: 4, disdel.WireBfloat16: 2, disdel.WireInt8: 1}[d.Values]
	if len(r.data) < width*len(d.Value) {
		r.fail("%d bytes for %d values", len(r.data), len(d.Value))
		return
	}
	switch d.Values {
	case disdel.WireInt8:
		r.int8s(d)
	case disdel.WireBfloat16:
		for k := range d.Value {
			d.Value[k] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(r.data[2*k:])) << 16)
		}
		r.data = r.data[2*len(d.Value):]
	default:
		data := r.data[:4*len(d.Value)]
		for k := range d.Value {
			v := math.Float32frombits(binary.LittleEndian.Uint32(data[4*k : 4*k+4]))
			if d.Value[k] = v; isZeroOrNotFinite(v) {
				r.fail("entry %d is %v", k, v)
				return
			}
		}
		r.data = r.data[4*len(d.Value):]
		return
	}
	for k, v := range d.Value {
		if isZeroOrNotFinite(v) {
			r.fail("entry %d is %v", k, v)
		}
	}
}

// isZeroOrNotFinite compares the exponent without the sign with both of its ends at once.
func isZeroOrNotFinite(v float32) bool { return math.Float32bits(v)<<1-1 >= 0xff<<24-1 }

// Rounded returns the delta with its values rounded to a format. It drops values that become zero; the member sends the
// rounding error later. It reuses the memory of d.
func (d Delta) Rounded(to disdel.Wire) Delta {
	switch to {
	case disdel.WireBfloat16:
		for k, v := range d.Value {
			d.Value[k] = bfloat16(v)
		}
	case disdel.WireInt8:
		d.eachRegion(func(from, end int) {
			by := unitOf(exponent(d.Value[from:end]))
			for k := from; k < end; k++ {
				d.Value[k] = by.multiple(d.Value[k])
			}
		})
	}
	d.Values = to
	kept := 0
	for k, v := range d.Value {
		if v != 0 {
			d.Index[kept], d.Value[kept] = d.Index[k], v
			kept++
		}
	}
	d.Index, d.Value = d.Index[:kept], d.Value[:kept]
	return d
}

// bfloat16 rounds to 8 bits of mantissa, ties to even, and towards zero if the result would be infinite.
func bfloat16(x float32) float32 {
	const low = 0xffff
	bits := math.Float32bits(x)
	rounded := math.Float32frombits((bits + low/2 + bits>>16&1) &^ low)
	if math.IsInf(float64(rounded), 0) {
		return math.Float32frombits(bits &^ low)
	}
	return rounded
}

// region is how many neighbouring weights share a power of two: few enough to have similar values, and enough to make
// its byte negligible. It counts indices, not entries, so that omitted entries do not change others.
const region = 4096

// eachRegion calls f for the entries of every region that has any.
func (d Delta) eachRegion(f func(from, end int)) {
	for from := 0; from < len(d.Index); {
		end := from + 1
		for end < len(d.Index) && d.Index[end]/region == d.Index[from]/region {
			end++
		}
		f(from, end)
		from = end
	}
}

const (
	mostMultiple  = 127
	leastExponent = -126 // no smaller power of two has multiples
	signBit       = 1 << 31
)

// exponent is that of the smallest power of two for which no value exceeds 127 multiples. If the values are such
// multiples already, rounding them again changes nothing.
func exponent(values []float32) int {
	var maximum uint32 // of the bits without the sign, which have the order of the numbers
	for _, v := range values {
		maximum = max(maximum, math.Float32bits(v)&^signBit)
	}
	fraction, e := math.Frexp(float64(math.Float32frombits(maximum)) / mostMultiple)
	if fraction == 0.5 { // a power of two itself
		e--
	}
	return max(e, leastExponent)
}

// unit is a power of two and its inverse. Products of a float32 with either are exact in float64.
type unit struct{ size, inverse float64 }

func unitOf(exponent int) unit { return unit{math.Ldexp(1, exponent), math.Ldexp(1, -exponent)} }

// multiple is the nearest multiple, ties to even, or the next one towards zero if that would be infinite.
func (u unit) multiple(v float32) float32 {
	q := math.RoundToEven(float64(v) * u.inverse)
	if rounded := float32(q * u.size); !math.IsInf(float64(rounded), 0) {
		return rounded
	}
	return float32((q - math.Copysign(1, q)) * u.size)
}

func (d Delta) appendInt8(dst []byte) []byte {
	d.eachRegion(func(from, end int) {
		e := exponent(d.Value[from:end])
		dst = append(dst, byte(int8(e)))
		by := unitOf(e)
		for _, v := range d.Value[from:end] {
			dst = append(dst, byte(int8(float64(v)*by.inverse)))
		}
	})
	return dst
}

// int8s reads what appendInt8 wrote. It refuses encodings that rounding does not produce.
func (r *reader) int8s(d *Delta) {
	d.eachRegion(func(from, end int) {
		e := int(int8(r.byte()))
		if e < leastExponent {
			r.fail("multiples of 2^%d", e)
		}
		by := unitOf(e)
		for k := from; k < end; k++ {
			q := int(int8(r.byte()))
			if q < -mostMultiple {
				r.fail("entry %d is %d times", k, q)
			}
			d.Value[k] = float32(float64(q) * by.size)
		}
	})
}

// Vector is what an eager member's step started with: the newest step of each member that it had. It is sent before the
// step's delta, so that a repeated step can start with the same.
type Vector []int

// Append encodes a vector after dst: a varint for each member.
func (v Vector) Append(dst []byte) []byte {
	for _, step := range v {
		dst = binary.AppendUvarint(dst, uint64(step))
	}
	return dst
}

// ReadVector decodes a vector of so many members and returns the rest of data. It returns Corrupt if there is none, or
// for steps above maximum.
func ReadVector(data []byte, members, maximum int) (v Vector, rest []byte, err error) {
	for m := range members {
		step, size := binary.Uvarint(data)
		if size <= 0 || step > uint64(maximum) {
			return nil, nil, &disdel.Error{
				Kind: disdel.Corrupt, Op: "read delta", Msg: fmt.Sprintf("it began with step %d of member %d", step, m),
			}
		}
		v, data = append(v, int(step)), data[size:]
	}
	return v, data, nil
}
