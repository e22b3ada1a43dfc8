package plot

import (
	"fmt"
	"math"
	"slices"
)

// Scale is an axis of a sweep: numbers, or categories at 0, 1, 2 and so on.
type Scale struct {
	Name       string
	Low, High  float64
	Log        bool      // both ends are above 0
	Categories []string  // nil: numbers
	few        []float64 // the values, if they are few and apart: each has a mark
}

// ScaleOf is the scale of values; NaN is no value. It is logarithmic if the values are above 0 and span a factor of 50.
func ScaleOf(name string, values []float64, categories []string) Scale {
	s := Scale{Name: name, Low: math.Inf(1), High: math.Inf(-1), Categories: categories}
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.Low, s.High = min(s.Low, v), max(s.High, v)
		}
	}
	switch {
	case categories != nil:
		s.Low, s.High = -.5, float64(len(categories))-.5
	case s.Low > s.High:
		s.Low, s.High = 0, 1
	case s.Low == s.High:
		margin := max(math.Abs(s.Low)/10, 1e-9)
		s.Low, s.High = s.Low-margin, s.High+margin
	case s.Low > 0 && s.High/s.Low >= 50:
		s.Log, s.Low, s.High = true, s.Low/1.2, s.High*1.2
	default:
		margin := (s.High - s.Low) / 20
		s.Low, s.High = s.Low-margin, s.High+margin
	}
	if categories == nil {
		s.few = s.distinct(values)
	}
	return s
}

// distinct are the different values, nil if marks of all would lie upon each other.
func (s *Scale) distinct(values []float64) []float64 {
	out := slices.Compact(slices.Sorted(slices.Values(values)))
	out = slices.DeleteFunc(out, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	for i := range out {
		if i > 0 && s.part(out[i])-s.part(out[i-1]) < .12 {
			return nil
		}
	}
	return out
}

// part is where a value is on the scale, from 0 to 1.
func (s *Scale) part(v float64) float64 {
	if s.Log {
		return math.Log(v/s.Low) / math.Log(s.High/s.Low)
	}
	return (v - s.Low) / (s.High - s.Low)
}

// mark is a mark of a scale with its text.
type mark struct {
	at   float64
	text string
}

func (s *Scale) marks(maximum int) (out []mark) {
	switch {
	case s.Categories != nil:
		every := (len(s.Categories) + maximum - 1) / maximum
		for i, name := range s.Categories {
			if i%max(1, every) == 0 {
				out = append(out, mark{float64(i), shortened(name)})
			}
		}
	case len(s.few) > 0 && len(s.few) <= maximum:
		for _, v := range s.few {
			out = append(out, mark{v, tickText(v)})
		}
	case s.Log:
		for power := math.Ceil(math.Log10(s.Low)); power <= math.Log10(s.High); power++ {
			out = append(out, mark{math.Pow(10, power), tickText(math.Pow(10, power))})
		}
	default:
		for _, v := range ticks(s.Low, s.High, maximum, false) {
			if v >= s.Low && v <= s.High {
				out = append(out, mark{v, tickText(v)})
			}
		}
	}
	return out
}

// mostMark is how many characters of a category a mark has.
const mostMark = 10

func shortened(text string) string {
	if r := []rune(text); len(r) > mostMark {
		return string(r[:mostMark-1]) + "…"
	}
	return text
}

// SweepJob is a job of a sweep: its value on each scale, NaN where it has none.
type SweepJob struct {
	Number int    // from 1, as legends have it
	Note   string // name and values, with "; " between, which are read aloud and shown where the job is pointed at
	Class  string // of the page's style sheet
	Link   string // address of the job; "": none
	Values []float64
}

// Sweep is a chart of the jobs of a sweep, over a scale for each parameter and metric.
type Sweep struct {
	Title, Alt string
	Scales     []Scale
	Jobs       []SweepJob
}

// Scatter draws the jobs over the first two scales. A job is its number in a shape: colour has no meaning of its own.
func (s *Sweep) Scatter() string {
	d := s.begin(pageHeight)
	x, y := &s.Scales[0], &s.Scales[1]
	bottom, right := pageHeight-pageBottom, pageWidth-pageRight
	d.open("g", "class", "axis")
	for _, m := range y.marks(pageTicks) {
		at := bottom - (bottom-pageTop)*y.part(m.at)
		d.shape("line", "", "class", "grid", "x1", pageLeft, "x2", right, "y1", at, "y2", at)
		d.label(pageLeft-5, at+4, "end", m.text)
	}
	d.shape("line", "", "class", "base", "x1", pageLeft, "x2", right, "y1", bottom, "y2", bottom)
	for _, m := range x.marks(pageTicks) {
		at := pageLeft + (right-pageLeft)*x.part(m.at)
		d.shape("line", "", "class", "base", "x1", at, "x2", at, "y1", bottom, "y2", bottom+4)
		d.label(at, bottom+16, "middle", m.text)
	}
	d.label((pageLeft+right)/2, bottom+33, "middle", x.Name)
	d.open("text", "transform", fmt.Sprintf("translate(11 %s) rotate(-90)", coordinate((pageTop+bottom)/2)),
		"text-anchor", "middle")
	d.text(y.Name)
	d.close("text")
	d.close("g")
	for _, j := range s.Jobs {
		if math.IsNaN(j.Values[0]) || math.IsNaN(j.Values[1]) {
			continue
		}
		cx, cy := pageLeft+(right-pageLeft)*x.part(j.Values[0]), bottom-(bottom-pageTop)*y.part(j.Values[1])
		d.job(&j)
		d.shape("circle", "", "class", "point "+j.Class, "cx", cx, "cy", cy, "r", "7")
		d.label(cx, cy+4, "middle", fmt.Sprint(j.Number))
		d.close("a")
	}
	return d.end()
}

// Parallel draws a vertical axis for each scale, and a line across them for each job.
func (s *Sweep) Parallel() string {
	const left, top = 56.0, 36.0
	d := s.begin(pageHeight)
	bottom, gap := pageHeight-pageTop, (pageWidth-2*left)/float64(max(1, len(s.Scales)-1))
	place := func(i int, v float64) (x, y float64) {
		return left + float64(i)*gap, bottom - (bottom-top)*s.Scales[i].part(v)
	}
	d.open("g", "class", "axis")
	for i := range s.Scales {
		x, lift := left+float64(i)*gap, 14.0*float64(i%2)
		d.shape("line", "", "class", "base", "x1", x, "x2", x, "y1", top, "y2", bottom)
		d.label(x, 13+lift, anchorOf(i, len(s.Scales)), s.Scales[i].Name)
	}
	d.close("g")
	for _, j := range s.Jobs {
		d.job(&j)
		for _, path := range s.pieces(&j, place) {
			d.path("", "line "+j.Class, path, "")
		}
		d.close("a")
	}
	d.open("g", "class", "axis over")
	for i := range s.Scales {
		for _, m := range s.Scales[i].marks(pageTicks - 1) {
			x, y := place(i, m.at)
			d.shape("line", "", "class", "base", "x1", x-3, "x2", x+3, "y1", y, "y2", y)
			if i == 0 { // on its other side a long text would leave the picture
				d.label(x+6, y+4, "start", m.text)
			} else {
				d.label(x-6, y+4, "end", m.text)
			}
		}
	}
	d.close("g")
	return d.end()
}

// anchorOf keeps the names of the first and the last axis within the picture.
func anchorOf(i, n int) string {
	switch i {
	case 0:
		return "start"
	case n - 1:
		return "end"
	default:
		return "middle"
	}
}

// pieces are the paths of a job's line, which breaks where it has no value.
func (s *Sweep) pieces(j *SweepJob, place func(int, float64) (x, y float64)) (out []string) {
	var b []byte
	flush := func() {
		if len(b) > 0 {
			out = append(out, string(b))
		}
		b = nil
	}
	for i, v := range j.Values {
		if math.IsNaN(v) {
			flush()
			continue
		}
		x, y := place(i, v)
		b = append(b, "ML"[min(len(b), 1)])
		b = appendCoordinate(append(appendCoordinate(b, x), ' '), y)
	}
	flush()
	return out
}

// begin opens a picture whose jobs are links, which a keyboard comes to.
func (s *Sweep) begin(height float64) *picture {
	d := &picture{}
	d.open("svg", "viewBox", fmt.Sprintf("0 0 %g %g", pageWidth, height), "class", "sweep", "role", "group",
		"aria-label", s.Title+". "+s.Alt)
	return d
}

// job opens the link of a job. Without an address it is a group with a name.
func (d *picture) job(j *SweepJob) {
	at := []any{"data-tip", j.Note, "aria-label", j.Note}
	if j.Link != "" {
		at = append(at, "href", j.Link)
	}
	d.open("a", at...)
}

// CategoriesOf are the different texts in their order, and the place of each among them; "" has no place: NaN.
func CategoriesOf(texts []string) (names []string, places []float64) {
	names = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(texts))), func(s string) bool { return s == "" })
	for _, text := range texts {
		place := math.NaN()
		if i := slices.Index(names, text); i >= 0 {
			place = float64(i)
		}
		places = append(places, place)
	}
	return names, places
}
