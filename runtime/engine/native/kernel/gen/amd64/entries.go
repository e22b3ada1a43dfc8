package main

import (
	. "github.com/mmcloughlin/avo/build"
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
func entries() {
	for _, ones := range []bool{false, true} {
		entrySums(ones)
		addEntries(ones)
	}
}

// eachEntries walks rows: body gets how many entries the row has, and where its columns and values begin.
func eachEntries(name, doc string, ones bool, body func(count, index, values, weights, out reg.Register)) {
	if ones {
		name, doc = name+"Ones", doc+" All entries are 1."
	}
	args := avx2.function(name, doc)
	start, allIndex, allValues := field(args, entryStart), field(args, entryIndex), field(args, entryValues)
	weights, out, n := field(args, entryWeights), field(args, entryOut), field(args, entryN)
	count, index, values := GP64(), GP64(), GP64()
	loop(n, 1, func() {
		MOVLQSX(at(start, 0), index)
		MOVLQSX(at(start, 4), count)
		SUBQ(index, count)
		if !ones {
			LEAQ(indexed(allValues, index, 4, 0), values)
		}
		LEAQ(indexed(allIndex, index, 4, 0), index)
		body(count, index, values, weights, out)
		advance(4, start)
	})
	done()
}

func entrySums(ones bool) {
	const low, high, product = 0, 2, 1
	doc := "writes each row's entries times the weights of their columns, in four sums of float64."
	eachEntries("entrySums", doc, ones, func(count, index, values, weights, out reg.Register) {
		column := GP64()
		weight := func(k int) operand.Mem {
			MOVLQSX(at(index, 4*k), column)
			return indexed(weights, column, 4, 0)
		}
		four, tail, one, end := label("four"), label("tail"), label("one"), label("end")
		avx2.zero(low)
		Label(four)
		CMPQ(count, operand.U32(4))
		JB(operand.LabelRef(tail))
		VMOVSS(weight(0), xmm[product])
		for k := 1; k < 4; k++ {
			VINSERTPS(operand.U8(16*k), weight(k), xmm[product], xmm[product])
		}
		if !ones {
			VMULPS(at(values, 0), xmm[product], xmm[product])
			advance(16, values)
		}
		VCVTPS2PD(xmm[product], ymm[product])
		VADDPD(ymm[product], ymm[low], ymm[low])
		advance(16, index)
		SUBQ(operand.U32(4), count)
		JMP(operand.LabelRef(four))
		Label(tail)
		VEXTRACTF128(operand.U8(1), ymm[low], xmm[high])
		Label(one)
		TESTQ(count, count)
		JZ(operand.LabelRef(end))
		VMOVSS(weight(0), xmm[product])
		if !ones {
			VMULSS(at(values, 0), xmm[product], xmm[product])
			advance(4, values)
		}
		VCVTSS2SD(xmm[product], xmm[product], xmm[product])
		VADDSD(xmm[product], xmm[low], xmm[low]) // into the first sum, and the second stays
		advance(4, index)
		SUBQ(operand.U32(1), count)
		JMP(operand.LabelRef(one))
		Label(end)
		VHADDPD(xmm[low], xmm[low], xmm[low])
		VHADDPD(xmm[high], xmm[high], xmm[high])
		VADDSD(xmm[high], xmm[low], xmm[low])
		VMOVSD(xmm[low], at(out, 0))
		advance(8, out)
	})
}

func addEntries(ones bool) {
	const factor, product = 0, 1
	doc := "adds each row's entries times its factor to the weights of their columns."
	eachEntries("addEntries", doc, ones, func(count, index, values, weights, out reg.Register) {
		VMOVSS(at(out, 0), xmm[factor])
		advance(4, out)
		k, column := GP64(), GP64()
		again, end := label("again"), label("end")
		XORQ(k, k)
		Label(again)
		CMPQ(k, count)
		JGE(operand.LabelRef(end))
		MOVLQSX(indexed(index, k, 4, 0), column)
		add := xmm[factor]
		if !ones {
			VMULSS(indexed(values, k, 4, 0), xmm[factor], xmm[product])
			add = xmm[product]
		}
		VADDSS(indexed(weights, column, 4, 0), add, xmm[product])
		VMOVSS(xmm[product], indexed(weights, column, 4, 0))
		ADDQ(operand.U32(1), k)
		JMP(operand.LabelRef(again))
		Label(end)
	})
}
