// Command amd64 writes the assembly of package kernel for amd64: the same kernels for AVX-512 and for AVX2 with FMA.
// Run it in its folder:
//
//	go run . -out ../../kernels_amd64.s
//
// Its module, gen, has the generators, so that only they depend on avo. It takes package winograd from the main module,
// whose versions its go.mod follows (go mod tidy).
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
