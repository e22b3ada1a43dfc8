package dataset

import (
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// augmenting shows images otherwise in every epoch: a part of them, moved by some pixels over zeros, and mirrored or
// not, as He et al. (2016) do with CIFAR. What an image becomes depends on the job's seed, the epoch and its place
// among all rows to learn from, and on nothing else: neither on which worker trains it, nor on how often an action
// stopped and went on, nor on what was drawn before.
type augmenting struct {
	how                     disdel.Augment
	channels, height, width int
	first                   int       // place of the shard's first row among those to learn from
	image                   []float32 // a resized one; nil: rows are read where they lie
}

// drawnChange is what becomes of an image: so many pixels it is moved up and left, and whether it is mirrored.
type drawnChange struct {
	up, left int
	flip     bool
}

// draw is what becomes of a row of the shard in an epoch.
func (a *augmenting) draw(seed int64, epoch, row int) (d drawnChange) {
	state := mixed(mixed(mixed(uint64(seed))+uint64(epoch)) + uint64(a.first+row))
	next := func(n int) int { // below n; the low half of the state, as a share of all that it could be
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

// pixels is an image as it is trained on, before it is moved: a row where it lies, or one that was resized.
type pixels struct {
	shard *Shard
	first int // value of the shard
	image []float32
}

// read writes the values from one on.
func (p pixels) read(dst []float32, at int) {
	if p.image != nil {
		copy(dst, p.image[at:])
		return
	}
	p.shard.scaled(dst, p.first+at)
}

// show writes an image, [channels height width], as it is seen.
func (a *augmenting) show(out []float32, image pixels, d drawnChange) {
	if (d == drawnChange{}) {
		image.read(out, 0)
		return
	}
	from, to := max(0, d.left), min(a.width, a.width+d.left) // of the columns those that stay
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

// augmented has the batches of a shard that was read show images as a request for it says; first is its first row.
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

// CheckAugment says why rows of a shape, [channels height width], cannot be shown so; "": they can.
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

// FillAugmented is Fill of rows as a job's training sees them in an epoch: moved and mirrored where that was asked for.
// The same seed, epoch and rows give the same bits.
func (s *Shard) FillAugmented(b *Batch, rows []int32, seed int64, epoch int) {
	if s.change == nil {
		s.Fill(b, rows)
		return
	}
	s.makeRoom(b, len(rows))
	for i, row := range rows {
		b.Target.Classes[i] = s.labels[row]
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
