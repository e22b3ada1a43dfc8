package exchange_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/exchange"
)

// someDelta is of n weights: entries alone, and rows of them.
func someDelta(t *rapid.T, n int) (d exchange.Delta) {
	for i := rapid.IntRange(0, 200).Draw(t, "first"); i < n; i += rapid.IntRange(1, 300).Draw(t, "gap") {
		for range rapid.SampledFrom([]int{1, 1, 21}).Draw(t, "row") {
			v := rapid.Float32().Draw(t, "value")
			if v == 0 || v-v != 0 {
				v = 1
			}
			if i < n {
				d.Index, d.Value = append(d.Index, int32(i)), append(d.Value, v)
			}
			i++
		}
	}
	return d
}

// A delta is read as it was written, in 4, 2 or 1 bytes a value and about one a distance, or two a row.
func TestDeltasAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9000).Draw(t, "weights")
		to := rapid.SampledFrom(values).Draw(t, "values")
		d := someDelta(t, n).Rounded(to)
		data := d.Append(nil)
		got, err := exchange.Delta{}.Read(data, n)
		if err != nil || !slices.Equal(got.Index, d.Index) || !slices.Equal(got.Value, d.Value) || got.Values != to {
			t.Fatalf("%v, %v", got, err)
		}
		if again := got.Append(nil); !slices.Equal(again, data) {
			t.Fatalf("written again it has other bytes")
		}
		each := map[disdel.Wire]int{disdel.WireFloat32: 4, disdel.WireBfloat16: 2, disdel.WireInt8: 1}[to]
		if len(data) > (each+2)*d.Len()+4+n/4096 {
			t.Fatalf("%d bytes for %d entries", len(data), d.Len())
		}
		for _, damaged := range [][]byte{data[:len(data)-1], append(slices.Clone(data), 0)} {
			if _, err := (exchange.Delta{}).Read(damaged, n); !errors.Is(err, disdel.Corrupt) {
				t.Fatalf("%d of %d bytes: %v", len(damaged), len(data), err)
			}
		}
	})
}

// Values are rounded to what is near them: within 1/256 of themselves, or 1/127 of the largest near them; rounding what
// was rounded changes nothing, at the ends of the numbers too.
func TestValuesAreRoundedToWhatIsNear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9000).Draw(t, "weights")
		to := rapid.SampledFrom(values).Draw(t, "values")
		exact := someDelta(t, n)
		largest := map[int32]float64{}
		for k, i := range exact.Index {
			largest[i/4096] = max(largest[i/4096], math.Abs(float64(exact.Value[k])))
		}
		d := exchange.Delta{Index: slices.Clone(exact.Index), Value: slices.Clone(exact.Value)}.Rounded(to)
		at := 0
		for k, i := range exact.Index {
			got := 0.0
			if at < d.Len() && d.Index[at] == i {
				got = float64(d.Value[at])
				at++
			}
			want := float64(exact.Value[k])
			bound := map[disdel.Wire]float64{
				disdel.WireBfloat16: math.Abs(want)/128 + 0x1p-133, disdel.WireInt8: largest[i/4096]/63 + 0x1p-126,
			}[to]
			if math.Abs(got-want) > bound || got-got != 0 {
				t.Fatalf("%v is rounded to %v, and may be %v off", want, got, bound)
			}
		}
		again := exchange.Delta{Index: slices.Clone(d.Index), Value: slices.Clone(d.Value)}.Rounded(to)
		if !slices.Equal(again.Index, d.Index) || !slices.Equal(again.Value, d.Value) {
			t.Fatal("rounding again changes something")
		}
	})
	const most = math.MaxFloat32
	d := exchange.Delta{Index: []int32{1, 2, 5000}, Value: []float32{most, 1e-40, 3}}.Rounded(disdel.WireInt8)
	if !slices.Equal(d.Index, []int32{1, 5000}) || d.Value[0] < most/2 || d.Value[1] != 3 {
		t.Errorf("%v", d)
	}
	d = exchange.Delta{Index: []int32{1, 2}, Value: []float32{-most, math.Float32frombits(1)}}.Rounded(disdel.WireBfloat16)
	if !slices.Equal(d.Index, []int32{1}) || d.Value[0] > -most/2 {
		t.Errorf("%v", d)
	}
}

// Rows of factors cost no byte for each index.
func TestRowsAreWrittenAsRows(t *testing.T) {
	d := exchange.Delta{Values: disdel.WireInt8}
	for row := range 10 {
		for k := range 21 {
			d.Index, d.Value = append(d.Index, int32(1000*row+k)), append(d.Value, 1)
		}
	}
	if data := d.Append(nil); len(data) > 210+10*3+3+3 {
		t.Errorf("%d bytes for 10 rows of 21 values", len(data))
	}
}

func FuzzRead(f *testing.F) {
	for _, w := range values {
		f.Add(exchange.Delta{Index: []int32{0, 7, 9}, Value: []float32{1, -2, 3}}.Rounded(w).Append(nil), 10)
		f.Add(exchange.Delta{Index: []int32{5, 6, 7, 8, 5000}, Value: []float32{1, -2, 3, 4, 5}}.Rounded(w).Append(nil), 5001)
	}
	f.Add([]byte{1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, 1<<30)
	f.Add([]byte{1, 1, 0, 0, 0, 128, 63}, 4)
	f.Add([]byte{0x83, 2, 1, 1, 2, 1, 0, 0x80}, 4)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		d, err := exchange.Delta{}.Read(data, n)
		if err != nil {
			return
		}
		again, err := exchange.Delta{}.Read(d.Append(nil), n)
		if err != nil || !slices.Equal(again.Index, d.Index) || !slices.Equal(again.Value, d.Value) {
			t.Errorf("%v is read as %v: %v", d, again, err)
		}
		for k, i := range d.Index {
			if int(i) >= n || i < 0 || k > 0 && i <= d.Index[k-1] {
				t.Errorf("entry %d is %d of %d", k, i, n)
			}
		}
	})
}

// Neighbouring weights cost a byte each as int8, and two for the row that they make.
func ExampleDelta_Rounded() {
	d := exchange.Delta{
		Index: []int32{40, 41, 42, 43, 90}, Value: []float32{0.5, -1, 0.26, 0.001, 0.75},
	}.Rounded(disdel.WireInt8)
	data := d.Append(nil)
	read, err := exchange.Delta{}.Read(data, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read.Index, read.Value)
	fmt.Println(len(data), "bytes, at most", int64(exchange.MaxBytes(5, 100, disdel.WireInt8)))
	// Output:
	// [40 41 42 90] [0.5 -1 0.265625 0.75]
	// 11 bytes, at most 17
}
