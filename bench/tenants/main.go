// Command tenants measures what many jobs of many tenants come to, and prints lines of the form
//
//	figure NAME VALUE UNIT
//
// It judges nothing.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
)

func main() {
	jobs := flag.Int("jobs", 100_000, "jobs of the large trace; the small one has a hundredth of them")
	seeds := flag.Int("seeds", 200, "seeds of the figures of jobs that stop each other")
	flag.Parse()
	debug.SetGCPercent(200) // memory is not what is measured
	err := stuck(*seeds)
	if err == nil {
		err = large(*jobs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.4g %s\n", name, value, unit)
}
