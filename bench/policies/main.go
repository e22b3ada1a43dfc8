// Command policies measures what policies come to in virtual time, and prints lines of the form
//
//	figure NAME VALUE UNIT
//
// It judges nothing. Its figures are simulated, of laws of an epoch's time and of jobs on a cloud that
// is not there; the losses of the part trained alone are of networks that it trains. Seeds are fixed, so that two runs
// print the same. A median of five seeds or more has an interval beside it, as NAME_low and NAME_high, that holds it in
// nine cases of ten (rig.Interval).
package main

import (
	"cmp"
	"flag"
	"strings"

	"github.com/disdel/disdel/bench/rig"
)

func main() {
	seeds := flag.Uint64("seeds", 20, "seeds of each figure")
	only := flag.String("only", "", "the same as -parts, for one part")
	chosen := flag.String("parts", "", "parts to measure, separated by commas; without it all")
	flag.Parse()
	parts := []rig.Part{
		{Name: "laws", Run: func() error { laws(*seeds); return nil }},
		{Name: "trained", Run: trained},
		{Name: "tuner", Run: func() error { return tuner(*seeds) }},
		{Name: "siren", Run: func() error { return sirens(*seeds) }},
		{Name: "lab", Run: lab},
		{Name: "goals", Run: goals},
	}
	rig.Main(func() error {
		names := strings.Trim(*only+","+*chosen, ",")
		return rig.RunParts(parts, cmp.Or(names, rig.Names(parts)))
	})
}
