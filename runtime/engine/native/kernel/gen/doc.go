// Command gen writes the assembly of package kernel and its declarations in Go, for amd64 and for arm64. Run it by
//
//	go generate ./runtime/engine/native/kernel
//
// A test compares its output with the files in the repository. It is a module, so that the product does not depend on
// avo. Its go.mod follows the versions of the main module, from which it takes package winograd (go mod tidy).
//
// machine.go has the instructions that kernels are written with. avx writes them for AVX-512 and for AVX2 with FMA, by
// avo. neon writes them for NEON, which every arm64 processor has. Each of the other files has a family of kernels,
// once for all processors. What only one processor has, or does differently, is in the files of its machine.
//
// A vector of AVX2 has eight values, and there are sixteen vectors. On arm64 two registers of four values are one
// vector. The assembler of Go lacks most NEON instructions on float32: instruction.go encodes them.
package main
