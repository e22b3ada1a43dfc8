package main

import (
	"github.com/mmcloughlin/avo/operand"
)

// Only amd64 has these kernels of sparse rows; arm64 runs the Go versions. All of them have the same bits.

// x is the register of the lowest four values of vector i.
func x(i int) operand.Op { return zmm[i].AsX() }

// exactSquares adds the squares of a to eight sums of float64 at dst.
func (s *avx) exactSquares() {
	s.function("exactSquares", "*elementArgs", func(args register) {
		out, a, n := s.field(args, 8*dst), s.field(args, 8*srcA), s.field(args, elementN)
		for i := range 2 {
			s.VMOVUPD(s.at(out, 32*i), s.v(i))
		}
		s.loop(n, 32, func() {
			for i := range 2 {
				square := s.v(2 + i)
				s.VCVTPS2PD(s.at(a, 16*i), square)
				s.VMULPD(square, square, square)
				s.VADDPD(square, s.v(i), s.v(i))
			}
			s.plus(32, a)
		})
		for i := range 2 {
			s.VMOVUPD(s.v(i), s.at(out, 32*i))
		}
	})
}

// changes writes x - began to local, and sets the mark of each change of at least factor |x|, eight values in a byte.
// With sent, changes are what was not sent. See changeArgs.
func (s *avx) changes(name string, sent bool) {
	const notLess, notEqual = 0x15, 0x04 // also of what cannot be compared
	size, change, large, marked := s.v(2), s.v(1), s.v(3), s.v(1)
	zeros, sign, factor := s.v(15), s.v(14), s.v(13)
	s.function(name, "*changeArgs", func(args register) {
		x, began, local := s.field(args, 0), s.field(args, 8), s.field(args, 24)
		marks, n := s.field(args, 32), s.field(args, 40)
		arrays := []register{x, began, local}
		if sent {
			arrays = append(arrays, s.field(args, 16))
		}
		s.broadcastEach(args, 48, factor)
		s.zero(zeros)
		s.VPCMPEQD(sign, sign, sign)
		s.VPSRLD(operand.U8(1), sign, sign) // all bits but the sign
		mask := s.GP32()
		s.loop(n, 8, func() {
			s.load(s.at(x, 0), s.v(0))
			s.sub(change, s.v(0), s.at(began, 0))
			s.store(change, s.at(local, 0))
			if sent {
				s.sub(change, change, s.at(arrays[3], 0))
			}
			s.VANDPS(s.v(0), sign, size)
			s.mul(size, size, factor)
			s.VANDPS(change, sign, large)
			s.VCMPPS(operand.U8(notLess), size, large, large)
			s.VCMPPS(operand.U8(notEqual), zeros, change, marked)
			s.VANDPS(marked, large, large)
			s.VMOVMSKPS(large, mask)
			s.MOVB(mask.As8(), s.at(marks, 0))
			s.plus(32, arrays...)
			s.plus(1, marks)
		})
	})
}

// Fields of entryArgs.
const (
	entryStart   = 0
	entryIndex   = 8
	entryValues  = 16
	entryWeights = 24
	entryOut     = 32
	entryN       = 40
)

// row has the entries of a row: their number, and where their columns and values begin. With ones, all values are 1.
type row struct {
	ones                               bool
	count, index, values, weights, out register
}

// entries writes the sums of entries times weights, and the updates of weights. Weights lie anywhere. To load them one
// by one is faster than an instruction that gathers them.
func (s *avx) entries() {
	for _, ones := range []bool{false, true} {
		s.eachEntries("entrySums", ones, s.entrySums)
		s.eachEntries("addEntries", ones, s.addEntries)
	}
}

// eachEntries calls body for each row.
func (s *avx) eachEntries(name string, ones bool, body func(r row)) {
	if ones {
		name += "Ones"
	}
	s.function(name, "*entryArgs", func(args register) {
		start, index, values := s.field(args, entryStart), s.field(args, entryIndex), s.field(args, entryValues)
		weights, out, n := s.field(args, entryWeights), s.field(args, entryOut), s.field(args, entryN)
		r := row{ones, s.register(), s.register(), s.register(), weights, out}
		s.loop(n, 1, func() {
			s.MOVLQSX(s.at(start, 0), r.index)
			s.MOVLQSX(s.at(start, 4), r.count)
			s.minus(r.index, r.count)
			if !ones {
				s.LEAQ(scaled(values, r.index, 4, 0), r.values)
			}
			s.LEAQ(scaled(index, r.index, 4, 0), r.index)
			body(r)
			s.plus(4, start)
		})
	})
}

// entrySums sums the entries of a row times the weights of their columns, in four sums of float64.
func (s *avx) entrySums(r row) {
	low, high, product, all := x(0), x(2), x(1), s.v(0)
	column := s.register()
	weight := func(k int) operand.Mem {
		s.MOVLQSX(s.at(r.index, 4*k), column)
		return scaled(r.weights, column, 4, 0)
	}
	four, tail, one, end := s.label("four"), s.label("tail"), s.label("one"), s.label("end")
	s.zero(all)
	s.mark(four)
	s.compare(r.count, 4)
	s.branch(below, tail)
	s.VMOVSS(weight(0), product)
	for k := 1; k < 4; k++ {
		s.VINSERTPS(operand.U8(16*k), weight(k), product, product)
	}
	if !r.ones {
		s.VMULPS(s.at(r.values, 0), product, product)
		s.plus(16, r.values)
	}
	s.VCVTPS2PD(product, s.v(1))
	s.VADDPD(s.v(1), all, all)
	s.plus(16, r.index)
	s.minus(4, r.count)
	s.jump(four)
	s.mark(tail)
	s.VEXTRACTF128(operand.U8(1), all, high)
	s.mark(one)
	s.branchIfZero(r.count, end)
	s.VMOVSS(weight(0), product)
	if !r.ones {
		s.VMULSS(s.at(r.values, 0), product, product)
		s.plus(4, r.values)
	}
	s.VCVTSS2SD(product, product, product)
	s.VADDSD(product, low, low) // into the first sum, and the second stays
	s.plus(4, r.index)
	s.minus(1, r.count)
	s.jump(one)
	s.mark(end)
	s.VHADDPD(low, low, low)
	s.VHADDPD(high, high, high)
	s.VADDSD(high, low, low)
	s.VMOVSD(low, s.at(r.out, 0))
	s.plus(8, r.out)
}

// addEntries adds the entries of a row times its factor to the weights of their columns.
func (s *avx) addEntries(r row) {
	factor, product := x(0), x(1)
	s.VMOVSS(s.at(r.out, 0), factor)
	s.plus(4, r.out)
	k, column := s.register(), s.register()
	again, end := s.label("again"), s.label("end")
	s.clear(k)
	s.mark(again)
	s.compare(k, r.count)
	s.JGE(operand.LabelRef(end))
	s.MOVLQSX(scaled(r.index, k, 4, 0), column)
	add := factor
	if !r.ones {
		s.VMULSS(scaled(r.values, k, 4, 0), factor, product)
		add = product
	}
	s.VADDSS(scaled(r.weights, column, 4, 0), add, product)
	s.VMOVSS(product, scaled(r.weights, column, 4, 0))
	s.plus(1, k)
	s.jump(again)
	s.mark(end)
}
