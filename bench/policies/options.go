package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are what a person says of the real parts.
type options struct {
	program string
	seeds   int
	jobs    string // of the six, separated by commas; "": all
	batches string // of the part tta
	epochs  int    // of each job; 0: as many as it has
	within  time.Duration
	until   time.Time // from which on nothing more begins
}

func (o *options) flags() {
	flag.StringVar(&o.program, "program", "bin/disdel", "the built program, of the real parts")
	flag.IntVar(&o.seeds, "real-seeds", 5, "seeds or runs of the real parts")
	flag.StringVar(&o.jobs, "jobs", "", "which of the six jobs the part auto has, separated by commas: "+
		strings.Join(sixNames(), ",")+"; without it all")
	flag.StringVar(&o.batches, "batches", "16,32,128", "batches of the part tta, separated by commas")
	flag.IntVar(&o.epochs, "epochs", 0, "epochs of every job of the real parts, to try them; 0: as many as each has")
	flag.DurationVar(&o.within, "within", 2*time.Hour,
		"time of all real parts together: what has not begun by then is left out, and said")
}

// check is everything that is wrong with the options.
func (o *options) check() (err error) {
	if o.program, err = filepath.Abs(o.program); err != nil {
		return err
	}
	o.until = time.Now().Add(o.within)
	var faults []error
	for name := range strings.SplitSeq(o.jobs, ",") {
		if o.jobs != "" && !slices.Contains(sixNames(), name) {
			faults = append(faults, fmt.Errorf("there is no job %q; -jobs takes %s", name, strings.Join(sixNames(), ",")))
		}
	}
	if _, err := o.ofTTA(); err != nil {
		faults = append(faults, err)
	}
	if o.seeds < 1 || o.epochs < 0 {
		faults = append(faults, fmt.Errorf("-real-seeds %d and -epochs %d: at least 1 and 0", o.seeds, o.epochs))
	}
	return errors.Join(faults...)
}

// ofTTA is the batches of the part tta.
func (o *options) ofTTA() (out []int, err error) {
	for text := range strings.SplitSeq(o.batches, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-batches %s: %q is no batch", o.batches, text)
		}
		out = append(out, n)
	}
	return out, nil
}

// late tells whether the time of the real parts is used up.
func (o *options) late() bool { return time.Now().After(o.until) }

// left is the time that a job may still take: no less than so much that one which has begun may end.
func (o *options) left() time.Duration { return max(time.Until(o.until), 0) + 10*time.Minute }

// whole is how many epochs a job has of those that it should have.
func (o *options) whole(epochs int) int {
	if o.epochs > 0 {
		return o.epochs
	}
	return epochs
}

// each measures n things one after another. After a failure it measures the next one, because nobody watches a run at
// night. It stops when the time is used up, and says what is left out.
func (o *options) each(part string, n int, measure func(i int) error) error {
	var failed []error
	for i := range n {
		if o.late() {
			fmt.Printf("%s: the time is used up (-within %v) after %d of %d\n", part, o.within, i, n)
			break
		}
		if err := measure(i); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", part, err)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// eachJob is each for the six jobs, or those of them that were chosen.
func (o *options) eachJob(part string, measure func(t trial) error) error {
	jobs := six()
	if o.jobs != "" {
		chosen := strings.Split(o.jobs, ",")
		jobs = slices.DeleteFunc(jobs, func(t trial) bool { return !slices.Contains(chosen, t.name) })
	}
	return o.each(part, len(jobs), func(i int) error {
		if err := measure(jobs[i]); err != nil {
			return fmt.Errorf("%s: %w", jobs[i].name, err)
		}
		return nil
	})
}

func sixNames() (names []string) {
	for _, t := range six() {
		names = append(names, t.name)
	}
	return names
}
