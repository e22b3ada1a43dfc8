// Command daily measures a week of daily use: how soon a page shows many jobs, long curves and what has just happened,
// what its readers cost, how fast files of people become data sets, and whether what was exported says the same
// elsewhere. It prints figures and judges nothing.
package main

import (
	"context"
	"flag"

	"github.com/disdel/disdel/bench/rig"
)

// tools are the programs that are measured, or measured by.
type tools struct {
	disdel     string
	chromium   string
	axe        string // axe-core's script
	lighthouse string // Lighthouse's program for node
	python     string // with onnxruntime and Pillow
}

func main() {
	var t tools
	flag.StringVar(&t.disdel, "program", "bin/disdel", "the built program")
	flag.StringVar(&t.chromium, "chromium", "chromium", "the browser")
	flag.StringVar(&t.axe, "axe", ".cache/npm/node_modules/axe-core/axe.min.js", "axe-core's script")
	flag.StringVar(&t.lighthouse, "lighthouse", ".cache/lighthouse/node_modules/lighthouse/cli/index.js",
		"Lighthouse's program for node")
	flag.StringVar(&t.python, "python", ".cache/daily/bin/python", "a Python interpreter with onnxruntime and Pillow")
	parts := flag.String("parts", "page,scroll,curves,events,axe,lighthouse,readers,csv,png,onnx", "what is measured")
	csvMB := flag.Int("csv-mb", 2048, "how large the table is that is added")
	flag.Parse()
	ctx := context.Background()
	rig.Main(func() error {
		return rig.RunParts([]rig.Part{
			{Name: "page", Run: func() error { return pages(ctx, &t) }},
			{Name: "scroll", Run: func() error { return scrolling(ctx, &t) }},
			{Name: "curves", Run: func() error { return curves(ctx, &t) }},
			{Name: "events", Run: func() error { return events(ctx, &t) }},
			{Name: "axe", Run: func() error { return accessible(ctx, &t) }},
			{Name: "lighthouse", Run: func() error { return lighthouse(ctx, &t) }},
			{Name: "readers", Run: func() error { return readers(ctx, &t) }},
			{Name: "csv", Run: func() error { return tables(ctx, &t, *csvMB) }},
			{Name: "png", Run: func() error { return pictures(ctx, &t) }},
			{Name: "onnx", Run: func() error { return exports(ctx, &t) }},
		}, *parts)
	})
}
