package plot

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// labels writes the points' labels.
type labels struct{ Chart }

// draw puts every label at a free place around its point. Points of the front
// and the job's own are served first.
func (l labels) draw(f frame) {
	c := f.area
	var points []Point
	o := obstacles{frame: c.Rectangle}
	for _, line := range l.Lines {
		var before vg.Point
		for i, v := range line.Points {
			points = append(points, v)
			at := f.at(v.X.Likely, v.Y.Likely)
			o.taken = append(o.taken, around(at, markRadius))
			if i > 0 {
				o.line(before, at)
			}
			before = at
		}
	}
	slices.SortStableFunc(points, func(a, b Point) int { return rank(a) - rank(b) })
	style := f.label()
	labelled := map[string][]vg.Point{}
	for _, v := range points {
		at := f.at(v.X.Likely, v.Y.Likely)
		if v.Label == "" || slices.ContainsFunc(labelled[v.Label], func(p vg.Point) bool { return near(p, at) }) {
			continue
		}
		labelled[v.Label] = append(labelled[v.Label], at)
		size := style.Rectangle(v.Label).Size()
		if r, ok := o.free(at, size, v.Own); ok {
			write(c, style, r, v.Label)
			o.taken = append(o.taken, r)
		}
	}
}

// near tells whether two points have room for one label only: the same text twice would say nothing more.
func near(a, b vg.Point) bool {
	const reach = 4 * markRadius
	d := a.Sub(b)
	return max(d.X, -d.X) < reach && max(d.Y, -d.Y) < reach
}

// write puts text into r, over what is there already.
func write(c draw.Canvas, style text.Style, r vg.Rectangle, s string) {
	c.FillPolygon(color.White, []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}})
	c.FillText(style, r.Min, s)
}

func rank(p Point) int {
	switch {
	case p.Own:
		return 0
	case p.Front:
		return 1
	default:
		return 2
	}
}

func around(at vg.Point, r vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: at.X - r, Y: at.Y - r}, Max: vg.Point{X: at.X + r, Y: at.Y + r}}
}

// obstacles is where labels cannot go, and where they should not.
type obstacles struct {
	frame vg.Rectangle
	taken []vg.Rectangle
	lines []vg.Point // points close together along the lines
}

// line adds a straight line.
func (o *obstacles) line(from, to vg.Point) {
	const steps = 40
	for i := range steps {
		o.lines = append(o.lines, from.Add(to.Sub(from).Scale(vg.Length(i)/steps)))
	}
}

// free returns a place for a label of a size beside the point at. The place covers as little of the lines as possible.
// ok is false if all places are taken or out of the frame.
func (o *obstacles) free(at, size vg.Point, ringed bool) (best vg.Rectangle, ok bool) {
	gap := markRadius + pixel
	if ringed {
		gap = 2*markRadius + pixel
	}
	right, left, middle := at.X+gap, at.X-gap-size.X, at.X-size.X/2
	above, below, level := at.Y+gap, at.Y-gap-size.Y, at.Y-size.Y/2
	minimum := len(o.lines) + 1
	for _, min := range []vg.Point{
		{X: right, Y: above},
		{X: left, Y: above},
		{X: right, Y: below},
		{X: left, Y: below},
		{X: middle, Y: above},
		{X: middle, Y: below},
		{X: right, Y: level},
		{X: left, Y: level},
	} {
		r := vg.Rectangle{Min: min, Max: min.Add(size)}
		if !within(r, o.frame) || slices.ContainsFunc(o.taken, func(t vg.Rectangle) bool { return overlap(r, t) }) {
			continue
		}
		crossed := 0
		for _, p := range o.lines {
			if within(vg.Rectangle{Min: p, Max: p}, r) {
				crossed++
			}
		}
		if crossed < minimum {
			best, minimum, ok = r, crossed, true
		}
	}
	return best, ok
}

func within(r, frame vg.Rectangle) bool {
	return r.Min.X >= frame.Min.X && r.Min.Y >= frame.Min.Y && r.Max.X <= frame.Max.X && r.Max.Y <= frame.Max.Y
}

func overlap(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}
