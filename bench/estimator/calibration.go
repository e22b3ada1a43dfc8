package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

// keep adds a record to a file, in a line of JSON; to "": nothing.
func keep(file string, rec *disdel.Record) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(rec), f.Close())
}

// kept reads the records of a file.
func kept(file string) (out []disdel.Record, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for d := json.NewDecoder(f); ; {
		var r disdel.Record
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return out, err
		}
		out = append(out, r)
	}
}

// sizes are the bounds of the likely peaks that the calibration table tells apart.
func sizes() []disdel.Bytes {
	return []disdel.Bytes{0, 8 * disdel.MB, 12 * disdel.MB, 24 * disdel.MB, 64 * disdel.MB, 1 << 62}
}

// calibrationPart prints, by task and size, the differences between the peaks of kept records and the likely peaks.
// They are in KB and in the standard deviations of package estimator's residuals. A task's line of all sizes has its
// two quantiles. The records have to be of this version of disdel.
func calibrationPart(file string, w io.Writer) error {
	records, err := kept(file)
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, func(r disdel.Record) bool { // its intervals are not by residuals
		return r.Job.Training.Backend == disdel.BackendGorgonia
	})
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "task\tabove MB\tpeaks\tinside\tp5 KB\tp25 KB\tp50 KB\tp75 KB\tp95 KB\t"+
		"deviations: p5\tp95\t")
	bounds, all := sizes(), actionsOf(records)
	for _, task := range tasks {
		ofTask := of(all, task)
		printResiduals(out, task, "all", ofTask)
		for i, from := range bounds[:len(bounds)-1] {
			var some []action
			for _, a := range ofTask {
				if a.estimate.Likely >= from && a.estimate.Likely < bounds[i+1] {
					some = append(some, a)
				}
			}
			printResiduals(out, task, fmt.Sprint(from.MB()), some)
		}
	}
	return out.Flush()
}

func printResiduals(w io.Writer, task disdel.Task, size string, some []action) {
	var off, deviations []float64
	for i := range some {
		one := some[i].deviation()
		for _, peak := range some[i].peaks {
			d := float64(peak - some[i].estimate.Likely)
			off = append(off, d/float64(disdel.KB))
			deviations = append(deviations, d/one)
		}
	}
	if len(off) == 0 {
		return
	}
	fmt.Fprintf(w, "%s\t%s\t%d\t%.2f\t", task, size, len(off), insideInterval(some))
	for _, q := range []float64{0.05, 0.25, 0.5, 0.75, 0.95} {
		fmt.Fprintf(w, "%.0f\t", quantile(off, q))
	}
	fmt.Fprintf(w, "%.2f\t%.2f\t\n", quantile(deviations, 0.05), quantile(deviations, 0.95))
}

// deviation is the standard deviation, in bytes, that an action's interval was made with.
func (a *action) deviation() float64 {
	low, high := estimator.MemoryInterval(a.task)
	return float64(max(1, a.estimate.High-a.estimate.Low)) / (high - low)
}
