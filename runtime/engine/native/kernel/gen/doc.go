// Command gen writes the assembly of package kernel and its declarations in Go, for amd64 and for arm64. Run it by
//
//	go generate ./runtime/engine/native/kernel
//
// A test compares the files in the tree with what it writes. It is a module of its own, so that only it depends on avo.
// It takes package winograd from the main module, whose versions its go.mod follows (go mod tidy).
//
// avx writes AVX-512 and AVX2 with FMA by avo. neon writes NEON, which every arm64 processor has. A vector of AVX2 has
// eight values, and there are sixteen. On arm64 two registers of four side by side stand for one of them (see wide).
// Go's assembler has no names for most instructions of NEON on float32: instruction.go makes their words.
package main
