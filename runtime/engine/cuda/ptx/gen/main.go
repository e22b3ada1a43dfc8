//go:build nvidia

// Command gen compiles the kernels with nvrtc and prints them as PTX, with the hash of their sources in the first line.
package main

import (
	"fmt"
	"os"

	"gorgonia.org/cu/nvrtc"

	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
)

// oldest is the architecture that the text is for. Younger ones run it.
const oldest = "--gpu-architecture=compute_70"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	p, err := nvrtc.CreateProgram(kernel.Source(), "kernels.cu")
	if err != nil {
		return err
	}
	if err := p.Compile(oldest, "--std=c++14"); err != nil {
		log, _ := p.GetLog()
		return fmt.Errorf("%w\n%s", err, log)
	}
	text, err := p.GetPTX()
	if err != nil {
		return err
	}
	fmt.Printf("// of sources %s\n%s", kernel.Hash(), trimmed(text))
	return nil
}

// trimmed is the text without the zero that ends it in C.
func trimmed(text string) string {
	for len(text) > 0 && text[len(text)-1] == 0 {
		text = text[:len(text)-1]
	}
	return text
}
