// Command arm64 writes the assembly of package kernel for arm64: NEON, which every such processor has. Run it in its
// folder:
//
//	go run . -out ../..
//
// writes kernels_arm64.s and stubs_arm64.go. A test says whether those in the tree are what it writes.
//
// The kernels are those that gen/amd64 writes for AVX2. A vector there has eight values and there are
// sixteen; here two registers of four side by side stand for one of them (see wide), so that the two generators can be
// read beside each other. What needs more of the thirty-two registers than that, the products, has them one by one.
//
// Go's assembler has no names for most instructions of vectors of float32: their words are made by instruction.go.
package main
