//go:build !noasm

package kernel

//go:noescape
func product6x2_256(args *productArgs)

//go:noescape
func product4x2_256(args *productArgs)

//go:noescape
func product2x2_256(args *productArgs)

//go:noescape
func transpose256(args *transposeArgs)

//go:noescape
func add256(args *elementArgs)

//go:noescape
func addRelu256(args *elementArgs)

//go:noescape
func relu256(args *elementArgs)

//go:noescape
func clamp256(args *elementArgs)

//go:noescape
func reluBack256(args *elementArgs)

//go:noescape
func clampBack256(args *elementArgs)

//go:noescape
func scale256(args *elementArgs)

//go:noescape
func squares256(args *elementArgs)

//go:noescape
func sgd256(args *elementArgs)

//go:noescape
func momentum256(args *elementArgs)

//go:noescape
func adam256(args *elementArgs)

//go:noescape
func affine256(args *channelArgs)

//go:noescape
func affineRelu256(args *channelArgs)

//go:noescape
func normBack256(args *channelArgs)

//go:noescape
func moments4_256(args *channelArgs)

//go:noescape
func normSums4_256(args *channelArgs)

//go:noescape
func normSumsRelu4_256(args *channelArgs)

//go:noescape
func rowSums4_256(args *channelArgs)

//go:noescape
func dots4_256(args *channelArgs)

//go:noescape
func moments1_256(args *channelArgs)

//go:noescape
func normSums1_256(args *channelArgs)

//go:noescape
func normSumsRelu1_256(args *channelArgs)

//go:noescape
func rowSums1_256(args *channelArgs)

//go:noescape
func dots1_256(args *channelArgs)

//go:noescape
func maxPool256(args *tapArgs)

//go:noescape
func sumPool256(args *tapArgs)

//go:noescape
func maxPoolBack256(args *tapArgs)

//go:noescape
func sumPoolBack256(args *tapArgs)

//go:noescape
func depthwise4_256(args *tapArgs)

//go:noescape
func depthwise1_256(args *tapArgs)

//go:noescape
func peak256(args int)

//go:noescape
func correlate256(args *productArgs)

//go:noescape
func affineEach256(args *elementArgs)

//go:noescape
func affineEachRelu256(args *elementArgs)

//go:noescape
func weighted256(args *tapArgs)

//go:noescape
func line256(args *productArgs)

//go:noescape
func round256(args *elementArgs)

//go:noescape
func shorten256(args *elementArgs)

//go:noescape
func widen256(args *halvesArgs)

//go:noescape
func winogradInput2x3_256(args *winogradArgs)

//go:noescape
func winogradOutput2x3_256(args *winogradArgs)

//go:noescape
func winogradWeights2x3_256(args *winogradArgs)

//go:noescape
func winogradSpread2x3_256(args *winogradArgs)

//go:noescape
func winogradGather2x3_256(args *winogradArgs)

//go:noescape
func winogradInput3x3_256(args *winogradArgs)

//go:noescape
func winogradOutput3x3_256(args *winogradArgs)

//go:noescape
func winogradWeights3x3_256(args *winogradArgs)

//go:noescape
func winogradSpread3x3_256(args *winogradArgs)

//go:noescape
func winogradGather3x3_256(args *winogradArgs)

//go:noescape
func winogradInput4x3_256(args *winogradArgs)

//go:noescape
func winogradOutput4x3_256(args *winogradArgs)

//go:noescape
func winogradWeights4x3_256(args *winogradArgs)

//go:noescape
func winogradSpread4x3_256(args *winogradArgs)

//go:noescape
func winogradGather4x3_256(args *winogradArgs)

//go:noescape
func winogradInput3x5_256(args *winogradArgs)

//go:noescape
func winogradOutput3x5_256(args *winogradArgs)

//go:noescape
func winogradWeights3x5_256(args *winogradArgs)

//go:noescape
func winogradSpread3x5_256(args *winogradArgs)

//go:noescape
func winogradGather3x5_256(args *winogradArgs)

//go:noescape
func winogradInputWhole2_256(args *winogradArgs)

//go:noescape
func winogradOutputWhole2_256(args *winogradArgs)

//go:noescape
func winogradWeightsWhole2_256(args *winogradArgs)

//go:noescape
func winogradSpreadWhole2_256(args *winogradArgs)

//go:noescape
func winogradGatherWhole2_256(args *winogradArgs)

//go:noescape
func winogradInputWhole4_256(args *winogradArgs)

//go:noescape
func winogradOutputWhole4_256(args *winogradArgs)

//go:noescape
func winogradWeightsWhole4_256(args *winogradArgs)

//go:noescape
func winogradSpreadWhole4_256(args *winogradArgs)

//go:noescape
func winogradGatherWhole4_256(args *winogradArgs)

//go:noescape
func product12x2_512(args *productArgs)

//go:noescape
func product12x1_512(args *productArgs)

//go:noescape
func product10x1_512(args *productArgs)

//go:noescape
func product8x2_512(args *productArgs)

//go:noescape
func product8x1_512(args *productArgs)

//go:noescape
func product6x2_512(args *productArgs)

//go:noescape
func product6x1_512(args *productArgs)

//go:noescape
func product4x2_512(args *productArgs)

//go:noescape
func product4x1_512(args *productArgs)

//go:noescape
func product2x2_512(args *productArgs)

//go:noescape
func product2x1_512(args *productArgs)

//go:noescape
func transpose512(args *transposeArgs)

//go:noescape
func add512(args *elementArgs)

//go:noescape
func addRelu512(args *elementArgs)

//go:noescape
func relu512(args *elementArgs)

//go:noescape
func clamp512(args *elementArgs)

//go:noescape
func reluBack512(args *elementArgs)

//go:noescape
func clampBack512(args *elementArgs)

//go:noescape
func scale512(args *elementArgs)

//go:noescape
func squares512(args *elementArgs)

//go:noescape
func sgd512(args *elementArgs)

//go:noescape
func momentum512(args *elementArgs)

//go:noescape
func adam512(args *elementArgs)

//go:noescape
func affine512(args *channelArgs)

//go:noescape
func affineRelu512(args *channelArgs)

//go:noescape
func normBack512(args *channelArgs)

//go:noescape
func moments8_512(args *channelArgs)

//go:noescape
func normSums8_512(args *channelArgs)

//go:noescape
func normSumsRelu8_512(args *channelArgs)

//go:noescape
func rowSums8_512(args *channelArgs)

//go:noescape
func dots8_512(args *channelArgs)

//go:noescape
func moments1_512(args *channelArgs)

//go:noescape
func normSums1_512(args *channelArgs)

//go:noescape
func normSumsRelu1_512(args *channelArgs)

//go:noescape
func rowSums1_512(args *channelArgs)

//go:noescape
func dots1_512(args *channelArgs)

//go:noescape
func maxPool512(args *tapArgs)

//go:noescape
func sumPool512(args *tapArgs)

//go:noescape
func maxPoolBack512(args *tapArgs)

//go:noescape
func sumPoolBack512(args *tapArgs)

//go:noescape
func depthwise4_512(args *tapArgs)

//go:noescape
func depthwise1_512(args *tapArgs)

//go:noescape
func peak512(args int)

//go:noescape
func correlate512(args *productArgs)

//go:noescape
func affineEach512(args *elementArgs)

//go:noescape
func affineEachRelu512(args *elementArgs)

//go:noescape
func weighted512(args *tapArgs)

//go:noescape
func line512(args *productArgs)

//go:noescape
func round512(args *elementArgs)

//go:noescape
func shorten512(args *elementArgs)

//go:noescape
func widen512(args *halvesArgs)

//go:noescape
func pairs8x2_512(args *productArgs)

//go:noescape
func pairs8x1_512(args *productArgs)

//go:noescape
func pairs6x2_512(args *productArgs)

//go:noescape
func pairs6x1_512(args *productArgs)

//go:noescape
func pairs4x2_512(args *productArgs)

//go:noescape
func pairs4x1_512(args *productArgs)

//go:noescape
func pairs2x2_512(args *productArgs)

//go:noescape
func pairs2x1_512(args *productArgs)

//go:noescape
func winogradInput2x3_512(args *winogradArgs)

//go:noescape
func winogradOutput2x3_512(args *winogradArgs)

//go:noescape
func winogradWeights2x3_512(args *winogradArgs)

//go:noescape
func winogradSpread2x3_512(args *winogradArgs)

//go:noescape
func winogradGather2x3_512(args *winogradArgs)

//go:noescape
func winogradInput3x3_512(args *winogradArgs)

//go:noescape
func winogradOutput3x3_512(args *winogradArgs)

//go:noescape
func winogradWeights3x3_512(args *winogradArgs)

//go:noescape
func winogradSpread3x3_512(args *winogradArgs)

//go:noescape
func winogradGather3x3_512(args *winogradArgs)

//go:noescape
func winogradInput4x3_512(args *winogradArgs)

//go:noescape
func winogradOutput4x3_512(args *winogradArgs)

//go:noescape
func winogradWeights4x3_512(args *winogradArgs)

//go:noescape
func winogradSpread4x3_512(args *winogradArgs)

//go:noescape
func winogradGather4x3_512(args *winogradArgs)

//go:noescape
func winogradInput3x5_512(args *winogradArgs)

//go:noescape
func winogradOutput3x5_512(args *winogradArgs)

//go:noescape
func winogradWeights3x5_512(args *winogradArgs)

//go:noescape
func winogradSpread3x5_512(args *winogradArgs)

//go:noescape
func winogradGather3x5_512(args *winogradArgs)

//go:noescape
func winogradInputWhole2_512(args *winogradArgs)

//go:noescape
func winogradOutputWhole2_512(args *winogradArgs)

//go:noescape
func winogradWeightsWhole2_512(args *winogradArgs)

//go:noescape
func winogradSpreadWhole2_512(args *winogradArgs)

//go:noescape
func winogradGatherWhole2_512(args *winogradArgs)

//go:noescape
func winogradInputWhole4_512(args *winogradArgs)

//go:noescape
func winogradOutputWhole4_512(args *winogradArgs)

//go:noescape
func winogradWeightsWhole4_512(args *winogradArgs)

//go:noescape
func winogradSpreadWhole4_512(args *winogradArgs)

//go:noescape
func winogradGatherWhole4_512(args *winogradArgs)

//go:noescape
func pairProducts256(args *pairArgs)

//go:noescape
func pairSlopes256(args *pairArgs)

//go:noescape
func rowsPlain256(args *rowArgs)

//go:noescape
func rowsMomentum256(args *rowArgs)

//go:noescape
func rowsNesterov256(args *rowArgs)

//go:noescape
func rowsAdam256(args *rowArgs)

//go:noescape
func exactSquares256(args *elementArgs)

//go:noescape
func changes256(args *changeArgs)

//go:noescape
func changesSent256(args *changeArgs)

//go:noescape
func entrySums256(args *entryArgs)

//go:noescape
func entrySumsOnes256(args *entryArgs)

//go:noescape
func addEntries256(args *entryArgs)

//go:noescape
func addEntriesOnes256(args *entryArgs)
