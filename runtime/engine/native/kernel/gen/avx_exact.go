package main

import (
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
type span struct {
	*avx
	n int
}

// v is vector register i.
func (s span) v(i int) reg.VecPhysical {
	if s.n == 8 {
		return ymm[i]
	}
	return xmm[i]
}

func (s span) op(x any) operand.Op {
	if i, ok := x.(int); ok {
		return s.v(i)
	}
	return x.(operand.Mem)
}

func (s span) three(packed, single func(...operand.Op), a any, b, to int) {
	if s.n == 1 {
		packed = single
	}
	packed(s.op(a), s.v(b), s.v(to))
}

func (s span) add(a any, b, to int) { s.three(s.VADDPS, s.VADDSS, a, b, to) }
func (s span) sub(a any, b, to int) { s.three(s.VSUBPS, s.VSUBSS, a, b, to) } // to = b - a
func (s span) mul(a any, b, to int) { s.three(s.VMULPS, s.VMULSS, a, b, to) }
func (s span) div(a any, b, to int) { s.three(s.VDIVPS, s.VDIVSS, a, b, to) } // to = b / a

func (s span) sqrt(a, to int) {
	if s.n == 1 {
		s.VSQRTSS(s.v(a), s.v(a), s.v(to))
		return
	}
	s.VSQRTPS(s.v(a), s.v(to))
}

func (s span) load(m operand.Mem, i int) {
	if s.n == 1 {
		s.VMOVSS(m, s.v(i))
		return
	}
	s.VMOVUPS(m, s.v(i))
}

func (s span) store(i int, m operand.Mem) {
	if s.n == 1 {
		s.VMOVSS(s.v(i), m)
		return
	}
	s.VMOVUPS(s.v(i), m)
}

// spans does body for so many bytes of values, as many at once as are left, and advances offsets.
func (s *avx) spans(bytes reg.Register, widest int, offsets []reg.Register, body func(n span)) {
	left := s.GP64()
	s.MOVQ(bytes, left)
	out := s.label("out")
	for _, n := range []int{8, 4, 1} {
		if n > widest {
			continue
		}
		again, less := s.label("span"), out
		if n > 1 {
			less = s.label("less")
		}
		s.Label(again)
		s.CMPQ(left, operand.U32(4*n))
		s.JB(operand.LabelRef(less))
		body(span{s, n})
		for _, o := range offsets {
			s.ADDQ(operand.U32(4*n), o)
		}
		s.SUBQ(operand.U32(4*n), left)
		s.JMP(operand.LabelRef(again))
		if n > 1 {
			s.Label(less)
		}
	}
	s.Label(out)
}

func (s *avx) exact() {
	s.pairProducts()
	s.pairSlopes()
	s.rowOptimizers()
	s.exactSquares()
	s.changes(false)
	s.changes(true)
	s.entries()
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
func (s *avx) rowAt(args reg.Register, number operand.Mem, table int, first bool) reg.Register {
	r := s.GP64()
	s.MOVLQSX(number, r)
	if first {
		s.SUBQ(at(args, pairFirst), r)
	}
	s.IMULQ(at(args, pairRow), r)
	s.ADDQ(at(args, table), r)
	return r
}

// eachPair walks pairs: body gets the addresses of both rows, and the bytes of their factors.
func (s *avx) eachPair(name, doc string, places bool, body func(args, u, v, values, places, bytes reg.Register)) {
	args := s.function(name, "*pairArgs", doc)
	index, values, n, bytes := s.field(args, pairIndex), s.field(args, pairValues), s.field(args, pairN), s.field(args, pairRow)
	s.SUBQ(operand.U32(4), bytes)
	var place reg.Register
	if places {
		place = s.field(args, pairPlaces)
	}
	s.loop(n, 1, func() {
		u := s.rowAt(args, at(index, 0), pairUsers, false)
		v := s.rowAt(args, at(index, 4), pairItems, true)
		body(args, u, v, values, place, bytes)
		s.advance(8, index)
		s.advance(4, values)
		if places {
			s.advance(8, place)
		}
	})
	s.done()
}

func (s *avx) pairProducts() {
	const sum, product = 0, 1
	doc := "writes offset + both biases + the product of factors, in four sums, for every pair."
	s.eachPair("pairProducts", doc, false, func(args, u, v, values, _, bytes reg.Register) {
		k := s.GP64()
		s.XORQ(k, k)
		s.zero(sum)
		s.spans(bytes, 4, []reg.Register{k}, func(n span) {
			n.load(indexed(u, k, 1, 0), product)
			n.mul(indexed(v, k, 1, 0), product, product)
			n.add(product, sum, sum) // of one value: into the first sum, and the others stay
		})
		s.VHADDPS(xmm[sum], xmm[sum], xmm[sum]) // a + b, c + d
		s.VMOVSHDUP(xmm[sum], xmm[product])
		one := span{s, 1}
		one.add(product, sum, sum)
		one.load(at(args, pairOffset), product)
		one.add(indexed(u, k, 1, 0), product, product)
		one.add(indexed(v, k, 1, 0), product, product)
		one.add(sum, product, product)
		one.store(product, at(values, 0))
	})
}

func (s *avx) pairSlopes() {
	const slope = 2
	s.eachPair("pairSlopes", "adds every pair's slope times its factors to gradients.", true,
		func(args, u, v, values, places, bytes reg.Register) {
			gu := s.rowAt(args, at(places, 0), pairUserGradients, false)
			gv := s.rowAt(args, at(places, 4), pairItemGradients, false)
			s.broadcast(at(values, 0), slope)
			k := s.GP64()
			s.XORQ(k, k)
			s.spans(bytes, 8, []reg.Register{k}, func(n span) {
				for i, to := range []reg.Register{gu, gv} {
					n.load(indexed([]reg.Register{v, u}[i], k, 1, 0), i)
					n.mul(slope, i, i)
					n.add(indexed(to, k, 1, 0), i, i)
				}
				n.store(0, indexed(gu, k, 1, 0))
				n.store(1, indexed(gv, k, 1, 0))
			})
			for i, to := range []reg.Register{gu, gv} {
				one := span{s, 1}
				one.load(indexed(to, k, 1, 0), i)
				one.add(slope, i, i)
				one.store(i, indexed(to, k, 1, 0))
			}
		})
}

// exactSquares adds the squares of a, in eight sums of float64 at dst, to what is there.
func (s *avx) exactSquares() {
	args := s.function("exactSquares", "*elementArgs", "adds a a in eight sums of float64 at dst.")
	out, a, n := s.field(args, 0), s.field(args, 8), s.field(args, 32)
	for i := range 2 {
		s.VMOVUPD(at(out, 32*i), ymm[i])
	}
	s.loop(n, 32, func() {
		for i := range 2 {
			s.VCVTPS2PD(at(a, 16*i), ymm[2+i])
			s.VMULPD(ymm[2+i], ymm[2+i], ymm[2+i])
			s.VADDPD(ymm[2+i], ymm[i], ymm[i])
		}
		s.advance(32, a)
	})
	for i := range 2 {
		s.VMOVUPD(ymm[i], at(out, 32*i))
	}
	s.done()
}

// changes marks what is owed, eight values a byte. The arguments: see changeArgs.
func (s *avx) changes(sent bool) {
	name, doc := "changes", "writes x - began to local, and marks what of it is at least factor |x|."
	if sent {
		name, doc = "changesSent", "is changes of what was not sent."
	}
	args := s.function(name, "*changeArgs", doc)
	x, began, local, marks, n := s.field(args, 0), s.field(args, 8), s.field(args, 24), s.field(args, 32), s.field(args, 40)
	arrays := []reg.Register{x, began, local}
	var sentBefore reg.Register
	if sent {
		sentBefore = s.field(args, 16)
		arrays = append(arrays, sentBefore)
	}
	const zeros, sign, factor = 15, 14, 13
	const notLess, notEqual = 0x15, 0x04 // also of what cannot be compared
	s.broadcast(at(args, 48), factor)
	s.zero(zeros)
	s.VPCMPEQD(ymm[sign], ymm[sign], ymm[sign])
	s.VPSRLD(operand.U8(1), ymm[sign], ymm[sign]) // all bits but the sign
	mask := s.GP32()
	s.loop(n, 8, func() {
		s.load(at(x, 0), 0)
		s.sub(at(began, 0), 0, 1)
		s.store(1, at(local, 0))
		if sent {
			s.sub(at(sentBefore, 0), 1, 1)
		}
		s.VANDPS(ymm[0], ymm[sign], ymm[2])
		s.mul(factor, 2, 2)
		s.VANDPS(ymm[1], ymm[sign], ymm[3])
		s.VCMPPS(operand.U8(notLess), ymm[2], ymm[3], ymm[3])
		s.VCMPPS(operand.U8(notEqual), ymm[zeros], ymm[1], ymm[1])
		s.VANDPS(ymm[1], ymm[3], ymm[3])
		s.VMOVMSKPS(ymm[3], mask)
		s.MOVB(mask.As8(), at(marks, 0))
		s.advance(32, arrays...)
		s.advance(1, marks)
	})
	s.done()
}
