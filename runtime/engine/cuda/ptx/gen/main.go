//go:build nvidia

// Command gen compiles the kernels with nvrtc and prints them as PTX, with the hash of their sources in the first line:
// those of every device, or, with the argument matrix, those that take matrix units.
package main

import (
	"fmt"
	"os"

	"gorgonia.org/cu/nvrtc"

	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
)

func main() {
	source, hash, oldest := kernel.Source, kernel.Hash, "70"
	if len(os.Args) > 1 && os.Args[1] == "matrix" {
		source, hash, oldest = kernel.MatrixSource, kernel.MatrixHash, "80"
	}
	if err := run(source(), hash(), oldest); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run compiles for the oldest architecture that the text is for. Younger ones run it.
func run(source, hash, oldest string) error {
	p, err := nvrtc.CreateProgram(source, "kernels.cu")
	if err != nil {
		return err
	}
	if err := p.Compile("--gpu-architecture=compute_"+oldest, "--std=c++14"); err != nil {
		log, _ := p.GetLog()
		return fmt.Errorf("%w\n%s", err, log)
	}
	text, err := p.GetPTX()
	if err != nil {
		return err
	}
	fmt.Printf("// of sources %s\n%s", hash, trimmed(text))
	return nil
}

// trimmed is the text without the zero that ends it in C.
func trimmed(text string) string {
	for len(text) > 0 && text[len(text)-1] == 0 {
		text = text[:len(text)-1]
	}
	return text
}
