package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/disdel/disdel/internal/plot"
)

// page is what is written down of all that was measured. It is made of raw alone: the same page for the same
// measurements, whenever they were taken.
type page struct {
	raw     *raw
	folder  string // of the pictures
	file    string
	seed    uint64 // of the resamples
	body    strings.Builder
	claims  []claim
	figures map[string]figureLine
	lines   []string // for who reads the output instead
	err     error    // of pictures that could not be written
}

// claim is a row of the page's first table: what the paper printed, and what was measured here.
type claim struct {
	figure, printed, here string
	beats                 string // yes, no, or why it is not comparable
	why                   string // what is emulated, and what a no comes from
}

func newPage(r *raw, folder, file string, seed int64) *page {
	return &page{raw: r, folder: folder, file: file, seed: uint64(seed), figures: map[string]figureLine{}}
}

// compose writes the parts of all experiments that were measured.
func (p *page) compose() {
	for _, e := range experiments() {
		m := p.raw.Experiments[e.name]
		if m == nil {
			p.section(e.title, "Not measured yet: `bin/bench-paper -only "+e.name+"`.")
			continue
		}
		if last := m.Sittings[len(m.Sittings)-1]; last.Not != "" {
			p.section(e.title, "Not measured: "+last.Not+".")
			p.claim(claim{e.name + ": " + e.title, "-", "-", "not comparable", "not run: " + last.Not})
			continue
		}
		e.report(p, m)
		p.sittings(m)
	}
}

// sittings says when and where an experiment was measured.
func (p *page) sittings(m *measured) {
	for _, s := range m.Sittings {
		fmt.Fprintf(&p.body, "\nMeasured %v.\n", s)
	}
	for _, name := range sorted(m.Data) {
		if strings.HasPrefix(m.Data[name], "made up") && m.uses(name) {
			fmt.Fprintf(&p.body, "\n`%s` is %s.\n", name, m.Data[name])
		}
	}
}

// uses tells whether an experiment's jobs learned from a data set.
func (m *measured) uses(data string) bool {
	for _, o := range m.Outcomes {
		if o.Data == data {
			return true
		}
	}
	return false
}

// figure notes a figure without an interval: a count, or what is computed and not measured.
func (p *page) figure(name string, value float64, unit string) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	p.figures[name] = figureLine{Value: value, Unit: unit}
	p.line("figure %s %.4g %s", name, value, unit)
}

// ratio notes a figure with the interval that nine of ten resamples lie in.
func (p *page) ratio(name string, v interval) {
	if !v.known() {
		return
	}
	p.figures[name] = figureLine{v.Value, v.Low, v.High, "x"}
	p.line("figure %s %.4g x", name, v.Value)
	p.line("figure %s_low %.4g x", name, v.Low)
	p.line("figure %s_high %.4g x", name, v.High)
}

func (p *page) line(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// claim says what the paper printed and what came of it here.
func (p *page) claim(c claim) { p.claims = append(p.claims, c) }

// judged is "yes" where a value is at most a bound, and "no" else.
func judged(value, most float64) string {
	switch {
	case math.IsNaN(value) || math.IsNaN(most):
		return "not measured"
	case value <= most:
		return "yes"
	default:
		return "no"
	}
}

// section begins an experiment's part of the page.
func (p *page) section(title, what string) {
	fmt.Fprintf(&p.body, "\n## %s\n\n%s\n", strings.ToUpper(title[:1])+title[1:], what)
}

// say is a paragraph.
func (p *page) say(format string, args ...any) { fmt.Fprintf(&p.body, "\n"+format+"\n", args...) }

// table writes rows, the first of which is the head.
func (p *page) table(rows [][]string) {
	fmt.Fprintln(&p.body)
	for i, row := range rows {
		fmt.Fprintf(&p.body, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&p.body, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	p.line("#")
	for _, row := range rows {
		p.line("# %s", strings.Join(row, "  "))
	}
}

// chart draws a picture into the folder, and puts it on the page. One without lines is left out.
func (p *page) chart(file string, c plot.Chart) {
	if len(c.Lines) == 0 || p.folder == "" {
		return
	}
	f, err := os.Create(filepath.Join(p.folder, file))
	if err != nil {
		p.fail(err)
		return
	}
	p.fail(c.Write(f, plot.SVG))
	p.fail(f.Close())
	folder, err := filepath.Rel(filepath.Dir(p.file), p.folder)
	if err != nil {
		folder = p.folder
	}
	fmt.Fprintf(&p.body, "\n![%s](%s)\n", c.Title, filepath.ToSlash(filepath.Join(folder, file)))
}

func (p *page) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// at is a point of a chart without an interval.
func at(x, y float64) plot.Point {
	return plot.Point{X: plot.Span{Likely: x}, Y: plot.Span{Likely: y}}
}

// head is what stands before the experiments.
const head = `# The DiSDeL paper's experiments, here

~make bench-paper~ (bench/paper) writes this page. It keeps every measurement in ~.cache/bench-paper/raw.json~, which is
not part of the repository. Only ratios are compared with the paper: seconds and bytes are those of this machine.
~bin/bench-paper -only fig2,fig8~ measures single figures again, and ~-scale~ makes all of it larger or smaller. ~-again~
writes the page again from the measurements. [Decision 22](decisions/0022-paper-bench.md) says why the experiments are
what they are.

- Scale: the memory of pools and of the largest action is divided by %[1]d (70 GB is %[2]v, 140 GB %[3]v, 190 GB %[4]v).
  At a scale of 1 the platforms' times are divided by %[5]d (120 minutes are 2). Rows and epochs are those of
  bench/paper/jobs.go. A run's own scale multiplies rows, and times down to a half. One machine stands for each of the
  paper's servers.
- Emulated: OpenWhisk is the embedded platform, whose containers are processes under control groups. *default* is one
  container with our own engine and all processors. *baremetal* is one process of our engine with all processors.
  *default-tensorflow* is a Python action of the same platform that runs TensorFlow. *baremetal-tensorflow* is one
  TensorFlow process that mirrors the network on a device for each processor. The embedded Redis and CouchDB stand for
  servers. CIFAR and DMLAB are synthetic unless a folder of them was given: as many values of the same shape, and
  something to learn.
- *default* and *baremetal* pay for no aggregation and no evaluation, *disdel* pays for both. Its times are those of
  ~disdel submit~, until the model is stored. *disdel* averages weights after every epoch, its default. *disdel-end*
  averages once, as the paper does. *disdel-paper* is the same with the paper's estimator.
- Environments run in turns, and each figure is measured by itself. An interval holds nine of ten resamples of turns and
  pairs (bootstrap). A single run has no interval.

`

// text is the whole page.
func (p *page) text() string {
	var out strings.Builder
	text := fmt.Sprintf(head, memoryScale, largestAction, doubledPool, batchPool, timeScale)
	out.WriteString(strings.ReplaceAll(text, "~", "`"))
	out.WriteString("| figure | printed by the paper | measured here | beaten | why, and what is emulated |\n" +
		"|---|---|---|---|---|\n")
	for _, c := range p.claims {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", c.figure, c.printed, c.here, c.beats, c.why)
	}
	return out.String() + p.body.String()
}
