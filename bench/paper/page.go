package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/platform"
)

// page is what a run of the bench writes down.
type page struct {
	out   strings.Builder
	claim []claim
	raw   raw
}

// raw is every measurement, for who wants to work something else out of it.
type raw struct {
	Machine  string                       `json:"machine"`
	Began    time.Time                    `json:"began"`
	Command  []string                     `json:"command"`
	Outcomes []outcome                    `json:"outcomes"`
	Pools    map[string][]platform.Sample `json:"pools,omitempty"` // what pools held over time, by run
	Figures  map[string]figureLine        `json:"figures"`
}

// figureLine is a figure with its interval, where it has one.
type figureLine struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	Unit  string  `json:"unit"`
}

// claim is a row of the page's first table: what the paper printed, and what was measured here.
type claim struct {
	figure, printed, here string
	beats                 string // yes, no, or why it is not comparable
}

// begin writes the head: the machine, what is scaled, and what is emulated.
func (p *page) begin(b *bench) {
	p.raw = raw{
		Machine: machine(), Began: time.Now().UTC(), Command: append([]string{"bench-paper"}, os.Args[1:]...),
		Pools: map[string][]platform.Sample{}, Figures: map[string]figureLine{},
	}
	fmt.Printf("# %s\n# memory / %d, times of the platform / %d, rows / %d more\n", p.raw.Machine, memoryScale, timeScale,
		b.shrink)
}

// machine says what this runs on, and what else does.
func machine() string {
	model := "unknown processor"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s/%s, %s, %d processors, load %s", runtime.GOOS, runtime.GOARCH, model, threads(), load())
}

func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(data))[:3], " ")
}

// figure prints a figure and keeps it.
func (p *page) figure(name string, value float64, unit string) {
	p.raw.Figures[name] = figureLine{Value: value, Unit: unit}
	fmt.Printf("figure %s %.4g %s\n", name, value, unit)
}

// ratio prints a figure with the interval that nine of ten resamples lie in.
func (p *page) ratio(name string, v interval) {
	p.raw.Figures[name] = figureLine{v.Value, v.Low, v.High, "x"}
	fmt.Printf("figure %s %.4g x\nfigure %s_low %.4g x\nfigure %s_high %.4g x\n", name, v.Value, name, v.Low, name, v.High)
}

func (v interval) String() string { return fmt.Sprintf("%.3f (%.3f to %.3f)", v.Value, v.Low, v.High) }

// add keeps what a run came to, and tells whoever watches.
func (p *page) add(o outcome) outcome {
	p.raw.Outcomes = append(p.raw.Outcomes, o)
	fmt.Fprintln(os.Stderr, o)
	return o
}

// claims says what the paper printed and what came of it here. beats is "yes", "no", or why the two are not comparable.
func (p *page) claims(figure, printed, here, beats string) {
	p.claim = append(p.claim, claim{figure, printed, here, beats})
}

// judged is "yes" where a value is at most a bound, and "no" else.
func judged(value, most float64) string {
	if value <= most {
		return "yes"
	}
	return "no"
}

// section begins a figure's part of the page.
func (p *page) section(title, what string) { fmt.Fprintf(&p.out, "\n## %s\n\n%s\n", title, what) }

// table writes rows, the first of which is the head.
func (p *page) table(rows [][]string) {
	fmt.Fprintln(&p.out)
	for i, row := range rows {
		fmt.Fprintf(&p.out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&p.out, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	fmt.Println("#")
	for _, row := range rows {
		fmt.Println("# " + strings.Join(row, "  "))
	}
}

// chart draws a picture beside the page.
func (b *bench) chart(file string, c plot.Chart) error {
	f, err := os.Create(filepath.Join(b.out, file))
	if err != nil {
		return err
	}
	if err := c.Write(f, plot.SVG); err != nil {
		f.Close()
		return err
	}
	folder, err := filepath.Rel(filepath.Dir(b.file), b.out)
	if err != nil {
		folder = b.out
	}
	fmt.Fprintf(&b.page.out, "\n![%s](%s)\n", c.Title, filepath.ToSlash(filepath.Join(folder, file)))
	return f.Close()
}

// at is a point of a chart without an interval.
func at(x, y float64) plot.Point {
	return plot.Point{X: plot.Span{Likely: x}, Y: plot.Span{Likely: y}}
}

// text is the whole page.
func (p *page) text() string {
	var head strings.Builder
	head.WriteString("# The DiSDeL paper's experiments, here\n\nThis page was written by `make bench-paper`, and its " +
		"numbers " +
		"are of one run of it. Only ratios are held against the paper: seconds and bytes of this machine are never scaled " +
		"back up.\n\n")
	fmt.Fprintf(&head, "- Machine: %s; load when it ended: %s.\n- Command: `%s`, begun %s.\n", p.raw.Machine, load(),
		strings.Join(p.raw.Command, " "), p.raw.Began.Format(time.DateTime+" MST"))
	fmt.Fprintf(&head, "- Scale: memory of pools and of the largest action by 1/%d (70 GB is %v), times of the "+
		"platform by "+
		"1/%d (120 minutes are 2), rows and epochs as the tables say; one machine for each of the paper's servers.\n",
		memoryScale, largestAction, timeScale)
	head.WriteString("- Emulated: OpenWhisk is the embedded platform, whose containers are processes under control " +
		"groups; " +
		"*default* is one container with our own engine, *baremetal* one process of it with all processors; with " +
		"TensorFlow " +
		"both are TensorFlow's. The embedded Redis and CouchDB stand for servers.\n" +
		"- *default* and *baremetal* pay for no aggregation and no evaluation, *disdel* for both: its times are those of " +
		"`disdel submit`, to the model's being stored.\n- Intervals hold nine of ten resamples of the turns (bootstrap); " +
		"of " +
		"one turn they are the value.\n\n| figure | printed by the paper | measured here | beaten |\n|---|---|---|---|\n")
	for _, c := range p.claim {
		fmt.Fprintf(&head, "| %s | %s | %s | %s |\n", c.figure, c.printed, c.here, c.beats)
	}
	return head.String() + p.out.String()
}
