//go:build !noasm

package kernel

import "github.com/disdel/disdel/runtime/engine/native/winograd"

// sets lists what this processor can run, the fastest first: every arm64 processor that Go runs on has NEON.
func sets() []Set {
	return []Set{
		{
			Name: "neon", tiles: []int{6, 4, 2}, line: []int{6, 4, 2},
			vectors: 1, pairs: [2]int{4, 6}, step: 16, block: 4, square: 8, f: neon(),
			exact: exactNeon(), peak: peakNeon, peakFlops: 4 * 24 * 4 * 2,
		},
		portable(),
	}
}

// neon has the shapes of AVX2's kernels, since two registers of four values stand for one of eight; but for correlate.
// What it has no kernel for is plain Go.
func neon() functions {
	f := portable().f
	f.product = tiles{6: {1: product6x2Neon}, 4: {1: product4x2Neon}, 2: {1: product2x2Neon}}
	f.correlate, f.line, f.transpose, f.transpose8 = correlateNeon, lineNeon, transposeNeon, transposeNeon
	f.add, f.addRelu, f.relu, f.clamp, f.scale = addNeon, addReluNeon, reluNeon, clampNeon, scaleNeon
	f.reluBack, f.clampBack, f.squares = reluBackNeon, clampBackNeon, squaresNeon
	f.sgd, f.momentum, f.adam = sgdNeon, momentumNeon, adamNeon
	f.affineEach, f.affineEachRelu = affineEachNeon, affineEachReluNeon
	f.silu, f.siluBack = siluNeon, siluBackNeon
	f.geluTanh, f.geluTanhBack, f.gelu, f.geluBack = geluTanhNeon, geluTanhBackNeon, geluNeon, geluBackNeon
	f.softmaxRows, f.softmaxRowsBack = softmaxRowsNeon, softmaxRowsBackNeon
	f.mulRows, f.addRows, f.dotRows, f.maxRows = mulRowsNeon, addRowsNeon, dotRowsNeon, maxRowsNeon
	f.lstm, f.lstmBack, f.gru, f.gruBack = lstmNeon, lstmBackNeon, gruNeon, gruBackNeon
	f.layerSquares, f.layerNorm, f.layerScale = layerSquaresNeon, layerNormNeon, layerScaleNeon
	f.layerSums, f.layerBack, f.layerGradients = layerSumsNeon, layerBackNeon, layerGradientsNeon
	f.affine, f.affineRelu, f.normBack = affineNeon, affineReluNeon, normBackNeon
	f.moments = [2]func(*channelArgs){moments4Neon, moments1Neon}
	f.normSums = [2]func(*channelArgs){normSums4Neon, normSums1Neon}
	f.normSumsRelu = [2]func(*channelArgs){normSumsRelu4Neon, normSumsRelu1Neon}
	f.rowSums = [2]func(*channelArgs){rowSums4Neon, rowSums1Neon}
	f.dots = [2]func(*channelArgs){dots4Neon, dots1Neon}
	f.maxPool, f.sumPool, f.maxPoolBack, f.sumPoolBack = maxPoolNeon, sumPoolNeon, maxPoolBackNeon, sumPoolBackNeon
	f.depthwise, f.weighted = [2]func(*tapArgs){depthwise4Neon, depthwise1Neon}, weightedNeon
	f.round, f.shorten, f.widen = roundNeon, shortenNeon, widenNeon
	f.winograd = winogradNeon()
	return f
}

// exactNeon has kernels for rows; what goes over all of an array is plain Go.
func exactNeon() exactFunctions {
	f := exactPortable()
	f.products, f.slopes = pairProductsNeon, pairSlopesNeon
	f.plain, f.momentum, f.nesterov, f.adam = rowsPlainNeon, rowsMomentumNeon, rowsNesterovNeon, rowsAdamNeon
	return f
}

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
