package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

func span(low, likely, high float64) Span { return Span{Low: low, Likely: likely, High: high} }

func chart() Chart {
	c := Chart{
		Title: "mnist-mlp: time against cost", X: Axis{Name: "cost (GB-s)"}, Y: Axis{Name: "time (s)"},
		Front: "Pareto front", Own: "job file",
	}
	for k, batch := range []string{"batch 32", "batch 64", "batch 128"} {
		l := Line{Name: batch}
		for w := 1; w <= 8; w++ {
			t := 120/float64(w) + 8*float64(w) - 6*float64(k)
			cost := t*float64(w)*0.12 + 4 - float64(k)
			l.Points = append(l.Points, Point{
				X: span(cost*0.9, cost, cost*1.15), Y: span(t*0.85, t, t*1.2), Label: strconv.Itoa(w), Front: k == 2 && w < 5,
				Own: k == 1 && w == 2,
			})
		}
		c.Lines = append(c.Lines, l)
	}
	return c
}

func written(t *testing.T, c Chart, f Format) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("DISDEL_TEST_PLOTS"); dir != "" {
		os.WriteFile(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+"."+string(f)), b.Bytes(), 0o600)
	}
	return b.Bytes()
}

func TestPNGHasItsSize(t *testing.T) {
	img, err := png.Decode(bytes.NewReader(written(t, chart(), PNG)))
	if err != nil {
		t.Fatal(err)
	}
	if s := img.Bounds().Size(); s.X != Width || s.Y != Height {
		t.Errorf("%v", s)
	}
}

// A chart says what its axes are, names every line, and is the same bytes again.
func TestSVGIsWholeAndSays(t *testing.T) {
	data := written(t, chart(), SVG)
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{
		"cost (GB-s)", "time (s)", "batch 32", "batch 64", "batch 128", "Pareto front",
		"job file", "mnist-mlp: time against cost",
	} {
		if !bytes.Contains(data, []byte(">"+text+"</text>")) {
			t.Errorf("no %q", text)
		}
	}
	if !bytes.Equal(data, written(t, chart(), SVG)) {
		t.Error("a second time it is another file")
	}
}

// Names come from users.
func TestTextIsEscaped(t *testing.T) {
	c := chart()
	c.Title = `</svg><script>alert(1)</script>`
	if data := written(t, c, SVG); bytes.Contains(data, []byte("<script>")) {
		t.Error("the title is a script")
	}
}

// Nothing to draw, one point, and points that are all the same are charts too.
func TestThinChartsAreDrawn(t *testing.T) {
	same := Point{X: Span{Likely: 2}, Y: Span{Likely: 3}, Label: "1", Own: true, Front: true}
	for name, lines := range map[string][]Line{
		"nothing": nil, "no point": {{Name: "batch 1"}}, "one": {{Points: []Point{same}}},
		"same": {{Points: []Point{same, same}}}, "zero": {{Points: []Point{{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := Chart{Title: name, Lines: lines, Front: "front", Own: "own"}
			for _, f := range []Format{SVG, PNG} {
				if data := written(t, c, f); regexp.MustCompile(`NaN|Inf`).Match(data) && f == SVG {
					t.Errorf("%s is not finite", f)
				}
			}
		})
	}
}

func TestMemoryChart(t *testing.T) {
	c := Chart{
		Title: "memory of a train action", X: Axis{Name: "workers", Whole: true}, Y: Axis{Name: "peak memory (MB)"},
		Rules: []Rule{{512, "platform's maximum, 512 MB"}}, Own: "job file",
	}
	for _, b := range []float64{32, 64, 128} {
		l := Line{Name: "batch " + number(b)}
		for w := 1.0; w <= 8; w++ {
			m := 60 + b*1.5 + 240/w
			l.Points = append(l.Points, Point{X: Span{Likely: w}, Y: span(m*0.95, m, m*1.1), Own: b == 64 && w == 2})
		}
		c.Lines = append(c.Lines, l)
	}
	if data := written(t, c, SVG); !bytes.Contains(data, []byte("platform&#39;s maximum, 512 MB")) {
		t.Error("the rule has no name")
	}
	written(t, c, PNG)
}

func TestUnknownFormatsAreRefused(t *testing.T) {
	if err := chart().Write(io.Discard, "pdf"); !errors.Is(err, disdel.Invalid) {
		t.Errorf("%v", err)
	}
}

// An axis has a few round numbers, all of them on it, evenly apart; one of whole numbers has no others.
func TestTicksAreRoundAndFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scale{min: rapid.Float64Range(0, 1e6).Draw(t, "from")}
		s.max = s.min + rapid.Float64Range(1e-3, 1e6).Draw(t, "width")
		whole := rapid.Bool().Draw(t, "whole")
		ticks := s.ticks(whole)
		if len(ticks) > 11 || len(ticks) < 4 && !whole {
			t.Fatalf("%v to %v: %v", s.min, s.max, ticks)
		}
		for i, v := range ticks {
			if v < s.min-1e-6 || v > s.max+1e-6 || whole && v != math.Trunc(v) {
				t.Fatalf("%v to %v: %v", s.min, s.max, ticks)
			}
			if i > 1 && math.Abs(ticks[i]-2*ticks[i-1]+ticks[i-2]) > 1e-6 {
				t.Fatalf("not evenly apart: %v", ticks)
			}
		}
	})
	if got := fmt.Sprint(scale{0, 8.6}.ticks(true)); got != "[0 1 2 3 4 5 6 7 8]" {
		t.Error(got)
	}
}

// A label goes where nothing is, and away where there is no place.
func TestLabelsDoNotOverlap(t *testing.T) {
	frame := vg.Rectangle{Max: vg.Point{X: 100, Y: 100}}
	at, size := vg.Point{X: 50, Y: 50}, vg.Point{X: 12, Y: 8}
	o := obstacles{frame: frame}
	for n := 0; ; n++ {
		r, ok := o.free(at, size, false)
		if !ok {
			if n < 4 {
				t.Errorf("%d places around a point", n)
			}
			break
		}
		for _, other := range o.taken {
			if overlap(r, other) {
				t.Fatalf("%v lies on %v", r, other)
			}
		}
		o.taken = append(o.taken, r)
	}
	o = obstacles{frame: vg.Rectangle{Max: vg.Point{X: 5, Y: 5}}}
	if _, ok := o.free(vg.Point{X: 2, Y: 2}, size, false); ok {
		t.Error("a label outside the frame")
	}
}

// A line that lies upon another one leaves that to be seen, and points that share a place share a label.
func TestLinesThatLieUponEachOther(t *testing.T) {
	c := Chart{Title: "same", X: Axis{Name: "x"}, Y: Axis{Name: "y"}}
	for _, name := range []string{"batch 32", "batch 64"} {
		l := Line{Name: name}
		for w := 1; w <= 3; w++ {
			l.Points = append(l.Points,
				Point{X: Span{Likely: float64(w)}, Y: Span{Likely: float64(9 - w)}, Label: "w" + strconv.Itoa(w)})
		}
		c.Lines = append(c.Lines, l)
	}
	first, last := c.parts()[1].(series), c.parts()[2].(series)
	if first.line().Width <= last.line().Width || first.glyph().Radius <= last.glyph().Radius {
		t.Errorf("the line below is %v wide, the one above %v", first.line().Width, last.line().Width)
	}
	data := written(t, c, SVG)
	for w := 1; w <= 3; w++ {
		if n := bytes.Count(data, fmt.Appendf(nil, ">w%d</text>", w)); n != 1 {
			t.Errorf("label w%d is there %d times", w, n)
		}
	}
}

// Wide intervals of points that do not matter neither stretch the axes nor hide the points.
func TestOnlyIntervalsThatMatterAreDrawn(t *testing.T) {
	c := chart()
	for i := range c.Lines {
		for k := range c.Lines[i].Points {
			if p := &c.Lines[i].Points[k]; !p.standsOut() {
				p.Y.High *= 100
			}
		}
	}
	if got, want := written(t, c, SVG), written(t, chart(), SVG); !bytes.Equal(got, want) {
		t.Error("the chart is another one")
	}
}
