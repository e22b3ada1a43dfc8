package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// eachElement takes several vectors at a time, then 16 values: one vector of AVX-512 or two of AVX2.
func (s *avx) eachElement(e elementKernel, body func(p places, i int)) {
	s.function(e.name, "*elementArgs", func(args register) {
		p := []register{s.field(args, 8*dst), s.field(args, 8*srcA), s.field(args, 8*srcB), s.field(args, 8*srcC)}
		n := s.field(args, elementN)
		var constants []vector
		if e.zero {
			s.zero(s.constant(0))
			constants = append(constants, s.constant(0))
		}
		zeros := len(constants)
		for i := range e.scalars {
			constants = append(constants, s.constant(zeros+i))
		}
		s.broadcastEach(args, elementScalars, constants[zeros:]...)
		turn := func(vectors int) {
			for i := range vectors {
				body(func(array int) place { return s.at(p[array], i*s.size()) }, i)
			}
			s.plus(vectors*s.size(), p...)
			s.minus(vectors*s.size(), n)
		}
		big, small, out := s.label("big"), s.label("small"), s.label("out")
		s.mark(big)
		s.compare(n, e.vectors*s.size())
		s.branch(below, small)
		turn(e.vectors)
		s.jump(big)
		s.mark(small)
		s.branchIfZero(n, out)
		turn(64 / s.size())
		s.jump(small)
		s.mark(out)
	})
}

// placesAt has one index for all arrays.
func (s *avx) placesAt(offset register, arrays ...register) (out []place) {
	index := s.register()
	if offset == nil {
		s.clear(index)
	} else {
		s.MOVQ(offset, index)
	}
	for _, array := range arrays {
		out = append(out, s.indexed(array, index))
	}
	return out
}

func (s *avx) placesOf(pointers ...register) ([]place, func()) {
	p := s.placesAt(nil, pointers...)
	return p, func() {
		for _, pointer := range pointers {
			s.plus(p[0].(operand.Mem).Index, pointer)
		}
	}
}

// advance adds to each index once: places share it.
func (s *avx) advance(bytes int, places ...place) {
	moved := map[reg.Register]bool{}
	for _, p := range places {
		if i := p.(operand.Mem).Index; !moved[i] {
			moved[i] = true
			s.plus(bytes, i)
		}
	}
}

func (s *avx) eachSpan(bytes register, widths []int, places []place, body func(n arithmetic)) {
	left, out := s.copyRegister(bytes), s.label("out")
	for i, n := range widths {
		again, less := s.label("span"), out
		if i+1 < len(widths) {
			less = s.label("less")
		}
		s.mark(again)
		s.compare(left, 4*n)
		s.branch(below, less)
		body(s.span(n))
		s.advance(4*n, places...)
		s.minus(4*n, left)
		s.jump(again)
		if less != out {
			s.mark(less)
		}
	}
	s.mark(out)
}

// avxSpan writes instructions on 8, 4 or 1 values.
type avxSpan struct {
	*avx
	n int
}

func (s *avx) span(n int) arithmetic { return avxSpan{s, n} }

// narrow returns the part of a vector that the instructions use.
func (s avxSpan) narrow(v vector) operand.Op {
	r, ok := v.(reg.VecPhysical)
	switch {
	case !ok:
		return v
	case s.n == 8:
		return r.AsY()
	default:
		return r.AsX()
	}
}

// write writes the packed instruction, or the one for a single value.
func (s avxSpan) write(packed, single func(...operand.Op), operands ...vector) {
	if s.n == 1 {
		packed = single
	}
	out := make([]operand.Op, len(operands))
	for i, v := range operands {
		out[i] = s.narrow(v)
	}
	packed(out...)
}

func (s avxSpan) load(from place, to vector) { s.write(s.VMOVUPS, s.VMOVSS, from, to) }
func (s avxSpan) store(v vector, to place)   { s.write(s.VMOVUPS, s.VMOVSS, v, to) }
func (s avxSpan) sub(to, x, y vector)        { s.write(s.VSUBPS, s.VSUBSS, y, x, to) }
func (s avxSpan) div(to, x, y vector)        { s.write(s.VDIVPS, s.VDIVSS, y, x, to) }

func (s avxSpan) add(to, x, y vector) {
	x, y = memoryFirst(x, y)
	s.write(s.VADDPS, s.VADDSS, x, y, to)
}

func (s avxSpan) mul(to, x, y vector) {
	x, y = memoryFirst(x, y)
	s.write(s.VMULPS, s.VMULSS, x, y, to)
}

func (s avxSpan) sqrt(to, x vector) {
	if s.n == 1 {
		s.VSQRTSS(s.narrow(x), s.narrow(x), s.narrow(to))
		return
	}
	s.VSQRTPS(s.narrow(x), s.narrow(to))
}

func (s *avx) dotProduct(x, y place, bytes register) vector {
	sum, product := s.v(0), s.v(1)
	s.zero(sum)
	s.eachSpan(bytes, []int{4, 1}, []place{x, y}, func(n arithmetic) {
		n.load(x, product)
		n.mul(product, product, y)
		n.add(sum, sum, product) // of one value: into the first sum, and the others stay
	})
	four := avxSpan{s, 4}
	s.VHADDPS(four.narrow(sum), four.narrow(sum), four.narrow(sum)) // a + b, c + d
	s.VMOVSHDUP(four.narrow(sum), four.narrow(product))
	s.span(1).add(sum, sum, product)
	return sum
}
