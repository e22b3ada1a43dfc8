// Command policies measures what policies come to in virtual time, and prints lines of the form
//
//	figure NAME VALUE UNIT
//
// It judges nothing. Without -parts its figures are simulated: laws of an epoch's time, and jobs on a simulated cloud.
// Only the part trained has losses of networks that it trains. Seeds are fixed, so that two runs print the same
// figures. A median of five seeds or more has a 90 % interval beside it, as NAME_low and NAME_high (rig.Interval).
//
// The parts auto, tta and momentum run jobs through the built program, on a quiet machine, for at most -within. -jobs,
// -batches, -epochs and -real-seeds make them smaller for a try.
package main

import (
	"flag"
	"strings"

	"github.com/disdel/disdel/bench/rig"
)

func main() {
	seeds := flag.Uint64("seeds", 20, "seeds of each figure")
	only := flag.String("only", "", "the same as -parts, for one part")
	chosen := flag.String("parts", "", "parts to measure, separated by commas; without it all simulated ones")
	var o options
	o.flags()
	flag.Parse()
	rig.Main(func() error {
		if err := o.check(); err != nil {
			return err
		}
		parts := simulated(*seeds)
		if names := strings.Trim(*only+","+*chosen, ","); names != "" {
			return rig.RunParts(append(parts, onThisMachine(o)...), names)
		}
		return rig.RunParts(parts, rig.Names(parts))
	})
}

// simulated are the parts that are measured without -parts.
func simulated(seeds uint64) []rig.Part {
	return []rig.Part{
		{Name: "laws", Run: func() error { laws(seeds); return nil }},
		{Name: "trained", Run: trained},
		{Name: "tuner", Run: func() error { return tuner(seeds) }},
		{Name: "siren", Run: func() error { return sirens(seeds) }},
		{Name: "lab", Run: lab},
		{Name: "goals", Run: goals},
	}
}

// onThisMachine are the parts that run jobs.
func onThisMachine(o options) []rig.Part {
	return []rig.Part{
		{Name: "auto", Run: func() error { return autos(o) }},
		{Name: "tta", Run: func() error { return timesToAccuracy(o) }},
		{Name: "momentum", Run: func() error { return momentum(o) }},
	}
}
