// Command policies measures what policies come to in virtual time, and prints lines of the form
//
//	figure NAME VALUE UNIT
//
// It judges nothing. Its figures are simulated, of laws of an epoch's time and of jobs on a cloud that is not there;
// the losses of -only trained alone are of networks that it trains. Seeds are fixed, so that two runs print the same.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	seeds := flag.Uint64("seeds", 20, "seeds of each figure")
	only := flag.String("only", "", "laws, convergence, trained, tuner, siren, lab, budgets or goals alone")
	flag.Parse()
	parts := []struct {
		name string
		run  func() error
	}{
		{"laws", func() error { laws(*seeds); return nil }},
		{"convergence", func() error { convergence(*seeds); return nil }},
		{"trained", trained},
		{"tuner", func() error { return tuner(*seeds) }},
		{"siren", func() error { return sirens(*seeds) }},
		{"lab", lab},
		{"budgets", budgets},
		{"goals", goals},
	}
	for _, p := range parts {
		if *only != "" && *only != p.name {
			continue
		}
		if err := p.run(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
}

func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.4g %s\n", name, value, unit)
}
