// Command imports measures what people already have: how many networks of torchvision and cases of ONNX are read and
// answer the same, whether a hub's folders come back bit for bit, how fast Parquet becomes a data set, and what memory
// an action takes whose shard stays on disk. It prints figures and judges nothing.
package main

import (
	"context"
	"flag"

	"github.com/disdel/disdel/bench/rig"
)

// tools are the programs that are measured, or measured by.
type tools struct {
	disdel string
	python string // with PyTorch, torchvision, onnx and PyArrow: scripts/import-deps.sh
}

func main() {
	var t tools
	flag.StringVar(&t.disdel, "program", "bin/disdel", "the built program")
	flag.StringVar(&t.python, "python", ".cache/imports/bin/python", "a Python interpreter of scripts/import-deps.sh")
	parts := flag.String("parts", "torchvision,zoo,onnx,hub,parquet,shard", "what is measured")
	only := flag.String("only", "", "the builders of torchvision whose names have this text")
	tableMB := flag.Int("table-mb", 2000, "how large the Parquet table is")
	of := shard{}
	flag.IntVar(&of.megabytes, "shard-mb", 3000, "how large the shard on disk is")
	flag.IntVar(&of.columns, "shard-row", 3*64*64, "the bytes of a row of the shard (a picture of 64x64 pixels)")
	flag.IntVar(&of.copies, "shard-copies", 1, "how often the shard has its rows; copies need no room in the store")
	flag.Parse()
	ctx := context.Background()
	rig.Main(func() error {
		return rig.RunParts([]rig.Part{
			{Name: "torchvision", Run: func() error { return builders(ctx, &t, *only) }},
			{Name: "zoo", Run: func() error { return zooNetworks(ctx, &t, *only) }},
			{Name: "onnx", Run: func() error { return graphs(ctx, &t) }},
			{Name: "hub", Run: func() error { return folders(&t) }},
			{Name: "parquet", Run: func() error { return tables(ctx, &t, *tableMB) }},
			{Name: "shard", Run: func() error { return streamedShard(&t, of) }},
		}, *parts)
	})
}
