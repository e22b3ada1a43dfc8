// Package promtext writes metrics in the text format of Prometheus, version 0.0.4.
//
// It knows no metric's meaning, and keeps no value except those of a Histogram. Invariant: its output can be parsed,
// whatever a label's value contains.
package promtext

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ContentType is the page's.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Page is what a scrape gets. The zero value is an empty one.
type Page struct{ out bytes.Buffer }

// Family begins the figures of a name: what kind they are (counter, gauge or histogram) and what they mean.
func (p *Page) Family(name, kind, help string) {
	fmt.Fprintf(&p.out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// Sample adds a figure, with the names and the values of its labels in turn.
func (p *Page) Sample(name string, value float64, labels ...string) {
	p.out.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		p.out.WriteByte("{,"[min(i, 1)])
		fmt.Fprintf(&p.out, `%s="%s"`, labels[i], escaped.Replace(labels[i+1]))
	}
	if len(labels) > 1 {
		p.out.WriteByte('}')
	}
	p.out.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

var escaped = strings.NewReplacer("\\", `\\`, "\"", `\"`, "\n", `\n`)

// Histogram adds what a histogram has counted.
func (p *Page) Histogram(name string, h *Histogram, labels ...string) {
	sum := int64(0)
	for i, n := range h.counts {
		sum += n
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = strconv.FormatFloat(h.bounds[i], 'g', -1, 64)
		}
		p.Sample(name+"_bucket", float64(sum), append(slices.Clip(labels), "le", bound)...)
	}
	p.Sample(name+"_sum", h.sum, labels...)
	p.Sample(name+"_count", float64(sum), labels...)
}

// Bytes is the page so far.
func (p *Page) Bytes() []byte { return p.out.Bytes() }

// Histogram counts values by how large they are. It is not safe for concurrent use.
type Histogram struct {
	bounds []float64 // each the largest value of its bucket
	counts []int64   // of the buckets, and of what is larger
	sum    float64
}

// NewHistogram counts by bounds, the smallest first.
func NewHistogram(bounds ...float64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]int64, len(bounds)+1)}
}

// Add counts a value.
func (h *Histogram) Add(v float64) {
	i, _ := slices.BinarySearch(h.bounds, v)
	h.counts[i]++
	h.sum += v
}

// Clone is the histogram as it is now.
func (h *Histogram) Clone() *Histogram {
	return &Histogram{bounds: h.bounds, counts: slices.Clone(h.counts), sum: h.sum}
}
