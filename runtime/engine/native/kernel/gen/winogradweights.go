package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// weightLine is one side of the weights' transform: registers 0 to 2 to registers 6 and up. Scalars 1/2, or 1/4, -1/6,
// 1/24, 1/6 and 1/12, are in register 12 and up, the last in register 3.
func (s isa) weightLine(m int) {
	s.add(0, 2, 4)
	if m == 2 {
		s.mul(12, 4, 4)
		s.mul(12, 1, 5)
		s.copy(0, 6)
		s.add(4, 5, 7)
		s.sub(5, 4, 8)
		s.copy(2, 9)
		return
	}
	s.mul(12, 0, 6)
	s.mul(13, 4, 4) // -(g0 + g2) / 6
	s.mul(13, 1, 5) // -g1 / 6
	s.add(4, 5, 7)
	s.sub(5, 4, 8)
	s.mul(14, 0, 4)
	s.fma(15, 2, 4) // g0 / 24 + g2 / 6
	s.mul(3, 1, 5)  // g1 / 12
	s.add(4, 5, 9)
	s.sub(5, 4, 10)
	s.copy(2, 11)
}

func (s isa) winogradWeights(m int) {
	a := m + 2
	args := s.function(fmt.Sprintf("winogradWeights%d_", m), "transforms a 3 x 3 kernel; see winogradArgs.")
	src, dst, offs, tmp := field(args, winoSrc), field(args, winoDst), field(args, winoOffs), field(args, winoTmp)
	if m == 2 {
		s.constants(args, 12)
	} else {
		s.constants(args, 12, 13, 14, 15, 3)
	}
	s.strip(args, func(lane reg.Register) {
		p := moved(src, lane)
		for j := range 3 {
			for i := range 3 {
				r := GP64()
				MOVQ(at(offs, 8*(i*3+j)), r)
				s.load(indexed(p, r, 1, 0), i)
			}
			s.weightLine(m)
			for i := range a {
				s.store(6+i, at(tmp, (i*3+j)*s.size))
			}
		}
		d, point := moved(dst, lane), field(args, winoPoint)
		for i := range a {
			for j := range 3 {
				s.load(at(tmp, (i*3+j)*s.size), j)
			}
			s.weightLine(m)
			for j := range a {
				s.store(6+j, at(d, 0))
				ADDQ(point, d)
			}
		}
	})
	done()
}

// spreadLine is one side of the output's transform, transposed: registers 0 and up to registers 6 and up. Scalars 2, 4
// and 8 are in registers 12 to 14.
func (s isa) spreadLine(m int) {
	s.copy(0, 6)
	if m == 2 {
		s.add(0, 1, 7)
		s.sub(1, 0, 8)
		s.zero(9)
		s.sub(1, 9, 9)
		return
	}
	s.add(0, 2, 4)
	s.add(1, 3, 5)
	s.add(4, 5, 7)
	s.sub(5, 4, 8)
	s.copy(0, 4)
	s.fma(13, 2, 4) // y0 + 4 y2
	s.mul(12, 1, 5)
	s.fma(14, 3, 5) // 2 y1 + 8 y3
	s.add(4, 5, 9)
	s.sub(5, 4, 10)
	s.copy(3, 11)
}

// gatherLine is one side of the weights' transform, transposed: registers 0 and up to registers 6 to 8. Scalars are
// weightLine's, the last in register 11.
func (s isa) gatherLine(m int) {
	s.add(1, 2, 9)
	if m == 2 {
		s.mul(12, 9, 9)
		s.add(0, 9, 6)
		s.sub(2, 1, 7)
		s.mul(12, 7, 7)
		s.add(3, 9, 8)
		return
	}
	s.add(3, 4, 10)
	s.mul(13, 9, 9) // -(t1 + t2) / 6
	s.mul(12, 0, 6)
	s.add(9, 6, 6)
	s.fma(14, 10, 6) // t0 / 4 - (t1 + t2) / 6 + (t3 + t4) / 24
	s.sub(1, 2, 7)
	s.mul(15, 7, 7)
	s.sub(4, 3, 3)
	s.fma(11, 3, 7) // (t2 - t1) / 6 + (t3 - t4) / 12
	s.add(9, 5, 8)
	s.fma(15, 10, 8) // t5 - (t1 + t2) / 6 + (t3 + t4) / 6
}

func (s isa) winogradSpread(m int) {
	a := m + 2
	args := s.function(fmt.Sprintf("winogradSpread%d_", m),
		"transforms the gradient of a tile of an output; see winogradArgs.")
	src, dst, offs, tmp := field(args, winoSrc), field(args, winoDst), field(args, winoOffs), field(args, winoTmp)
	if m == 4 {
		s.constants(args, 12, 13, 14)
	}
	s.strip(args, func(lane reg.Register) {
		p := moved(src, lane)
		for j := range m {
			for i := range m {
				r := GP64()
				MOVQ(at(offs, 8*(i*m+j)), r)
				s.load(indexed(p, r, 1, 0), i)
			}
			s.spreadLine(m)
			for i := range a {
				s.store(6+i, at(tmp, (i*m+j)*s.size))
			}
		}
		d, point := moved(dst, lane), field(args, winoPoint)
		for i := range a {
			for j := range m {
				s.load(at(tmp, (i*m+j)*s.size), j)
			}
			s.spreadLine(m)
			for j := range a {
				s.store(6+j, at(d, 0))
				ADDQ(point, d)
			}
		}
	})
	done()
}

func (s isa) winogradGather(m int) {
	a := m + 2
	args := s.function(fmt.Sprintf("winogradGather%d_", m),
		"makes the gradient of a 3 x 3 kernel of its matrices'; see winogradArgs.")
	src, dst, offs, tmp := field(args, winoSrc), field(args, winoDst), field(args, winoOffs), field(args, winoTmp)
	if m == 2 {
		s.constants(args, 12)
	} else {
		s.constants(args, 12, 13, 14, 15, 11)
	}
	s.strip(args, func(lane reg.Register) {
		p, point := moved(src, lane), field(args, winoPoint)
		for i := range a {
			for j := range a {
				s.load(at(p, 0), j)
				ADDQ(point, p)
			}
			s.gatherLine(m)
			for j := range 3 {
				s.store(6+j, at(tmp, (i*3+j)*s.size))
			}
		}
		d := moved(dst, lane)
		for j := range 3 {
			for i := range a {
				s.load(at(tmp, (i*3+j)*s.size), i)
			}
			s.gatherLine(m)
			for i := range 3 {
				r := GP64()
				MOVQ(at(offs, 8*(i*3+j)), r)
				s.store(6+i, indexed(d, r, 1, 0))
			}
		}
	})
	done()
}
