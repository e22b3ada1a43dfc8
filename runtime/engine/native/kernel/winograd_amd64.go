//go:build !noasm

package kernel

import "github.com/disdel/disdel/runtime/engine/native/winograd"

// winograd512 are the transforms by AVX-512.
func winograd512() map[winograd.Tile]*transforms {
	return assembled(map[winograd.Side]sideKernels{
		winograd.Short(2, 3): {
			winogradInput2x3_512, winogradOutput2x3_512, winogradWeights2x3_512,
			winogradSpread2x3_512, winogradGather2x3_512,
		},
		winograd.Short(3, 3): {
			winogradInput3x3_512, winogradOutput3x3_512, winogradWeights3x3_512,
			winogradSpread3x3_512, winogradGather3x3_512,
		},
		winograd.Short(4, 3): {
			winogradInput4x3_512, winogradOutput4x3_512, winogradWeights4x3_512,
			winogradSpread4x3_512, winogradGather4x3_512,
		},
		winograd.Short(3, 5): {
			winogradInput3x5_512, winogradOutput3x5_512, winogradWeights3x5_512,
			winogradSpread3x5_512, winogradGather3x5_512,
		},
		winograd.Whole(2): {
			winogradInputWhole2_512, winogradOutputWhole2_512, winogradWeightsWhole2_512,
			winogradSpreadWhole2_512, winogradGatherWhole2_512,
		},
		winograd.Whole(4): {
			winogradInputWhole4_512, winogradOutputWhole4_512, winogradWeightsWhole4_512,
			winogradSpreadWhole4_512, winogradGatherWhole4_512,
		},
	})
}

// winograd256 are the transforms by AVX2.
func winograd256() map[winograd.Tile]*transforms {
	return assembled(map[winograd.Side]sideKernels{
		winograd.Short(2, 3): {
			winogradInput2x3_256, winogradOutput2x3_256, winogradWeights2x3_256,
			winogradSpread2x3_256, winogradGather2x3_256,
		},
		winograd.Short(3, 3): {
			winogradInput3x3_256, winogradOutput3x3_256, winogradWeights3x3_256,
			winogradSpread3x3_256, winogradGather3x3_256,
		},
		winograd.Short(4, 3): {
			winogradInput4x3_256, winogradOutput4x3_256, winogradWeights4x3_256,
			winogradSpread4x3_256, winogradGather4x3_256,
		},
		winograd.Short(3, 5): {
			winogradInput3x5_256, winogradOutput3x5_256, winogradWeights3x5_256,
			winogradSpread3x5_256, winogradGather3x5_256,
		},
		winograd.Whole(2): {
			winogradInputWhole2_256, winogradOutputWhole2_256, winogradWeightsWhole2_256,
			winogradSpreadWhole2_256, winogradGatherWhole2_256,
		},
		winograd.Whole(4): {
			winogradInputWhole4_256, winogradOutputWhole4_256, winogradWeightsWhole4_256,
			winogradSpreadWhole4_256, winogradGatherWhole4_256,
		},
	})
}
