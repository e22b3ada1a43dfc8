package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Fields of entryArgs.
const (
	entryStart   = 0
	entryIndex   = 8
	entryValues  = 16
	entryWeights = 24
	entryOut     = 32
	entryN       = 40
)

// entries is sums of entries times weights, and the other way. Weights lie anywhere: they come one by one into a
// vector, which takes less than an instruction that gathers them.
func (s *avx) entries() {
	for _, ones := range []bool{false, true} {
		s.entrySums(ones)
		s.addEntries(ones)
	}
}

// eachEntries walks rows: body gets how many entries the row has, and where its columns and values begin.
func (s *avx) eachEntries(name, doc string, ones bool, body func(count, index, values, weights, out reg.Register)) {
	if ones {
		name, doc = name+"Ones", doc+" All entries are 1."
	}
	args := s.function(name, "*entryArgs", doc)
	start, allIndex, allValues := s.field(args, entryStart), s.field(args, entryIndex), s.field(args, entryValues)
	weights, out, n := s.field(args, entryWeights), s.field(args, entryOut), s.field(args, entryN)
	count, index, values := s.GP64(), s.GP64(), s.GP64()
	s.loop(n, 1, func() {
		s.MOVLQSX(at(start, 0), index)
		s.MOVLQSX(at(start, 4), count)
		s.SUBQ(index, count)
		if !ones {
			s.LEAQ(indexed(allValues, index, 4, 0), values)
		}
		s.LEAQ(indexed(allIndex, index, 4, 0), index)
		body(count, index, values, weights, out)
		s.advance(4, start)
	})
	s.done()
}

func (s *avx) entrySums(ones bool) {
	const low, high, product = 0, 2, 1
	doc := "writes each row's entries times the weights of their columns, in four sums of float64."
	s.eachEntries("entrySums", doc, ones, func(count, index, values, weights, out reg.Register) {
		column := s.GP64()
		weight := func(k int) operand.Mem {
			s.MOVLQSX(at(index, 4*k), column)
			return indexed(weights, column, 4, 0)
		}
		four, tail, one, end := s.label("four"), s.label("tail"), s.label("one"), s.label("end")
		s.zero(low)
		s.Label(four)
		s.CMPQ(count, operand.U32(4))
		s.JB(operand.LabelRef(tail))
		s.VMOVSS(weight(0), xmm[product])
		for k := 1; k < 4; k++ {
			s.VINSERTPS(operand.U8(16*k), weight(k), xmm[product], xmm[product])
		}
		if !ones {
			s.VMULPS(at(values, 0), xmm[product], xmm[product])
			s.advance(16, values)
		}
		s.VCVTPS2PD(xmm[product], ymm[product])
		s.VADDPD(ymm[product], ymm[low], ymm[low])
		s.advance(16, index)
		s.SUBQ(operand.U32(4), count)
		s.JMP(operand.LabelRef(four))
		s.Label(tail)
		s.VEXTRACTF128(operand.U8(1), ymm[low], xmm[high])
		s.Label(one)
		s.TESTQ(count, count)
		s.JZ(operand.LabelRef(end))
		s.VMOVSS(weight(0), xmm[product])
		if !ones {
			s.VMULSS(at(values, 0), xmm[product], xmm[product])
			s.advance(4, values)
		}
		s.VCVTSS2SD(xmm[product], xmm[product], xmm[product])
		s.VADDSD(xmm[product], xmm[low], xmm[low]) // into the first sum, and the second stays
		s.advance(4, index)
		s.SUBQ(operand.U32(1), count)
		s.JMP(operand.LabelRef(one))
		s.Label(end)
		s.VHADDPD(xmm[low], xmm[low], xmm[low])
		s.VHADDPD(xmm[high], xmm[high], xmm[high])
		s.VADDSD(xmm[high], xmm[low], xmm[low])
		s.VMOVSD(xmm[low], at(out, 0))
		s.advance(8, out)
	})
}

func (s *avx) addEntries(ones bool) {
	const factor, product = 0, 1
	doc := "adds each row's entries times its factor to the weights of their columns."
	s.eachEntries("addEntries", doc, ones, func(count, index, values, weights, out reg.Register) {
		s.VMOVSS(at(out, 0), xmm[factor])
		s.advance(4, out)
		k, column := s.GP64(), s.GP64()
		again, end := s.label("again"), s.label("end")
		s.XORQ(k, k)
		s.Label(again)
		s.CMPQ(k, count)
		s.JGE(operand.LabelRef(end))
		s.MOVLQSX(indexed(index, k, 4, 0), column)
		add := xmm[factor]
		if !ones {
			s.VMULSS(indexed(values, k, 4, 0), xmm[factor], xmm[product])
			add = xmm[product]
		}
		s.VADDSS(indexed(weights, column, 4, 0), add, xmm[product])
		s.VMOVSS(xmm[product], indexed(weights, column, 4, 0))
		s.ADDQ(operand.U32(1), k)
		s.JMP(operand.LabelRef(again))
		s.Label(end)
	})
}
