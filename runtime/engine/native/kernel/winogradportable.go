package kernel

import (
	"unsafe"

	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// tilePixels is how many pixels a tile has at most, and how many values of a channel a transform keeps halfway.
const tilePixels = 49

// single is a matrix in single precision.
type single [][]float32

func singles(m winograd.Matrix) single {
	out := make(single, len(m))
	for i, row := range m {
		for _, v := range row {
			out[i] = append(out[i], float32(v))
		}
	}
	return out
}

// square are a matrix for each side of a tile.
type square struct{ h, w single }

// apply is h x w^T of a tile x.
func (s square) apply(x func(i, j int) float32, to func(i, j int, v float32)) {
	var half [tilePixels]float32
	across := len(s.w[0])
	for i, row := range s.h {
		for j := range across {
			half[i*across+j] = 0
			for k, v := range row {
				half[i*across+j] += v * x(k, j)
			}
		}
	}
	for i := range s.h {
		for j, row := range s.w {
			var sum float32
			for k, v := range row {
				sum += v * half[i*across+k]
			}
			to(i, j, sum)
		}
	}
}

// portableWinograd are the transforms in plain Go, by the matrices.
func portableWinograd() map[winograd.Tile]*transforms {
	out := map[winograd.Tile]*transforms{}
	for _, t := range winograd.Tiles() {
		out[t] = portableTransforms(t)
	}
	return out
}

func portableTransforms(t winograd.Tile) *transforms {
	across := t.W.Points()
	input := func(s square) func(*winogradArgs) {
		return func(w *winogradArgs) {
			for c := range w.channels {
				for l := int64(0); l < w.width; l += 4 {
					s.apply(func(i, j int) float32 { return get(w.src, w.tap(i, j, t.W.In)+c*w.row+l) },
						func(i, j int, v float32) {
							*(*float32)(ptr(w.dst, int64(i*across+j)*w.point+c*w.width+l)) = v
						})
				}
			}
		}
	}
	output := func(s square) func(*winogradArgs) {
		return func(w *winogradArgs) {
			for c := range w.channels {
				for l := int64(0); l < w.width; l += 4 {
					s.apply(func(i, j int) float32 {
						return get(w.src, int64(i*across+j)*w.point+c*w.width+l)
					}, func(i, j int, v float32) { w.deliver(w.tap(i, j, t.W.Out)+c*w.row+l, c, v) })
				}
			}
		}
	}
	up := func(inner int) func(square) func(*winogradArgs) {
		return func(s square) func(*winogradArgs) {
			return func(w *winogradArgs) {
				for l := int64(0); l < w.width; l += 4 {
					s.apply(func(i, j int) float32 { return get(w.src, w.tap(i, j, inner)+l) },
						func(i, j int, v float32) { *(*float32)(ptr(w.dst, int64(i*across+j)*w.point+l)) = v })
				}
			}
		}
	}
	gather := func(s square) func(*winogradArgs) {
		return func(w *winogradArgs) {
			for l := int64(0); l < w.width; l += 4 {
				s.apply(func(i, j int) float32 { return get(w.src, int64(i*across+j)*w.point+l) },
					func(i, j int, v float32) { *(*float32)(ptr(w.dst, w.tap(i, j, t.W.Taps)+l)) = v })
			}
		}
	}
	side, _ := t.Side()
	by := func(pick func(winograd.Matrices) winograd.Matrix, kernel func(square) func(*winogradArgs)) transform {
		s := square{h: singles(pick(t.H.Matrices())), w: singles(pick(t.W.Matrices()))}
		numbers := append(pick(side.Matrices()).Program().Numbers, 0) // never none
		return transform{kernel: kernel(s), numbers: unsafe.Pointer(unsafe.SliceData(numbers))}
	}
	return &transforms{
		input:   by(func(m winograd.Matrices) winograd.Matrix { return m.Input }, input),
		output:  by(func(m winograd.Matrices) winograd.Matrix { return m.Output }, output),
		weights: by(func(m winograd.Matrices) winograd.Matrix { return m.Kernel }, up(t.W.Taps)),
		spread:  by(func(m winograd.Matrices) winograd.Matrix { return m.Output.Transposed() }, up(t.W.Out)),
		gather:  by(func(m winograd.Matrices) winograd.Matrix { return m.Kernel.Transposed() }, gather),
	}
}

// tap is the offset of a pixel of a tile with so many side by side.
func (w *winogradArgs) tap(i, j, across int) int64 {
	return *(*int64)(ptr(w.offs, 8*int64(i*across+j)))
}

// deliver stores a value of an output.
func (w *winogradArgs) deliver(at, channel int64, v float32) {
	y := (*float32)(ptr(w.dst, at))
	if w.bias != nil {
		v += get(w.bias, 4*channel)
	}
	if w.add != 0 {
		v += *y
	}
	if w.relu != 0 && v < 0 {
		v = 0
	}
	*y = v
}
