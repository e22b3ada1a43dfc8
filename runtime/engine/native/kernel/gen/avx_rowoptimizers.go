package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Fields of rowArgs, and its arrays.
const (
	rowRows         = 0
	rowGradients    = 8
	rowStep         = 16
	rowGradientStep = 24
	rowN            = 32
	rowWidth        = 40
	rowValues       = 48
	rowFirst        = 56
	rowSecond       = 64
	rowScalars      = 72
)

// rowMemory is where the values at work lie: weights, their gradient, and the moments.
type rowMemory struct{ w, g, first, second operand.Mem }

// eachRow walks rows that have a gradient. Scalars are in registers counted down from 15.
func (s *avx) eachRow(name, doc string, scalars int, body func(n span, m rowMemory)) {
	args := s.function(name, "*rowArgs", doc)
	rows, gradients, steps := s.field(args, rowRows), s.field(args, rowGradients), s.field(args, rowStep)
	gradientStep, n, width := s.field(args, rowGradientStep), s.field(args, rowN), s.field(args, rowWidth)
	values, first, second := s.field(args, rowValues), s.field(args, rowFirst), s.field(args, rowSecond)
	for i := range scalars {
		s.broadcast(at(args, rowScalars+4*i), scalar(i))
	}
	k, o := s.GP64(), s.GP64()
	m := rowMemory{
		w: indexed(values, o, 1, 0), g: indexed(gradients, k, 1, 0),
		first: indexed(first, o, 1, 0), second: indexed(second, o, 1, 0),
	}
	s.loop(n, 1, func() {
		s.MOVLQSX(at(rows, 0), o)
		s.IMULQ(width, o)
		s.XORQ(k, k)
		s.spans(width, 8, []reg.Register{k, o}, func(n span) { body(n, m) })
		s.ADDQ(steps, rows)
		s.ADDQ(gradientStep, gradients)
	})
	s.done()
}

// scalar is the register that has a scalar of rowArgs.
func scalar(i int) int { return 15 - i }

// slope loads a weight into 0, and into 1 its gradient, scaled and with decay.
func slope(n span, m rowMemory) {
	n.load(m.w, 0)
	n.load(m.g, 1)
	n.mul(scalar(1), 1, 1)
	n.mul(scalar(2), 0, 2)
	n.add(2, 1, 1)
}

// rowOptimizers move rows. Scalars: 0 rate, 1 scale, 2 decay, 3 momentum or beta1, 4 1-beta1, 5 beta2, 6 1-beta2,
// 7 unbias, 8 epsilon, 9 keep.
func (s *avx) rowOptimizers() {
	step := func(n span, m rowMemory, by int) {
		n.mul(scalar(0), by, by)
		n.sub(by, 0, 0)
		n.store(0, m.w)
	}
	s.eachRow("rowsPlain", "moves rows by their gradients.", 3, func(n span, m rowMemory) {
		slope(n, m)
		step(n, m, 1)
	})
	velocity := func(n span, m rowMemory) {
		slope(n, m)
		n.load(m.first, 2)
		n.mul(scalar(3), 2, 2)
		n.add(1, 2, 2)
		n.store(2, m.first)
	}
	s.eachRow("rowsMomentum", "moves rows by their velocities.", 4, func(n span, m rowMemory) {
		velocity(n, m)
		step(n, m, 2)
	})
	s.eachRow("rowsNesterov", "moves rows by Nesterov's momentum.", 4, func(n span, m rowMemory) {
		velocity(n, m)
		n.mul(scalar(3), 2, 2)
		n.add(1, 2, 2)
		step(n, m, 2)
	})
	s.eachRow("rowsAdam", "moves rows by Adam and AdamW.", 10, func(n span, m rowMemory) {
		slope(n, m)
		n.load(m.first, 2)
		n.mul(scalar(3), 2, 2)
		n.mul(scalar(4), 1, 3)
		n.add(3, 2, 2) // mean
		n.store(2, m.first)
		n.load(m.second, 3)
		n.mul(scalar(5), 3, 3)
		n.mul(scalar(6), 1, 4)
		n.mul(1, 4, 4)
		n.add(4, 3, 3) // mean square
		n.store(3, m.second)
		n.mul(scalar(7), 3, 3)
		n.sqrt(3, 3)
		n.add(scalar(8), 3, 3)
		n.mul(scalar(0), 2, 2)
		n.div(3, 2, 2)
		n.mul(scalar(9), 0, 0)
		n.sub(2, 0, 0)
		n.store(0, m.w)
	})
}
