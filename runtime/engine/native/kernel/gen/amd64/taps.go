package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
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
func (s isa) taps() {
	s.pool("maxPool", "is y = the largest of x at the offsets.", false, func(i int, m operand.Mem) { s.max(m, i, i) })
	s.pool("sumPool", "is y = scale times the sum of x at the offsets.", true, func(i int, m operand.Mem) { s.add(m, i, i) })
	s.maxPoolBack()
	s.sumPoolBack()
}

// strips walks the bytes of a pixel, vectors at a time, in steps of 16 values at least.
func (s isa) strips(args reg.Register, unroll int, body func(pos reg.Register, vectors int)) {
	pos, end := GP64(), field(args, tapBytes)
	XORQ(pos, pos)
	least := 64 / s.size
	big, small, out := label("big"), label("small"), label("out")
	left := GP64()
	Label(big)
	MOVQ(end, left)
	SUBQ(pos, left)
	CMPQ(left, operand.U32(unroll*s.size))
	JB(operand.LabelRef(small))
	body(pos, unroll)
	ADDQ(operand.U32(unroll*s.size), pos)
	JMP(operand.LabelRef(big))
	Label(small)
	CMPQ(pos, end)
	JAE(operand.LabelRef(out))
	body(pos, least)
	ADDQ(operand.U32(least*s.size), pos)
	JMP(operand.LabelRef(small))
	Label(out)
}

// tapLoop repeats body for each offset with the address of x there.
func (s isa) tapLoop(args, base, pos reg.Register, body func(x reg.Register, tap reg.Register)) {
	tap := GP64()
	XORQ(tap, tap)
	offs := field(args, tapOffs)
	l := label("tap")
	Label(l)
	x := GP64()
	MOVQ(indexed(offs, tap, 8, 0), x)
	ADDQ(base, x)
	ADDQ(pos, x)
	body(x, tap)
	INCQ(tap)
	CMPQ(tap, at(args, tapCount))
	JB(operand.LabelRef(l))
}

// eachPixel repeats body for the output pixels that have the same offsets, and moves x and y along.
func (s isa) eachPixel(args, x, y reg.Register, body func()) {
	pixels := field(args, tapN)
	loop(pixels, 1, func() {
		body()
		ADDQ(at(args, tapXStep), x)
		ADDQ(at(args, tapYStep), y)
	})
}

func (s isa) pool(name, doc string, scaled bool, combine func(i int, m operand.Mem)) {
	args := s.function(name, doc)
	x, y := field(args, tapX), field(args, tapY)
	s.broadcast(at(args, tapScale), 15) // the sum's factor, or where the maximum starts
	s.eachPixel(args, x, y, func() {
		s.strips(args, 4, func(pos reg.Register, vectors int) {
			for i := range vectors {
				if scaled {
					s.zero(i)
				} else {
					VMOVAPS(s.v(15), s.v(i))
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
	done()
}

// maxPoolBack gives each output's gradient to the first input that equals the output.
func (s isa) maxPoolBack() {
	args := s.function("maxPoolBack", "adds the gradient dy to dx at the first offset where x equals y.")
	x, y, dx, dy := field(args, tapX), field(args, tapY), field(args, tapDX), field(args, tapDY)
	s.strips(args, 2, func(pos reg.Register, vectors int) {
		for i := range vectors {
			s.load(indexed(y, pos, 1, i*s.size), i)
			s.load(indexed(dy, pos, 1, i*s.size), 2+i)
		}
		s.tapLoop(args, x, pos, func(p, _ reg.Register) {
			d := GP64()
			MOVQ(p, d)
			SUBQ(x, d)
			ADDQ(dx, d)
			for i := range vectors {
				s.load(at(p, i*s.size), 4+i)
				s.keep(equal, 4+i, i, 2+i, 6+i, 8+i)
				s.sub(6+i, 2+i, 2+i)
				s.add(at(d, i*s.size), 6+i, 6+i)
				s.store(6+i, at(d, i*s.size))
			}
		})
	})
	done()
}

func (s isa) sumPoolBack() {
	args := s.function("sumPoolBack", "adds scale times y to dx at the offsets.")
	y, dx := field(args, tapY), field(args, tapDX)
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
	done()
}

// weighted is y = the sum over taps of w x, value by value: a depthwise convolution where channels are the vector.
func (s isa) weighted() {
	args := s.function("weighted", "is y = the sum of w at its offsets times x at its own, value by value.")
	x, y, w := field(args, tapX), field(args, tapY), field(args, tapW)
	s.eachPixel(args, x, y, func() {
		s.strips(args, 4, func(pos reg.Register, vectors int) {
			for i := range vectors {
				s.zero(i)
			}
			woffs := field(args, tapWOffs)
			s.tapLoop(args, x, pos, func(p, tap reg.Register) {
				q := GP64()
				MOVQ(indexed(woffs, tap, 8, 0), q)
				ADDQ(w, q)
				ADDQ(pos, q)
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
	done()
}

// startDepthwise sets the sums to zero, or to y where dx is set.
func (s isa) startDepthwise(args, y, lane reg.Register, block, vectors int, at4 func(reg.Register, int, int) operand.Mem) {
	for i := range block * vectors {
		s.zero(i)
	}
	out := label("sum")
	CMPQ(at(args, tapDX), operand.U8(0))
	JE(operand.LabelRef(out))
	old := GP64()
	MOVQ(y, old)
	ADDQ(lane, old)
	for c := range block {
		for i := range vectors {
			s.load(at4(old, c, i*s.size), c*vectors+i)
		}
	}
	Label(out)
}

// depthwise is y = the sum over taps of w x, channel by channel; it also makes the gradient of its input, with other
// lists.
func (s isa) depthwise() {
	for _, block := range []int{4, 1} {
		args := s.function(fmt.Sprintf("depthwise%d_", block), "is y = the sum over taps of w x, a block of channels at a time.")
		x, y, w := field(args, tapX), field(args, tapY), field(args, tapW)
		row, channels := field(args, tapRow), field(args, tapC)
		row3 := GP64()
		LEAQ(indexed(row, row, 2, 0), row3)
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
		loop(channels, block, func() {
			lane := GP64()
			XORQ(lane, lane)
			l := label("lane")
			Label(l)
			s.startDepthwise(args, y, lane, block, vectors, at4)
			woffs := field(args, tapWOffs)
			s.tapLoop(args, x, lane, func(p, tap reg.Register) {
				q := GP64()
				MOVQ(indexed(woffs, tap, 8, 0), q)
				ADDQ(w, q)
				for c := range block {
					s.broadcast(at(q, 4*c), 14)
					for i := range vectors {
						s.fma(at4(p, c, i*s.size), 14, c*vectors+i)
					}
				}
			})
			out := GP64()
			MOVQ(y, out)
			ADDQ(lane, out)
			for c := range block {
				for i := range vectors {
					s.store(c*vectors+i, at4(out, c, i*s.size))
				}
			}
			ADDQ(operand.U32(64), lane)
			CMPQ(lane, at(args, tapLanes))
			JB(operand.LabelRef(l))
			for range block {
				ADDQ(row, x)
				ADDQ(row, y)
			}
			advance(4*block, w)
		})
		done()
	}
}
