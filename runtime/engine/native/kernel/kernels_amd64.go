//go:build !noasm

package kernel

import (
	"golang.org/x/sys/cpu"

	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// sets lists what this processor can run, the fastest first.
func sets() []Set {
	var out []Set
	x := cpu.X86
	if x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VL && x.HasFMA {
		s := Set{
			Name: "avx512", tiles: []int{8, 6, 4, 2}, line: []int{tallRows, 10, 8, 6, 4, 2},
			tall: tallRows, vectors: 2, pairs: [2]int{3, 6}, step: 64, block: 8,
			square: 16, f: avx512(), exact: exact256(), peak: peak512, peakFlops: 4 * 12 * 16 * 2,
		}
		if x.HasAVX512BF16 {
			short := s
			short.Name, short.plain, short.f.pairs = "avx512bf16", s.Name, pairs512()
			out = append(out, short)
		}
		out = append(out, s)
	}
	if x.HasAVX2 && x.HasFMA {
		out = append(out, Set{
			Name: "avx2", tiles: []int{6, 4, 2}, line: []int{6, 4, 2},
			vectors: 1, pairs: [2]int{2, 4}, step: 32, block: 4, square: 8, f: avx2(),
			exact: exact256(), peak: peak256, peakFlops: 4 * 12 * 8 * 2,
		})
	}
	return append(out, portable())
}

func avx512() functions {
	return functions{
		product: tiles{
			12: {1: product12x1_512, 2: product12x2_512},
			10: {1: product10x1_512},
			8:  {1: product8x1_512, 2: product8x2_512}, 6: {1: product6x1_512, 2: product6x2_512},
			4: {1: product4x1_512, 2: product4x2_512}, 2: {1: product2x1_512, 2: product2x2_512},
		},
		correlate: correlate512, line: line512, transpose: transpose512, transpose8: transpose256,
		add: add512, addRelu: addRelu512, relu: relu512, clamp: clamp512, reluBack: reluBack512, clampBack: clampBack512,
		scale: scale512, squares: squares512, sgd: sgd512, momentum: momentum512, adam: adam512,
		layerSquares: layerSquares512, layerNorm: layerNorm512, layerScale: layerScale512,
		layerSums: layerSums512, layerBack: layerBack512, layerGradients: layerGradients512,
		affine: affine512, affineRelu: affineRelu512, normBack: normBack512,
		moments:      [2]func(*channelArgs){moments8_512, moments1_512},
		normSums:     [2]func(*channelArgs){normSums8_512, normSums1_512},
		normSumsRelu: [2]func(*channelArgs){normSumsRelu8_512, normSumsRelu1_512},
		rowSums:      [2]func(*channelArgs){rowSums8_512, rowSums1_512}, dots: [2]func(*channelArgs){dots8_512, dots1_512},
		maxPool: maxPool512, sumPool: sumPool512, maxPoolBack: maxPoolBack512, sumPoolBack: sumPoolBack512,
		depthwise: [2]func(*tapArgs){depthwise4_512, depthwise1_512}, weighted: weighted512,
		affineEach: affineEach512, affineEachRelu: affineEachRelu512,
		silu: silu512, siluBack: siluBack512,
		geluTanh: geluTanh512, geluTanhBack: geluTanhBack512, gelu: gelu512, geluBack: geluBack512,
		softmaxRows: softmaxRows512, softmaxRowsBack: softmaxRowsBack512,
		mulRows: mulRows512, addRows: addRows512, dotRows: dotRows512, maxRows: maxRows512,
		lstm: lstm512, lstmBack: lstmBack512, gru: gru512, gruBack: gruBack512,
		round: round512, shorten: shorten512, widen: widen512,
		winograd: winograd512(),
	}
}

// pairs512 are products of bfloat16, by AVX512-BF16.
func pairs512() tiles {
	return tiles{
		8: {1: pairs8x1_512, 2: pairs8x2_512}, 6: {1: pairs6x1_512, 2: pairs6x2_512},
		4: {1: pairs4x1_512, 2: pairs4x2_512}, 2: {1: pairs2x1_512, 2: pairs2x2_512},
	}
}

func avx2() functions {
	return functions{
		product:   tiles{6: {1: product6x2_256}, 4: {1: product4x2_256}, 2: {1: product2x2_256}},
		correlate: correlate256, line: line256, transpose: transpose256, transpose8: transpose256,
		add: add256, addRelu: addRelu256, relu: relu256, clamp: clamp256, reluBack: reluBack256, clampBack: clampBack256,
		scale: scale256, squares: squares256, sgd: sgd256, momentum: momentum256, adam: adam256,
		layerSquares: layerSquares256, layerNorm: layerNorm256, layerScale: layerScale256,
		layerSums: layerSums256, layerBack: layerBack256, layerGradients: layerGradients256,
		affine: affine256, affineRelu: affineRelu256, normBack: normBack256,
		moments:      [2]func(*channelArgs){moments4_256, moments1_256},
		normSums:     [2]func(*channelArgs){normSums4_256, normSums1_256},
		normSumsRelu: [2]func(*channelArgs){normSumsRelu4_256, normSumsRelu1_256},
		rowSums:      [2]func(*channelArgs){rowSums4_256, rowSums1_256}, dots: [2]func(*channelArgs){dots4_256, dots1_256},
		maxPool: maxPool256, sumPool: sumPool256, maxPoolBack: maxPoolBack256, sumPoolBack: sumPoolBack256,
		depthwise: [2]func(*tapArgs){depthwise4_256, depthwise1_256}, weighted: weighted256,
		affineEach: affineEach256, affineEachRelu: affineEachRelu256,
		silu: silu256, siluBack: siluBack256,
		geluTanh: geluTanh256, geluTanhBack: geluTanhBack256, gelu: gelu256, geluBack: geluBack256,
		softmaxRows: softmaxRows256, softmaxRowsBack: softmaxRowsBack256,
		mulRows: mulRows256, addRows: addRows256, dotRows: dotRows256, maxRows: maxRows256,
		lstm: lstm256, lstmBack: lstmBack256, gru: gru256, gruBack: gruBack256,
		round: round256, shorten: shorten256, widen: widen256,
		winograd: winograd256(),
	}
}

// exact256 is for AVX-512 too: rows are short.
func exact256() exactFunctions {
	return exactFunctions{
		products: pairProducts256, slopes: pairSlopes256, plain: rowsPlain256, momentum: rowsMomentum256,
		nesterov: rowsNesterov256, adam: rowsAdam256, squares: exactSquares256,
		changes: func(a *changeArgs) {
			if a.sent != nil {
				changesSent256(a)
				return
			}
			changes256(a)
		},
		sums: func(a *entryArgs) {
			if a.values == nil {
				entrySumsOnes256(a)
				return
			}
			entrySums256(a)
		},
		addEntries: func(a *entryArgs) {
			if a.values == nil {
				addEntriesOnes256(a)
				return
			}
			addEntries256(a)
		},
	}
}

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
