//go:build !noasm

package kernel

import "github.com/disdel/disdel/runtime/engine/native/winograd"

// winogradNeon are the transforms by NEON.
func winogradNeon() map[winograd.Tile]*transforms {
	return assembled(map[winograd.Side]sideKernels{
		winograd.Short(2, 3): {
			winogradInput2x3Neon, winogradOutput2x3Neon, winogradWeights2x3Neon,
			winogradSpread2x3Neon, winogradGather2x3Neon,
		},
		winograd.Short(3, 3): {
			winogradInput3x3Neon, winogradOutput3x3Neon, winogradWeights3x3Neon,
			winogradSpread3x3Neon, winogradGather3x3Neon,
		},
		winograd.Short(4, 3): {
			winogradInput4x3Neon, winogradOutput4x3Neon, winogradWeights4x3Neon,
			winogradSpread4x3Neon, winogradGather4x3Neon,
		},
		winograd.Short(3, 5): {
			winogradInput3x5Neon, winogradOutput3x5Neon, winogradWeights3x5Neon,
			winogradSpread3x5Neon, winogradGather3x5Neon,
		},
		winograd.Whole(2): {
			winogradInputWhole2Neon, winogradOutputWhole2Neon, winogradWeightsWhole2Neon,
			winogradSpreadWhole2Neon, winogradGatherWhole2Neon,
		},
		winograd.Whole(4): {
			winogradInputWhole4Neon, winogradOutputWhole4Neon, winogradWeightsWhole4Neon,
			winogradSpreadWhole4Neon, winogradGatherWhole4Neon,
		},
	})
}
