package export

import (
	"github.com/disdel/disdel/model"
)

// aroundImage adds the zeros that a node puts around an image. It is false for other padding.
func (r *importer) aroundImage(n *step, x int, view view, pads []int64) bool {
	for _, channel := range []int{0, 1, 4, 5} {
		if pads[channel] != 0 {
			return false
		}
	}
	for _, v := range pads {
		if v < 0 || v > 1<<12 {
			return false
		}
	}
	node := r.b.Pad(r.name(n, ""), x, model.Padding{
		Top: int(pads[2]), Left: int(pads[3]), Bottom: int(pads[6]), Right: int(pads[7]),
	})
	r.set(n, value{isNode: true, node: node, view: view})
	return true
}

// addsZeros tells whether a Pad adds zeros: the value is an input or, below opset 11, an option.
func (r *importer) addsZeros(n *step) bool {
	v, ok := r.in(n, 2)
	if !ok {
		return n.number("value", 0) == 0
	}
	list := v.array.floats32()
	return len(list) == 1 && list[0] == 0
}

// pads are those before and behind each axis of a Pad, nil where they do not fit. From opset 18 on, a file may name the
// axes.
func (r *importer) pads(n *step, rank int) []int64 {
	list, axes := r.list(n, 1, "pads"), r.list(n, 3, "")
	if _, named := r.in(n, 3); !named {
		return list
	}
	all := make([]int64, 2*rank)
	for i, axis := range axes {
		if axis < 0 {
			axis += int64(rank)
		}
		if axis < 0 || axis >= int64(rank) || len(list) != 2*len(axes) {
			return nil
		}
		all[axis], all[int(axis)+rank] = list[i], list[len(axes)+i]
	}
	return all
}

// spaceToDepth reads square blocks.
func (r *importer) spaceToDepth(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	block := n.whole("blocksize", 0)
	if in := r.b.Out(x); len(in) != 3 || block < 1 || block > 1<<12 {
		r.fault(n, "blocksize is %d, of %v", block, []int(in))
		return
	}
	r.layer(n, r.b.SpaceToDepth(r.name(n, ""), x, model.Sides{H: int(block), W: int(block)}))
}

// prelu takes one slope, or one for each channel.
func (r *importer) prelu(n *step) {
	x, slopes, sides, ok := r.weighted(n)
	if !ok {
		return
	}
	out := r.sides(x)
	each := len(sides) >= len(out) && sides[len(sides)-len(out)] == len(slopes) && len(slopes) == out[0]
	if len(slopes) != 1 && !each {
		r.fault(n, "it has slopes of %v for %v; disdel has one for all, or one for each channel", sides, []int(out))
		return
	}
	name := r.name(n, "")
	r.keep(name, slopes, nil)
	r.layer(n, r.b.PReLU(name, x, len(slopes)))
}

// resize repeats pixels. The other ways to resize an image are refused.
func (r *importer) resize(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	in := r.b.Out(x)
	times, ok := r.times(n, in)
	mode, nearest := n.options["mode"].text, n.options["nearest_mode"].text
	where := n.options["coordinate_transformation_mode"].text
	repeats := where == "asymmetric" && nearest == "floor" || n.kind == "Upsample" ||
		(where == "" || where == "half_pixel") && (nearest == "" || nearest == "round_prefer_floor")
	if !ok || mode != "" && mode != "nearest" || !repeats {
		r.fault(n, "disdel reads only images whose pixels are repeated, a whole number of times (nearest)")
		return
	}
	r.layer(n, r.b.Upsample(r.name(n, ""), x, times))
}

// times is how often a node repeats the pixels of an image, by its scales or by the sizes that it asks for.
func (r *importer) times(n *step, in model.Shape) (times model.Sides, ok bool) {
	var scales []float32
	for _, at := range []int{1, 2} {
		if v, there := r.in(n, at); there && v.array.floats32() != nil && len(v.array.floats32()) == 4 {
			scales = v.array.floats32()
		}
	}
	sizes := r.list(n, 3, "sizes")
	if len(in) == 3 && len(sizes) == 4 {
		scales = []float32{
			1, float32(sizes[1]) / float32(in[0]), float32(sizes[2]) / float32(in[1]),
			float32(sizes[3]) / float32(in[2]),
		}
	}
	if len(in) != 3 || len(scales) != 4 || scales[0] != 1 || scales[1] != 1 {
		return times, false
	}
	times = model.Sides{H: int(scales[2]), W: int(scales[3])}
	return times, float32(times.H) == scales[2] && float32(times.W) == scales[3] && min(times.H, times.W) >= 1
}
