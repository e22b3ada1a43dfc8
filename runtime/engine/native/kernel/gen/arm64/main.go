package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

func main() {
	out := flag.String("out", ".", "folder of package kernel")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Files that are written.
const (
	assemblyFile = "kernels_arm64.s"
	stubsFile    = "stubs_arm64.go"
)

func write(folder string) error {
	text, stubs := generate()
	if err := os.WriteFile(filepath.Join(folder, assemblyFile), []byte(text), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, stubsFile), []byte(stubs), 0o644)
}

// generate is the text of both files.
func generate() (text, stubs string) {
	var a assembly
	for _, rows := range []int{6, 4, 2} {
		a.product(rows)
	}
	a.line()
	a.correlate(4, 6)
	a.transpose()
	a.elementwise()
	a.optimizers()
	a.channels()
	a.pools()
	a.weighted()
	for _, block := range []int{4, 1} {
		a.depthwise(block)
	}
	for side, one := range winograd.Sides() {
		a.winograd(side, one)
	}
	a.halves()
	a.exact()
	a.peak()
	return a.files()
}
