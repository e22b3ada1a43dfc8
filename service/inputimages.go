package service

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
)

// mostResized bounds the values that images become, however small they come.
const mostResized = 64 << 20

// resized is the images of an array in the size that a network takes, which is side by side. An array that is rows of
// the network already stays as it is, unless its document says otherwise; so does one that is no images, which its
// reader refuses.
func (a *array) resized(said []int, input model.Shape, side int) (array, error) {
	if len(input) != 3 || len(said) == 0 && a.misfit(input) == "" {
		return *a, nil
	}
	shape := a.imageShape(said, input[0])
	if shape == nil || shape[0] != input[0] || model.Shape(shape).Len() == 0 ||
		len(a.values)%model.Shape(shape).Len() != 0 || shape[1] == side && shape[2] == side {
		return *a, nil
	}
	n := model.Shape(shape).Len()
	images := len(a.values) / n
	if images > mostResized/input.Len() {
		return *a, &disdel.Error{
			Kind: disdel.OverLimit, Op: "resize inputs", Msg: fmt.Sprintf("%d images of %d values are too many at once", images,
				input.Len()), Hint: "ask for fewer at a time",
		}
	}
	out := array{shape: append([]int{images}, input...), values: make([]float32, 0, images*input.Len())}
	for values := a.values; len(values) > 0; values = values[n:] {
		image, err := dataset.Resize(values[:n], shape, side)
		if err != nil {
			return *a, err
		}
		out.values = append(out.values, image...)
	}
	return out, nil
}

// imageShape is the shape of an array's images of so many channels, [channels height width]: what its document says,
// how it is nested, or squares; nil where it is none of them.
func (a *array) imageShape(said []int, channels int) []int {
	n := len(a.shape)
	switch {
	case len(said) == 3:
		return said
	case n == 0:
		return nil
	case n >= 3 && a.shape[n-3] == channels:
		return a.shape[n-3:]
	case n >= 2 && channels == 1 && a.shape[n-2] == a.shape[n-1]:
		return []int{1, a.shape[n-2], a.shape[n-1]}
	}
	last := a.shape[n-1]
	side := int(math.Round(math.Sqrt(float64(last) / float64(max(1, channels)))))
	if channels*side*side != last {
		return nil
	}
	return []int{channels, side, side}
}
