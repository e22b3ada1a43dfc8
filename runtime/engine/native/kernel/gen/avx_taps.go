package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of tapArgs.
const (
	tapX     = 0
	tapY     = 8
	tapDX    = 16
	tapOffs  = 24 // byte offsets into x
	tapCount = 32
	tapBytes = 40  // of an output pixel
	tapScale = 48  // float32
	tapW     = 56  // depthwise: weights, [taps][channels]
	tapWOffs = 64  // byte offsets into w
	tapRow   = 72  // bytes of a channel's row
	tapLanes = 80  // bytes of it that are computed
	tapC     = 88  // channels
	tapDY    = 96  // maxPoolBack's gradient of y
	tapN     = 104 // output pixels with the same offsets
	tapXStep = 112 // bytes from one to the next of them in x
	tapYStep = 120 // and in y
)

// taps are the pools: an output pixel is made of input pixels at a list of offsets, value by value.
func (s *avx) taps() {
	s.pool("maxPool", "is y = the largest of x at the offsets.", false, func(i int, m operand.Mem) { s.max(m, i, i) })
	s.pool("sumPool", "is y = scale times the sum of x at the offsets.", true, func(i int, m operand.Mem) { s.add(m, i, i) })
	s.maxPoolBack()
	s.sumPoolBack()
}

// strips walks the bytes of a pixel, vectors at a time, in steps of 16 values at least.
func (s *avx) strips(args reg.Register, unroll int, body func(pos reg.Register, vectors int)) {
	pos, end := s.GP64(), s.field(args, tapBytes)
	s.XORQ(pos, pos)
	least := 64 / s.size
	big, small, out := s.label("big"), s.label("small"), s.label("out")
	left := s.GP64()
	s.Label(big)
	s.MOVQ(end, left)
	s.SUBQ(pos, left)
	s.CMPQ(left, operand.U32(unroll*s.size))
	s.JB(operand.LabelRef(small))
	body(pos, unroll)
	s.ADDQ(operand.U32(unroll*s.size), pos)
	s.JMP(operand.LabelRef(big))
	s.Label(small)
	s.CMPQ(pos, end)
	s.JAE(operand.LabelRef(out))
	body(pos, least)
	s.ADDQ(operand.U32(least*s.size), pos)
	s.JMP(operand.LabelRef(small))
	s.Label(out)
}

// tapLoop repeats body for each offset with the address of x there.
func (s *avx) tapLoop(args, base, pos reg.Register, body func(x reg.Register, tap reg.Register)) {
	tap := s.GP64()
	s.XORQ(tap, tap)
	offs := s.field(args, tapOffs)
	l := s.label("tap")
	s.Label(l)
	x := s.GP64()
	s.MOVQ(indexed(offs, tap, 8, 0), x)
	s.ADDQ(base, x)
	s.ADDQ(pos, x)
	body(x, tap)
	s.INCQ(tap)
	s.CMPQ(tap, at(args, tapCount))
	s.JB(operand.LabelRef(l))
}

// eachPixel repeats body for the output pixels that have the same offsets, and moves x and y along.
func (s *avx) eachPixel(args, x, y reg.Register, body func()) {
	pixels := s.field(args, tapN)
	s.loop(pixels, 1, func() {
		body()
		s.ADDQ(at(args, tapXStep), x)
		s.ADDQ(at(args, tapYStep), y)
	})
}

func (s *avx) pool(name, doc string, scaled bool, combine func(i int, m operand.Mem)) {
	args := s.function(name, "*tapArgs", doc)
	x, y := s.field(args, tapX), s.field(args, tapY)
	s.broadcast(at(args, tapScale), 15) // the sum's factor, or where the maximum starts
	s.eachPixel(args, x, y, func() {
		s.strips(args, 4, func(pos reg.Register, vectors int) {
			for i := range vectors {
				if scaled {
					s.zero(i)
				} else {
					s.VMOVAPS(s.v(15), s.v(i))
				}
			}
			s.tapLoop(args, x, pos, func(p, _ reg.Register) {
				for i := range vectors {
					combine(i, at(p, i*s.size))
				}
			})
			for i := range vectors {
				if scaled {
					s.mul(15, i, i)
				}
				s.store(i, indexed(y, pos, 1, i*s.size))
			}
		})
	})
	s.done()
}

// maxPoolBack gives each output's gradient to the first input that equals the output.
func (s *avx) maxPoolBack() {
	args := s.function("maxPoolBack", "*tapArgs", "adds the gradient dy to dx at the first offset where x equals y.")
	x, y, dx, dy := s.field(args, tapX), s.field(args, tapY), s.field(args, tapDX), s.field(args, tapDY)
	s.strips(args, 2, func(pos reg.Register, vectors int) {
		for i := range vectors {
			s.load(indexed(y, pos, 1, i*s.size), i)
			s.load(indexed(dy, pos, 1, i*s.size), 2+i)
		}
		s.tapLoop(args, x, pos, func(p, _ reg.Register) {
			d := s.GP64()
			s.MOVQ(p, d)
			s.SUBQ(x, d)
			s.ADDQ(dx, d)
			for i := range vectors {
				s.load(at(p, i*s.size), 4+i)
				s.keep(equal, 4+i, i, 2+i, 6+i, 8+i)
				s.sub(6+i, 2+i, 2+i)
				s.add(at(d, i*s.size), 6+i, 6+i)
				s.store(6+i, at(d, i*s.size))
			}
		})
	})
	s.done()
}

func (s *avx) sumPoolBack() {
	args := s.function("sumPoolBack", "*tapArgs", "adds scale times y to dx at the offsets.")
	y, dx := s.field(args, tapY), s.field(args, tapDX)
	s.broadcast(at(args, tapScale), 15)
	s.strips(args, 4, func(pos reg.Register, vectors int) {
		for i := range vectors {
			s.mul(indexed(y, pos, 1, i*s.size), 15, i)
		}
		s.tapLoop(args, dx, pos, func(d, _ reg.Register) {
			for i := range vectors {
				s.add(at(d, i*s.size), i, 4+i)
				s.store(4+i, at(d, i*s.size))
			}
		})
	})
	s.done()
}

// weighted is y = the sum over taps of w x, value by value: a depthwise convolution where channels are the vector.
func (s *avx) weighted() {
	args := s.function("weighted", "*tapArgs", "is y = the sum of w at its offsets times x at its own, value by value.")
	x, y, w := s.field(args, tapX), s.field(args, tapY), s.field(args, tapW)
	s.eachPixel(args, x, y, func() {
		s.strips(args, 4, func(pos reg.Register, vectors int) {
			for i := range vectors {
				s.zero(i)
			}
			woffs := s.field(args, tapWOffs)
			s.tapLoop(args, x, pos, func(p, tap reg.Register) {
				q := s.GP64()
				s.MOVQ(indexed(woffs, tap, 8, 0), q)
				s.ADDQ(w, q)
				s.ADDQ(pos, q)
				for i := range vectors {
					s.load(at(q, i*s.size), 4+i)
					s.fma(at(p, i*s.size), 4+i, i)
				}
			})
			for i := range vectors {
				s.store(i, indexed(y, pos, 1, i*s.size))
			}
		})
	})
	s.done()
}

// startDepthwise sets the sums to zero, or to y where dx is set.
func (s *avx) startDepthwise(args, y, lane reg.Register, block, vectors int, at4 func(reg.Register, int, int) operand.Mem) {
	for i := range block * vectors {
		s.zero(i)
	}
	out := s.label("sum")
	s.CMPQ(at(args, tapDX), operand.U8(0))
	s.JE(operand.LabelRef(out))
	old := s.GP64()
	s.MOVQ(y, old)
	s.ADDQ(lane, old)
	for c := range block {
		for i := range vectors {
			s.load(at4(old, c, i*s.size), c*vectors+i)
		}
	}
	s.Label(out)
}

// depthwise is y = the sum over taps of w x, channel by channel; it also makes the gradient of its input, with other
// lists.
func (s *avx) depthwise() {
	for _, block := range []int{4, 1} {
		args := s.function(fmt.Sprintf("depthwise%d_", block), "*tapArgs", "is y = the sum over taps of w x, a block of channels at a time.")
		x, y, w := s.field(args, tapX), s.field(args, tapY), s.field(args, tapW)
		row, channels := s.field(args, tapRow), s.field(args, tapC)
		row3 := s.GP64()
		s.LEAQ(indexed(row, row, 2, 0), row3)
		at4 := func(base reg.Register, c, disp int) operand.Mem {
			switch c {
			case 0:
				return at(base, disp)
			case 3:
				return indexed(base, row3, 1, disp)
			default:
				return indexed(base, row, uint8(c), disp)
			}
		}
		vectors := 64 / s.size // of 16 lanes
		s.loop(channels, block, func() {
			lane := s.GP64()
			s.XORQ(lane, lane)
			l := s.label("lane")
			s.Label(l)
			s.startDepthwise(args, y, lane, block, vectors, at4)
			woffs := s.field(args, tapWOffs)
			s.tapLoop(args, x, lane, func(p, tap reg.Register) {
				q := s.GP64()
				s.MOVQ(indexed(woffs, tap, 8, 0), q)
				s.ADDQ(w, q)
				for c := range block {
					s.broadcast(at(q, 4*c), 14)
					for i := range vectors {
						s.fma(at4(p, c, i*s.size), 14, c*vectors+i)
					}
				}
			})
			out := s.GP64()
			s.MOVQ(y, out)
			s.ADDQ(lane, out)
			for c := range block {
				for i := range vectors {
					s.store(c*vectors+i, at4(out, c, i*s.size))
				}
			}
			s.ADDQ(operand.U32(64), lane)
			s.CMPQ(lane, at(args, tapLanes))
			s.JB(operand.LabelRef(l))
			for range block {
				s.ADDQ(row, x)
				s.ADDQ(row, y)
			}
			s.advance(4*block, w)
		})
		s.done()
	}
}
