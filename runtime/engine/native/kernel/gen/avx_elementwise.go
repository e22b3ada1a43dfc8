package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// each walks n bytes of up to four arrays, several vectors at a time. Arguments: see elementArgs.
func (s *avx) each(name, doc string, unroll int, before func(args reg.Register), body func(m func(array, i int) operand.Mem, i int)) {
	args := s.function(name, "*elementArgs", doc)
	p := []reg.GPVirtual{s.field(args, 0), s.field(args, 8), s.field(args, 16), s.field(args, 24)}
	n := s.field(args, 32)
	before(args)
	m := func(array, i int) operand.Mem { return at(p[array], i*s.size) }
	// n is a multiple of 16 values: one AVX-512 vector, two of AVX2
	least := 64 / s.size
	big, small, out := s.label("big"), s.label("small"), s.label("out")
	s.Label(big)
	s.CMPQ(n, operand.U32(unroll*s.size))
	s.JB(operand.LabelRef(small))
	for i := range unroll {
		body(m, i)
	}
	for _, r := range p {
		s.ADDQ(operand.U32(unroll*s.size), r)
	}
	s.SUBQ(operand.U32(unroll*s.size), n)
	s.JMP(operand.LabelRef(big))
	s.Label(small)
	s.TESTQ(n, n)
	s.JZ(operand.LabelRef(out))
	for i := range least {
		body(m, i)
	}
	for _, r := range p {
		s.ADDQ(operand.U32(least*s.size), r)
	}
	s.SUBQ(operand.U32(least*s.size), n)
	s.JMP(operand.LabelRef(small))
	s.Label(out)
	s.done()
}

// Arrays of elementArgs, and its scalars.
const (
	dst     = 0
	srcA    = 1
	srcB    = 2
	srcC    = 3
	scalars = 40
)

func (s *avx) elementwise() {
	none := func(reg.Register) {}
	const zeros, six = 15, 14
	clear := func(reg.Register) { s.zero(zeros) }
	scalar := func(args reg.Register) {
		s.zero(zeros)
		s.broadcast(at(args, scalars), six)
	}
	type memory = func(array, i int) operand.Mem
	s.each("add", "is dst = a + b.", 4, none, func(m memory, i int) {
		s.load(m(srcA, i), i)
		s.add(m(srcB, i), i, i)
		s.store(i, m(dst, i))
	})
	s.each("addRelu", "is dst = max(0, a + b).", 4, clear, func(m memory, i int) {
		s.load(m(srcA, i), i)
		s.add(m(srcB, i), i, i)
		s.max(i, zeros, i)
		s.store(i, m(dst, i))
	})
	s.each("relu", "is dst = max(0, a).", 4, clear, func(m memory, i int) {
		s.load(m(srcA, i), i)
		s.max(i, zeros, i)
		s.store(i, m(dst, i))
	})
	s.each("clamp", "is dst = min(s0, max(0, a)).", 4, scalar, func(m memory, i int) {
		s.load(m(srcA, i), i)
		s.max(i, zeros, i)
		s.min(i, six, i)
		s.store(i, m(dst, i))
	})
	s.each("reluBack", "is dst = a where b > 0, else 0.", 4, clear, func(m memory, i int) {
		s.load(m(srcA, i), i)
		s.load(m(srcB, i), 4+i)
		s.keep(greater, 4+i, zeros, i, i, 8+i)
		s.store(i, m(dst, i))
	})
	s.each("clampBack", "is dst = a where 0 < b < s0, else 0.", 2, scalar, func(m memory, i int) {
		s.load(m(srcA, i), i)
		s.load(m(srcB, i), 4+i)
		s.keep(greater, 4+i, zeros, i, i, 8+i)
		s.keep(less, 4+i, six, i, i, 8+i)
		s.store(i, m(dst, i))
	})
	s.each("scale", "is dst = s0 a.", 4, scalar, func(m memory, i int) {
		s.mul(m(srcA, i), six, i)
		s.store(i, m(dst, i))
	})
	affine := func(relu bool) func(m memory, i int) {
		return func(m memory, i int) {
			s.load(m(srcC, i), i)
			s.load(m(srcA, i), 4+i)
			s.fma(m(srcB, i), 4+i, i)
			if relu {
				s.max(i, zeros, i)
			}
			s.store(i, m(dst, i))
		}
	}
	s.each("affineEach", "is dst = b a + c.", 4, none, affine(false))
	s.each("affineEachRelu", "is dst = max(0, b a + c).", 4, clear, affine(true))
	s.squares()
}

// squares sums a*a in four vectors and stores them at dst, [4][vector].
func (s *avx) squares() {
	args := s.function("squares", "*elementArgs", "sums a a in 16 or more partial sums at dst.")
	out, a, n := s.field(args, 0), s.field(args, 8), s.field(args, 32)
	lanes := 64 / s.size
	for i := range lanes {
		s.zero(i)
	}
	s.loop(n, 64, func() {
		for i := range lanes {
			s.load(at(a, i*s.size), 4+i)
			s.fma(4+i, 4+i, i)
		}
		s.advance(64, a)
	})
	for i := range lanes {
		s.store(i, at(out, i*s.size))
	}
	s.done()
}

// optimizers update weights (dst) by gradients (a) and moments (b, c). Scalars: see the Go versions.
func (s *avx) optimizers() {
	sc := func(args reg.Register, i, to int) { s.broadcast(at(args, scalars+4*i), to) }
	type memory = func(array, i int) operand.Mem
	// s0 -lr, s1 decay, s2 scale of the gradient
	s.each("sgd", "is SGD without momentum: w -= lr (scale g + decay w).", 1, func(args reg.Register) {
		sc(args, 0, 15)
		sc(args, 1, 14)
		sc(args, 2, 13)
	}, func(m memory, i int) {
		s.load(m(dst, i), 0)
		s.mul(m(srcA, i), 13, 1)
		s.fma(14, 0, 1)
		s.fma(15, 1, 0)
		s.store(0, m(dst, i))
	})
	// s3 momentum, s4 share of the velocity and s5 of the gradient in the step (plain: 1, 0; Nesterov: momentum, 1)
	s.each("momentum", "is SGD with momentum: v = mu v + g; w -= lr (s4 v + s5 g).", 1, func(args reg.Register) {
		sc(args, 0, 15)
		sc(args, 1, 14)
		sc(args, 2, 13)
		sc(args, 3, 12)
		sc(args, 4, 11)
		sc(args, 5, 10)
	}, func(m memory, i int) {
		s.load(m(dst, i), 0)
		s.mul(m(srcA, i), 13, 1)
		s.fma(14, 0, 1) // g
		s.mul(m(srcB, i), 12, 2)
		s.add(1, 2, 2) // v
		s.store(2, m(srcB, i))
		s.mul(11, 2, 2)
		s.fma(10, 1, 2)
		s.fma(15, 2, 0)
		s.store(0, m(dst, i))
	})
	// s0 -lr/(1-b1^t), s1 L2 decay, s2 scale, s3 b1, s4 1-b1, s5 b2, s6 1-b2, s7 1/sqrt(1-b2^t), s8 eps, s9 1 - lr x
	// AdamW's decay
	s.each("adam", "is Adam and AdamW.", 1, func(args reg.Register) {
		for i, r := range []int{15, 14, 13, 12, 11, 10, 9, 8, 7, 6} {
			sc(args, i, r)
		}
	}, func(m memory, i int) {
		s.load(m(dst, i), 0)
		s.mul(m(srcA, i), 13, 1)
		s.fma(14, 0, 1) // g
		s.mul(6, 0, 0)
		s.mul(m(srcB, i), 12, 2)
		s.fma(11, 1, 2) // first moment
		s.store(2, m(srcB, i))
		s.mul(1, 1, 1)
		s.mul(m(srcC, i), 10, 3)
		s.fma(9, 1, 3) // second moment
		s.store(3, m(srcC, i))
		s.sqrt(3, 3)
		s.mul(8, 3, 3)
		s.add(7, 3, 3)
		s.div(3, 2, 2)
		s.fma(15, 2, 0)
		s.store(0, m(dst, i))
	})
}
