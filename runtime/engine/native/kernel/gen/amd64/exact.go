package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The kernels here have the same bits on every path: a product and a sum are two instructions, never one, and sums have
// an order that does not depend on the vectors. They take arrays of any length, so that the last values go four at a
// time, and one by one. Rows are short: there is no wider form of them.

var xmm = []reg.VecPhysical{
	reg.X0, reg.X1, reg.X2, reg.X3, reg.X4, reg.X5, reg.X6, reg.X7,
	reg.X8, reg.X9, reg.X10, reg.X11, reg.X12, reg.X13, reg.X14, reg.X15,
}

// span is how many values an instruction takes: 8, 4 or 1.
type span int

// v is vector register i.
func (n span) v(i int) reg.VecPhysical {
	if n == 8 {
		return ymm[i]
	}
	return xmm[i]
}

func (n span) op(x any) operand.Op {
	if i, ok := x.(int); ok {
		return n.v(i)
	}
	return x.(operand.Mem)
}

func (n span) three(packed, single func(...operand.Op), a any, b, to int) {
	if n == 1 {
		packed = single
	}
	packed(n.op(a), n.v(b), n.v(to))
}

func (n span) add(a any, b, to int) { n.three(VADDPS, VADDSS, a, b, to) }
func (n span) sub(a any, b, to int) { n.three(VSUBPS, VSUBSS, a, b, to) } // to = b - a
func (n span) mul(a any, b, to int) { n.three(VMULPS, VMULSS, a, b, to) }
func (n span) div(a any, b, to int) { n.three(VDIVPS, VDIVSS, a, b, to) } // to = b / a

func (n span) sqrt(a, to int) {
	if n == 1 {
		VSQRTSS(n.v(a), n.v(a), n.v(to))
		return
	}
	VSQRTPS(n.v(a), n.v(to))
}

func (n span) load(m operand.Mem, i int) {
	if n == 1 {
		VMOVSS(m, n.v(i))
		return
	}
	VMOVUPS(m, n.v(i))
}

func (n span) store(i int, m operand.Mem) {
	if n == 1 {
		VMOVSS(n.v(i), m)
		return
	}
	VMOVUPS(n.v(i), m)
}

// spans does body for so many bytes of values, as many at once as are left, and advances offsets.
func spans(bytes reg.Register, widest span, offsets []reg.Register, body func(n span)) {
	left := GP64()
	MOVQ(bytes, left)
	out := label("out")
	for _, n := range []span{8, 4, 1} {
		if n > widest {
			continue
		}
		again, less := label("span"), out
		if n > 1 {
			less = label("less")
		}
		Label(again)
		CMPQ(left, operand.U32(4*int(n)))
		JB(operand.LabelRef(less))
		body(n)
		for _, o := range offsets {
			ADDQ(operand.U32(4*int(n)), o)
		}
		SUBQ(operand.U32(4*int(n)), left)
		JMP(operand.LabelRef(again))
		if n > 1 {
			Label(less)
		}
	}
	Label(out)
}

func exact() {
	pairProducts()
	pairSlopes()
	rowOptimizers()
	exactSquares()
	changes(false)
	changes(true)
	entries()
}

// Fields of pairArgs.
const (
	pairUsers         = 0
	pairItems         = 8
	pairUserGradients = 16
	pairItemGradients = 24
	pairIndex         = 32
	pairPlaces        = 40
	pairValues        = 48
	pairN             = 56
	pairRow           = 64
	pairFirst         = 72
	pairOffset        = 80
)

// rowAt is the address of a row that an int32 in memory has the number of, first less than it says.
func rowAt(args reg.Register, number operand.Mem, table int, first bool) reg.Register {
	r := GP64()
	MOVLQSX(number, r)
	if first {
		SUBQ(at(args, pairFirst), r)
	}
	IMULQ(at(args, pairRow), r)
	ADDQ(at(args, table), r)
	return r
}

// eachPair walks pairs: body gets the addresses of both rows, and the bytes of their factors.
func eachPair(name, doc string, places bool, body func(args, u, v, values, places, bytes reg.Register)) {
	args := avx2.function(name, doc)
	index, values, n, bytes := field(args, pairIndex), field(args, pairValues), field(args, pairN), field(args, pairRow)
	SUBQ(operand.U32(4), bytes)
	var place reg.Register
	if places {
		place = field(args, pairPlaces)
	}
	loop(n, 1, func() {
		u := rowAt(args, at(index, 0), pairUsers, false)
		v := rowAt(args, at(index, 4), pairItems, true)
		body(args, u, v, values, place, bytes)
		advance(8, index)
		advance(4, values)
		if places {
			advance(8, place)
		}
	})
	done()
}

func pairProducts() {
	const sum, product = 0, 1
	doc := "writes offset + both biases + the product of factors, in four sums, for every pair."
	eachPair("pairProducts", doc, false, func(args, u, v, values, _, bytes reg.Register) {
		k := GP64()
		XORQ(k, k)
		avx2.zero(sum)
		spans(bytes, 4, []reg.Register{k}, func(n span) {
			n.load(indexed(u, k, 1, 0), product)
			n.mul(indexed(v, k, 1, 0), product, product)
			n.add(product, sum, sum) // of one value: into the first sum, and the others stay
		})
		VHADDPS(xmm[sum], xmm[sum], xmm[sum]) // a + b, c + d
		VMOVSHDUP(xmm[sum], xmm[product])
		one := span(1)
		one.add(product, sum, sum)
		one.load(at(args, pairOffset), product)
		one.add(indexed(u, k, 1, 0), product, product)
		one.add(indexed(v, k, 1, 0), product, product)
		one.add(sum, product, product)
		one.store(product, at(values, 0))
	})
}

func pairSlopes() {
	const slope = 2
	eachPair("pairSlopes", "adds every pair's slope times its factors to gradients.", true,
		func(args, u, v, values, places, bytes reg.Register) {
			gu := rowAt(args, at(places, 0), pairUserGradients, false)
			gv := rowAt(args, at(places, 4), pairItemGradients, false)
			avx2.broadcast(at(values, 0), slope)
			k := GP64()
			XORQ(k, k)
			spans(bytes, 8, []reg.Register{k}, func(n span) {
				for i, to := range []reg.Register{gu, gv} {
					n.load(indexed([]reg.Register{v, u}[i], k, 1, 0), i)
					n.mul(slope, i, i)
					n.add(indexed(to, k, 1, 0), i, i)
				}
				n.store(0, indexed(gu, k, 1, 0))
				n.store(1, indexed(gv, k, 1, 0))
			})
			for i, to := range []reg.Register{gu, gv} {
				one := span(1)
				one.load(indexed(to, k, 1, 0), i)
				one.add(slope, i, i)
				one.store(i, indexed(to, k, 1, 0))
			}
		})
}

// exactSquares adds the squares of a, in eight sums of float64 at dst, to what is there.
func exactSquares() {
	args := avx2.function("exactSquares", "adds a a in eight sums of float64 at dst.")
	out, a, n := field(args, 0), field(args, 8), field(args, 32)
	for i := range 2 {
		VMOVUPD(at(out, 32*i), ymm[i])
	}
	loop(n, 32, func() {
		for i := range 2 {
			VCVTPS2PD(at(a, 16*i), ymm[2+i])
			VMULPD(ymm[2+i], ymm[2+i], ymm[2+i])
			VADDPD(ymm[2+i], ymm[i], ymm[i])
		}
		advance(32, a)
	})
	for i := range 2 {
		VMOVUPD(ymm[i], at(out, 32*i))
	}
	done()
}

// changes marks what is owed, eight values a byte. The arguments: see changeArgs.
func changes(sent bool) {
	name, doc := "changes", "writes x - began to local, and marks what of it is at least factor |x|."
	if sent {
		name, doc = "changesSent", "is changes of what was not sent."
	}
	args := avx2.function(name, doc)
	x, began, local, marks, n := field(args, 0), field(args, 8), field(args, 24), field(args, 32), field(args, 40)
	arrays := []reg.Register{x, began, local}
	var sentBefore reg.Register
	if sent {
		sentBefore = field(args, 16)
		arrays = append(arrays, sentBefore)
	}
	const zeros, sign, factor = 15, 14, 13
	const notLess, notEqual = 0x15, 0x04 // also of what cannot be compared
	avx2.broadcast(at(args, 48), factor)
	avx2.zero(zeros)
	VPCMPEQD(ymm[sign], ymm[sign], ymm[sign])
	VPSRLD(operand.U8(1), ymm[sign], ymm[sign]) // all bits but the sign
	mask := GP32()
	loop(n, 8, func() {
		avx2.load(at(x, 0), 0)
		avx2.sub(at(began, 0), 0, 1)
		avx2.store(1, at(local, 0))
		if sent {
			avx2.sub(at(sentBefore, 0), 1, 1)
		}
		VANDPS(ymm[0], ymm[sign], ymm[2])
		avx2.mul(factor, 2, 2)
		VANDPS(ymm[1], ymm[sign], ymm[3])
		VCMPPS(operand.U8(notLess), ymm[2], ymm[3], ymm[3])
		VCMPPS(operand.U8(notEqual), ymm[zeros], ymm[1], ymm[1])
		VANDPS(ymm[1], ymm[3], ymm[3])
		VMOVMSKPS(ymm[3], mask)
		MOVB(mask.As8(), at(marks, 0))
		advance(32, arrays...)
		advance(1, marks)
	})
	done()
}
