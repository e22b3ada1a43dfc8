//go:build !noasm && (amd64 || arm64)

package kernel

import "github.com/disdel/disdel/runtime/engine/native/winograd"

// sideKernels are the assembly for one side's algorithm, in the order of transforms.
type sideKernels struct{ input, output, weights, spread, gather func(*winogradArgs) }

// assembled are the transforms of all tiles by assembly: of a tile with an algorithm along one side alone it is the
// same for lines and columns, since its pixels are listed.
func assembled(kernels map[winograd.Side]sideKernels) map[winograd.Tile]*transforms {
	out := portableWinograd()
	for tile, t := range out {
		side, _ := tile.Side()
		k := kernels[side]
		t.input.kernel, t.output.kernel, t.weights.kernel = k.input, k.output, k.weights
		t.spread.kernel, t.gather.kernel = k.spread, k.gather
	}
	return out
}
