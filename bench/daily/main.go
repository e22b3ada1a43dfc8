// Command daily measures a week of daily use: how soon a page shows many jobs, long curves and what has just happened,
// what its readers cost, how fast files of people become data sets, and whether what was exported says the same
// elsewhere. It prints figures and judges nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// tools are the programs that are measured, or measured by.
type tools struct {
	disdel   string
	chromium string
	axe      string // axe-core's script
	python   string // with onnxruntime and Pillow
}

func main() {
	var t tools
	flag.StringVar(&t.disdel, "program", "bin/disdel", "the built program")
	flag.StringVar(&t.chromium, "chromium", "chromium", "the browser")
	flag.StringVar(&t.axe, "axe", ".cache/npm/node_modules/axe-core/axe.min.js", "axe-core's script")
	flag.StringVar(&t.python, "python", ".cache/daily/bin/python", "a Python interpreter with onnxruntime and Pillow")
	parts := flag.String("parts", "page,curves,events,axe,readers,csv,png,onnx", "what is measured")
	csvMB := flag.Int("csv-mb", 2048, "how large the table is that is added")
	flag.Parse()
	ctx := context.Background()
	measures := map[string]func() error{
		"page":    func() error { return pages(ctx, &t) },
		"curves":  func() error { return curves(ctx, &t) },
		"events":  func() error { return events(ctx, &t) },
		"axe":     func() error { return accessible(ctx, &t) },
		"readers": func() error { return readers(ctx, &t) },
		"csv":     func() error { return tables(ctx, &t, *csvMB) },
		"png":     func() error { return pictures(ctx, &t) },
		"onnx":    func() error { return exports(ctx, &t) },
	}
	failed := false
	for part := range strings.SplitSeq(*parts, ",") {
		measure, known := measures[part]
		err := fmt.Errorf("there is no part %q", part)
		if known {
			err = measure()
		}
		if err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", part, err)
		}
	}
	if failed {
		os.Exit(1)
	}
}

func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.4g %s\n", name, value, unit)
}

// median is the middle one of some values, which are sorted.
func median(values []float64) float64 { return percentile(values, 0.5) }

// percentile is the value that a share of all values is not above (nearest rank).
func percentile(values []float64, share float64) float64 {
	slices.Sort(values)
	return values[max(0, int(math.Ceil(share*float64(len(values))))-1)]
}
