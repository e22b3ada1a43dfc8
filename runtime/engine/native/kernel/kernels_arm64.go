//go:build !noasm

package kernel

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
	f.product = tiles{6: {1: product6Neon}, 4: {1: product4Neon}, 2: {1: product2Neon}}
	f.correlate, f.line, f.transpose, f.transpose8 = correlateNeon, lineNeon, transposeNeon, transposeNeon
	f.add, f.addRelu, f.relu, f.clamp, f.scale = addNeon, addReluNeon, reluNeon, clampNeon, scaleNeon
	f.reluBack, f.clampBack, f.squares = reluBackNeon, clampBackNeon, squaresNeon
	f.sgd, f.momentum, f.adam = sgdNeon, momentumNeon, adamNeon
	f.affineEach, f.affineEachRelu = affineEachNeon, affineEachReluNeon
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
