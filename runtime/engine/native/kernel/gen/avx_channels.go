package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of channelArgs.
const (
	argX      = 0
	argY      = 8
	argZ      = 16
	argP      = 24
	argQ      = 32
	argR      = 40
	argMask   = 48
	argOut    = 56
	argC      = 64 // channels
	argLanes  = 72 // bytes of a row that count
	argRow    = 80 // bytes of a row
	argPixels = 88
	argXPixel = 96  // bytes of a pixel of x
	argYPixel = 104 // of y
)

func (s *avx) channels() {
	s.affine("affine", false)
	s.affine("affineRelu", true)
	s.normBack()
	for _, block := range []int{s.block, 1} {
		s.reduce(fmt.Sprintf("moments%d_", block), "sums (x - p) and its square, where mask, a channel.", block, 2, s.moments)
		s.reduce(fmt.Sprintf("normSums%d_", block), "sums y and y (x - p) a channel.", block, 2, s.normSums(false))
		s.reduce(fmt.Sprintf("normSumsRelu%d_", block), "sets y = 0 where z <= 0, then sums y and y (x - p) a channel.", block, 2, s.normSums(true))
		s.reduce(fmt.Sprintf("rowSums%d_", block), "sums x a channel.", block, 1, s.rowSums)
		s.reduce(fmt.Sprintf("dots%d_", block), "sums x y a channel.", block, 1, s.dots)
	}
}

// rows walks pixels, channels and the vectors of a row.
func (s *avx) rows(name, doc string, pointers []int, channel func(args, c reg.Register), body func(p []reg.GPVirtual, lane reg.Register)) {
	args := s.function(name, "*channelArgs", doc)
	var p []reg.GPVirtual
	for _, offset := range pointers {
		p = append(p, s.field(args, offset))
	}
	pixels, row := s.field(args, argPixels), s.field(args, argRow)
	s.loop(pixels, 1, func() {
		c := s.GP64()
		s.XORQ(c, c)
		next := s.label("channel")
		s.Label(next)
		channel(args, c)
		lane := s.GP64()
		s.XORQ(lane, lane)
		l := s.label("lane")
		s.Label(l)
		body(p, lane)
		s.ADDQ(operand.U32(s.size), lane)
		s.CMPQ(lane, row)
		s.JB(operand.LabelRef(l))
		for _, r := range p {
			s.ADDQ(row, r)
		}
		s.INCQ(c)
		s.CMPQ(c, at(args, argC))
		s.JB(operand.LabelRef(next))
	})
	s.done()
}

// affine is y = p x + q a channel.
func (s *avx) affine(name string, relu bool) {
	doc := "is y = p x + q, p and q a channel."
	if relu {
		doc = "is y = max(0, p x + q), p and q a channel."
	}
	s.rows(name, doc, []int{argX, argY}, func(args, c reg.Register) {
		for i, offset := range []int{argP, argQ} {
			t := s.field(args, offset)
			s.broadcast(indexed(t, c, 4, 0), 1+i)
		}
		if relu {
			s.zero(3)
		}
	}, func(p []reg.GPVirtual, lane reg.Register) {
		s.load(indexed(p[0], lane, 1, 0), 0)
		s.VFMADD213PS(s.v(2), s.v(1), s.v(0))
		if relu {
			s.max(0, 3, 0)
		}
		s.store(0, indexed(p[1], lane, 1, 0))
	})
}

// normBack is y = (p y + q x + r) mask: batch norm's gradient in place of its output's.
func (s *avx) normBack() {
	var mask reg.GPVirtual
	s.rows("normBack", "is y = (p y + q x + r) mask, p, q and r a channel.", []int{argX, argY}, func(args, c reg.Register) {
		for i, offset := range []int{argP, argQ, argR} {
			t := s.field(args, offset)
			s.broadcast(indexed(t, c, 4, 0), 1+i)
		}
		mask = s.field(args, argMask)
	}, func(p []reg.GPVirtual, lane reg.Register) {
		s.load(indexed(p[1], lane, 1, 0), 0)
		s.VFMADD213PS(s.v(3), s.v(1), s.v(0))
		s.fma(indexed(p[0], lane, 1, 0), 2, 0)
		s.mul(indexed(mask, lane, 1, 0), 0, 0)
		s.store(0, indexed(p[1], lane, 1, 0))
	})
}

// reducer adds what one vector of one channel contributes: acc is its first accumulator, tmp a free register.
type reducer func(args reg.Register, m func(array int) operand.Mem, lane reg.Register, acc, tmp int)

// reduce sums over pixels and lanes for a block of channels, [channel][sums][16] at out, adding to what is there.
func (s *avx) reduce(name, doc string, block, sums int, body reducer) {
	args := s.function(name, "*channelArgs", doc)
	x, y, z := s.field(args, argX), s.field(args, argY), s.field(args, argZ)
	ptr := []reg.GPVirtual{x, y, z}
	out, pixels := s.field(args, argOut), s.field(args, argPixels)
	// A partial sum is 16 values wide: with AVX2 the second half stays as it is.
	for c := range block {
		for k := range sums {
			s.load(at(out, (c*sums+k)*64), c*sums+k)
		}
	}
	tmp := block * sums
	s.loop(pixels, 1, func() {
		off, row := s.GP64(), s.field(args, argRow)
		s.XORQ(off, off)
		for c := range block {
			lane, end := s.GP64(), s.field(args, argLanes)
			s.MOVQ(off, lane)
			s.ADDQ(off, end)
			l := s.label("lane")
			s.Label(l)
			m := func(array int) operand.Mem { return indexed(ptr[array], lane, 1, 0) }
			inRow := s.GP64()
			s.MOVQ(lane, inRow)
			s.SUBQ(off, inRow)
			channel = c
			body(args, m, inRow, c*sums, tmp)
			s.ADDQ(operand.U32(s.size), lane)
			s.CMPQ(lane, end)
			s.JB(operand.LabelRef(l))
			s.ADDQ(row, off)
		}
		s.ADDQ(at(args, argXPixel), x)
		s.ADDQ(at(args, argYPixel), y)
		s.ADDQ(at(args, argYPixel), z)
	})
	for c := range block {
		for k := range sums {
			s.store(c*sums+k, at(out, (c*sums+k)*64))
		}
	}
	s.done()
}

var channel int // the one that a reducer works on

// less is x - p of the channel in register to.
func (s *avx) centered(args reg.Register, x operand.Mem, to, tmp int) {
	p := s.field(args, argP)
	s.broadcast(at(p, 4*channel), tmp)
	s.load(x, to)
	s.sub(tmp, to, to)
}

func (s *avx) moments(args reg.Register, m func(int) operand.Mem, lane reg.Register, acc, tmp int) {
	s.centered(args, m(0), tmp, tmp+1)
	mask := s.field(args, argMask)
	s.mul(indexed(mask, lane, 1, 0), tmp, tmp)
	s.add(tmp, acc, acc)
	s.fma(tmp, tmp, acc+1)
}

func (s *avx) normSums(relu bool) reducer {
	return func(args reg.Register, m func(int) operand.Mem, _ reg.Register, acc, tmp int) {
		s.load(m(1), tmp+2)
		if relu {
			s.zero(tmp + 3)
			s.load(m(2), tmp+4)
			s.keep(greater, tmp+4, tmp+3, tmp+2, tmp+2, tmp+5)
			s.store(tmp+2, m(1))
		}
		s.centered(args, m(0), tmp, tmp+1)
		s.add(tmp+2, acc, acc)
		s.fma(tmp+2, tmp, acc+1)
	}
}

func (s *avx) rowSums(_ reg.Register, m func(int) operand.Mem, _ reg.Register, acc, _ int) {
	s.add(m(0), acc, acc)
}

func (s *avx) dots(_ reg.Register, m func(int) operand.Mem, _ reg.Register, acc, tmp int) {
	s.load(m(0), tmp)
	s.fma(m(1), tmp, acc)
}
