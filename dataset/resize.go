package dataset

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// resizing makes images of another size, bilinear: a pixel of the new image is the mean of the four of the old one that
// its centre lies between, by their distances (half-pixel centres, no antialiasing; what PyTorch's interpolate does
// with align_corners=False, and TensorFlow 2's tf.image.resize). It rounds after every operation, so that all machines
// come to the same bits.
type resizing struct {
	channels, height, width, side int
	down, right                   []tap     // by row and by column of the new image
	row                           []float32 // the image that is resized, [channels height width]
}

// tap is two neighbours of the old image, and the second one's share of their mean.
type tap struct {
	first, second int
	share         float32
}

func newResizing(shape []int, side int) *resizing {
	return &resizing{
		channels: shape[0], height: shape[1], width: shape[2], side: side,
		down: taps(shape[1], side), right: taps(shape[2], side), row: make([]float32, shape[0]*shape[1]*shape[2]),
	}
}

// taps are those of a side of so many pixels that becomes one of another number.
func taps(from, to int) []tap {
	out := make([]tap, to)
	for i := range out {
		at := max(0, (float64(i)+0.5)*float64(from)/float64(to)-0.5)
		first := min(int(math.Floor(at)), from-1)
		out[i] = tap{first: first, second: min(first+1, from-1), share: float32(at - float64(first))}
	}
	return out
}

// len is the values of an image of the new size.
func (z *resizing) len() int { return z.channels * z.side * z.side }

// resize writes the image of row, [channels height width], into out, [channels side side].
func (z *resizing) resize(out []float32) {
	for c := range z.channels {
		in := z.row[c*z.height*z.width:]
		for y, d := range z.down {
			above, below := in[d.first*z.width:], in[d.second*z.width:]
			line := out[(c*z.side+y)*z.side:]
			for x, r := range z.right {
				top := between(above[r.first], above[r.second], r.share)
				line[x] = between(top, between(below[r.first], below[r.second], r.share), d.share)
			}
		}
	}
}

// between is a share of the way from a to b. The conversions keep compilers from fusing the two operations.
func between(a, b, share float32) float32 { return a + float32(share*float32(b-a)) }

// Resize is an image, [channels height width], with side rows and columns of pixels, [channels side side]: what a job
// whose data.resize is side trains on. It returns Invalid for what is no image of that shape, and for another side.
func Resize(image []float32, shape []int, side int) ([]float32, error) {
	if len(shape) != 3 || min(shape[0], shape[1], shape[2]) < 1 || max(shape[0], shape[1], shape[2]) > largestSide ||
		len(image) != shape[0]*shape[1]*shape[2] || side < 1 || side > largestSide {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "resize image",
			Msg: fmt.Sprintf("%d values of shape %v cannot become an image of %d pixels a side", len(image), shape, side),
		}
	}
	z := newResizing(shape, side)
	copy(z.row, image)
	out := make([]float32, z.len())
	z.resize(out)
	return out, nil
}

// resized makes the rows of a shard that was read as large as a request for it says.
func resized(ref disdel.DataRef) func(*Shard, error) (*Shard, error) {
	return func(s *Shard, err error) (*Shard, error) {
		if err != nil || ref.Resize == 0 {
			return s, err
		}
		if ref.Resize < 0 || ref.Resize > largestSide {
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "read data set " + ref.Name, Msg: "images cannot be resized to that size",
			}
		}
		s.to = newResizing(s.shape, ref.Resize)
		return s, nil
	}
}

// largestSide bounds a request's size of images, as the job file's field does.
const largestSide = 4096
