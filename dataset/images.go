package dataset

import (
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// augmenting changes images in every epoch: it shifts them by some pixels over zeros, and mirrors some, as He et al.
// (2016) do with CIFAR. The change of an image depends only on the job's seed, the epoch and the image's place among
// all training rows: not on the worker that trains it, nor on how often an action stopped and continued.
type augmenting struct {
	how                     disdel.Augment
	channels, height, width int
	first                   int       // place of the shard's first row among the training rows
	image                   []float32 // a resized one; nil: rows are not copied
}

// drawnChange is the change of an image: a shift up and left in pixels, and mirroring.
type drawnChange struct {
	up, left int
	flip     bool
}

// draw draws the change of a row of the shard in an epoch.
func (a *augmenting) draw(seed int64, epoch, row int) (d drawnChange) {
	state := mixed(mixed(mixed(uint64(seed))+uint64(epoch)) + uint64(a.first+row))
	next := func(n int) int { // below n, from the low half of the state
		state = mixed(state)
		return int((state & 0xffffffff) * uint64(n) >> 32)
	}
	d.up, d.left = next(2*a.how.Crop+1)-a.how.Crop, next(2*a.how.Crop+1)-a.how.Crop
	d.flip = next(2) == 1 && a.how.Flip
	return d
}

// mixed spreads a number over all bits (splitmix64, Steele et al. 2014).
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// pixels is an image before its shift: a stored row, or a resized one.
type pixels struct {
	shard *Shard
	first int // index of its first value in the shard
	image []float32
}

// read writes the values from at on.
func (p pixels) read(dst []float32, at int) {
	if p.image != nil {
		copy(dst, p.image[at:])
		return
	}
	p.shard.scaled(dst, p.first+at)
}

// show writes a changed image, [channels height width].
func (a *augmenting) show(out []float32, image pixels, d drawnChange) {
	if (d == drawnChange{}) {
		image.read(out, 0)
		return
	}
	from, to := max(0, d.left), min(a.width, a.width+d.left) // the columns that remain
	for c := range a.channels {
		for y := range a.height {
			line, old := out[(c*a.height+y)*a.width:][:a.width], y+d.up
			if old < 0 || old >= a.height {
				clear(line)
				continue
			}
			clear(line[:from-d.left])
			image.read(line[from-d.left:to-d.left], (c*a.height+old)*a.width+from)
			clear(line[to-d.left:])
			if d.flip {
				slices.Reverse(line)
			}
		}
	}
}

// augmented lets the batches of a shard show images as a request says; first is its first row.
func augmented(ref disdel.DataRef, first int) func(*Shard, error) (*Shard, error) {
	return func(s *Shard, err error) (*Shard, error) {
		if err != nil || ref.Augment == (disdel.Augment{}) {
			return s, err
		}
		shape := s.shape
		if s.to != nil {
			shape = []int{shape[0], s.to.side, s.to.side}
		}
		if why := CheckAugment(ref.Augment, shape); why != "" {
			return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read data set " + ref.Name, Msg: why}
		}
		s.change = &augmenting{
			how: ref.Augment, channels: shape[0], height: shape[1], width: shape[2], first: first,
		}
		if s.to != nil {
			s.change.image = make([]float32, s.to.len())
		}
		return s, nil
	}
}

// CheckAugment returns why rows of a shape, [channels height width], cannot be augmented so, "" if they can.
func CheckAugment(how disdel.Augment, shape []int) string {
	switch {
	case len(shape) != 3 || shape[1] == 1 && shape[2] > 1:
		return "the rows are no images"
	case how.Crop < 0 || how.Crop >= min(shape[1], shape[2]):
		return "images are moved by fewer pixels than they have"
	default:
		return ""
	}
}

// FillAugmented is Fill with the job's augmentation of an epoch. The same seed, epoch and rows give the same bits.
func (s *Shard) FillAugmented(b *Batch, rows []int32, seed int64, epoch int) {
	if s.change == nil {
		s.Fill(b, rows)
		return
	}
	s.makeRoom(b, len(rows))
	for i, row := range rows {
		s.label(b, i, row)
		s.change.show(b.Input.Row(i), s.pixels(int(row)), s.change.draw(seed, epoch, int(row)))
	}
}

func (s *Shard) pixels(row int) pixels {
	if s.to == nil {
		return pixels{shard: s, first: row * s.sample}
	}
	s.resized(s.change.image, row)
	return pixels{image: s.change.image}
}

// resizing changes the size of images by bilinear interpolation. A pixel of the new image is the mean of the four
// pixels of the old one around its centre, weighted by distance. Centres are at half pixels, and there is no
// antialiasing, as in PyTorch's interpolate with align_corners=False and TensorFlow 2's tf.image.resize. It rounds
// after every operation, so that the bits are the same on all machines.
type resizing struct {
	channels, height, width, side int
	down, right                   []tap     // by row and by column of the new image
	row                           []float32 // the old image, [channels height width]
}

// tap is two neighbours in the old image, and the second one's weight.
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

// taps returns the taps for a side that changes from one number of pixels to another.
func taps(from, to int) []tap {
	out := make([]tap, to)
	for i := range out {
		at := max(0, (float64(i)+0.5)*float64(from)/float64(to)-0.5)
		first := min(int(math.Floor(at)), from-1)
		out[i] = tap{first: first, second: min(first+1, from-1), share: float32(at - float64(first))}
	}
	return out
}

// len is the number of values of a new image.
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

// between interpolates from a to b. The conversions keep compilers from fusing the two operations.
func between(a, b, share float32) float32 { return a + float32(share*float32(b-a)) }

// Resize returns an image, [channels height width], with side rows and columns of pixels, [channels side side], as
// for a job with data.resize. It returns Invalid if there is no image of that shape, and for an invalid side.
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

// resized sets the size of a shard's rows to that of a request.
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

// largestSide limits the size of images in a request, like the job file's field.
const largestSide = 4096
