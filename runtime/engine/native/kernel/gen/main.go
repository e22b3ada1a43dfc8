// Command gen writes the assembly of package kernel: the same kernels once for AVX-512 and once for AVX2 with FMA. It
// is a module of its own, so that the generator's dependencies are nobody else's; of the house it takes package
// winograd, so that its go.mod follows the versions of the house's (go mod tidy). Run it in its folder:
//
//	go run . -out ../kernels_amd64.s
//
// A test of package kernel runs it and compares.
package main

import (
	. "github.com/mmcloughlin/avo/build"

	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

func main() {
	ConstraintExpr("!noasm")
	avx512.product(lineRows, 1)
	for _, s := range []isa{avx512, avx2} {
		for _, rows := range append(s.tall, s.tiles...) {
			for _, vectors := range s.vectors {
				s.product(rows, vectors)
			}
		}
		s.line()
		s.correlate(s.pairs[0], s.pairs[1])
		s.transpose()
		s.elementwise()
		s.optimizers()
		s.channels()
		s.taps()
		s.depthwise()
		s.weighted()
		s.halves()
		for side, one := range winograd.Sides() {
			s.winograd(side, one)
		}
	}
	for _, rows := range avx512.tiles {
		for _, vectors := range avx512.vectors {
			avx512.bf16Pairs(rows, vectors)
		}
	}
	exact()
	peak()
	Generate()
}
