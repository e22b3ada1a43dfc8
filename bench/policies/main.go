// Command policies measures what policies come to in virtual time, and prints lines of the form
//
//	figure NAME VALUE UNIT
//
// It judges nothing. Without -parts its figures are simulated, of laws of an epoch's time and of jobs on a cloud that
// is not there; the losses of the part trained alone are of networks that it trains. Seeds are fixed, so that two runs
// print the same. A median of five seeds or more has an interval beside it, as NAME_low and NAME_high, that holds it in
// nine cases of ten (rig.Interval).
//
// The parts auto, tta and momentum run jobs through the built program, on a quiet machine, for -within at
// most; -jobs, -batches, -epochs and -real-seeds make them smaller, to try them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	seeds := flag.Uint64("seeds", 20, "seeds of each figure")
	only := flag.String("only", "", "the same as -parts, for one part")
	chosen := flag.String("parts", "", "parts to measure, separated by commas; without it all simulated ones")
	var o options
	o.flags()
	flag.Parse()
	if err := run(o, *seeds, strings.FieldsFunc(*only+","+*chosen, func(r rune) bool { return r == ',' })); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// part is some figures that belong together.
type part struct {
	name string
	real bool // it runs jobs: it is measured only where it is named
	run  func() error
}

func run(o options, seeds uint64, chosen []string) error {
	if err := o.check(); err != nil {
		return err
	}
	parts := []part{
		{"laws", false, func() error { laws(seeds); return nil }},
		{"trained", false, trained},
		{"tuner", false, func() error { return tuner(seeds) }},
		{"siren", false, func() error { return sirens(seeds) }},
		{"lab", false, lab},
		{"goals", false, goals},
		{"auto", true, func() error { return autos(o) }},
		{"tta", true, func() error { return timesToAccuracy(o) }},
		{"momentum", true, func() error { return momentum(o) }},
	}
	for _, name := range chosen {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("there is no part %q", name)
		}
	}
	var failed []error
	for _, p := range parts {
		if len(chosen) == 0 && p.real || len(chosen) > 0 && !slices.Contains(chosen, p.name) {
			continue
		}
		begun := time.Now()
		if err := p.run(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
		}
		fmt.Fprintf(os.Stderr, "%s took %.0f s\n", p.name, time.Since(begun).Seconds())
	}
	return errors.Join(failed...)
}

func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.4g %s\n", name, value, unit)
}
