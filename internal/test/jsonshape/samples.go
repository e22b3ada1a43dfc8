package jsonshape

import (
	"errors"
	"reflect"
	"time"

	"github.com/disdel/disdel"
)

// Samples are values of types with their own MarshalJSON, which together have every field that the type may write.
type Samples map[reflect.Type][]any

// Vocabulary returns the samples of the root package's types.
func Vocabulary() Samples {
	yes := true
	layer := disdel.Layer{
		Kind: "*", Name: "a", From: []string{"b"}, Shape: []int{1}, Units: 1, Filters: 1, Kernel: 1, Stride: 1, Padding: 1,
		Dilation: 1, Groups: 1, Bias: &yes, Eps: 1, Momentum: 1, Scale: &yes, Center: &yes, Rate: 1, Activation: "relu",
		Vocabulary: 1, Width: 1, Padded: &yes, Learned: &yes, Heads: 1, KVHeads: 1, Causal: &yes, Rotary: &yes, Theta: 2,
		Hidden: 1, NormFirst: &yes, Take: "mean", Slope: 1, Size: 1,
	}
	sides := layer
	sides.KernelHW, sides.StrideHW, sides.DilationHW = [2]int{1, 2}, [2]int{1, 2}, [2]int{1, 2}
	sides.SizeHW = [2]int{1, 2}
	sides.PaddingAt = [4]int{1, 2, 3, 4}
	same := disdel.Layer{Kind: "*", SamePad: true}
	return Samples{
		reflect.TypeFor[disdel.Layer]():  {layer, sides, same},
		reflect.TypeFor[disdel.Millis](): {disdel.Millis(time.Second)},
		reflect.TypeFor[disdel.Sync]():   {disdel.SyncEvery(2), disdel.Sync("epoch")},
		reflect.TypeFor[disdel.Store]():  {disdel.Store{URLs: []string{"a", "b"}, Prefix: "p", CA: "c"}},
		reflect.TypeFor[disdel.Error](): {&disdel.Error{
			Kind: disdel.Invalid, Code: "c", Op: "o", Job: "j", Activation: "a", Invocation: "i",
			Subject: &disdel.UpdateID{}, Msg: "m", Hint: "h", Changes: [][]string{{"a=b"}}, NotRetried: "n",
			Err: errors.New("cause"),
		}},
	}
}
