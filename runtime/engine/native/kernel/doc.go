// Package kernel computes: matrix products, convolutions forward and both gradients, depthwise convolution, pools,
// batch norm, activations, losses and optimiser updates, in float32.
//
// # Layout
//
// An activation is [height][width][channel][lane]: the batch is innermost, padded to a multiple of 16 lanes. One pixel
// is a contiguous matrix of channels x lanes. Every vector is full, whatever the number of channels. A convolution is a
// sum of plain matrix products, one for each tap that meets the image. There are no columns to unroll, borders cost
// nothing, and stride and dilation only change addresses. Vectors are images of height and width 1. Of a sequence every
// position is a pixel. Where rows are few, several positions that follow one another share a pixel, each with some of
// its lanes (plan.Image, Fold), so that vectors are full. Weights of a convolution are [group][filters/16][kernel
// height][kernel width][channels/group][16], filters padded with zeros: the forward product reads 16 filters of a
// channel side by side, the data gradient 16 filters of a row, so neither packs anything.
//
// # Paths
//
// Kernels are chosen once: AVX-512, AVX2 with FMA, NEON on arm64, or plain Go. The program gen, a module
// of its own, writes their assembly. The environment variable DISDEL_KERNELS forces a path by its name: avx512bf16,
// avx512, avx2, neon or portable. The first is the second where nothing is rounded to bfloat16, and multiplies by
// AVX512-BF16 where both operands are.
//
// The kernels of Exact, for models of sparse rows, have the same bits on all of them; all others only on the same path.
//
// A table of families of processors chooses how much of their operands products work with at a time. The variable
// DISDEL_BLOCKS forces it. No bit depends on it, see Blocks.
//
// # Threads
//
// Everything is a method of a Worker, one of a Team. All workers of a team make the same calls; each does its share and
// waits for the others where it must (Sync). A value is always computed by one worker in one order, so that the bits do
// not depend on how many there are. Callers see to shapes: a wrong one panics or worse.
//
// A panel of a Winograd convolution is what the products of one point read or write, with channels as rows and lanes as
// columns. Its unit is the lanes of one tile that a product takes at once. Halves are values rounded to bfloat16, the
// upper halves of float32; a window is where a backward pass widens a few rows of them.
package kernel

//go:generate go run -C gen . -out ..
