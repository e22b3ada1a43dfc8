package exchange

import (
	"math"

	"github.com/disdel/disdel"
)

// Rounded is a delta as it is read where its values are written in a format. Values that come to nothing are left out;
// what a value loses, its member goes on owing. It uses the memory of d.
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

// bfloat16 rounds to the nearest value that has 8 bits of mantissa, ties to even, and towards zero where that would be
// infinite.
func bfloat16(x float32) float32 {
	const low = 0xffff
	bits := math.Float32bits(x)
	rounded := math.Float32frombits((bits + low/2 + bits>>16&1) &^ low)
	if math.IsInf(float64(rounded), 0) {
		return math.Float32frombits(bits &^ low)
	}
	return rounded
}

// region is how many neighbouring weights have one power of two in common: few enough that a tensor's values are near
// each other, and enough that the byte for it does not count. It goes by indices, not by entries, so that leaving out
// entries changes nothing for the others.
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
	leastExponent = -126 // below it there are no values that could be multiplied
	signBit       = 1 << 31
)

// exponent is that of the least power of two of which no value is more than 127 times. Of values that are such
// multiples already it is one that they are multiples of, so that rounding what was rounded changes nothing.
func exponent(values []float32) int {
	var most uint32 // of the bits without their signs, which are in the order of the numbers
	for _, v := range values {
		most = max(most, math.Float32bits(v)&^signBit)
	}
	fraction, e := math.Frexp(float64(math.Float32frombits(most)) / mostMultiple)
	if fraction == 0.5 { // a power of two itself
		e--
	}
	return max(e, leastExponent)
}

// unit is a power of two, and one over it: products of a float32 with either are exact in float64.
type unit struct{ size, inverse float64 }

func unitOf(exponent int) unit { return unit{math.Ldexp(1, exponent), math.Ldexp(1, -exponent)} }

// multiple is the nearest multiple of a power of two, ties to even, and the next one towards zero where that would be
// infinite.
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

// int8s reads what appendInt8 wrote. It refuses what rounding does not give: other bytes for the same values.
func (r *reader) int8s(d *Delta) {
	d.eachRegion(func(from, end int) {
		e := int(int8(r.byte()))
		if e < leastExponent {
			r.bad("multiples of 2^%d", e)
		}
		by := unitOf(e)
		for k := from; k < end; k++ {
			q := int(int8(r.byte()))
			if q < -mostMultiple {
				r.bad("entry %d is %d times", k, q)
			}
			d.Value[k] = float32(float64(q) * by.size)
		}
	})
}
