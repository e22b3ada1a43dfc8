package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/disdel/disdel"
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

// calibrationPart prints by task and size how far the peaks of kept records were from the likely ones. The deviations
// of estimator.calibrated are chosen by this table.
func calibrationPart(file string, w io.Writer) error {
	records, err := kept(file)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "task\tabove MB\tpeaks\tinside\tp5 KB\tp25 KB\tp50 KB\tp75 KB\tp95 KB\t"+
		"of half the interval: p5\tp95\t")
	bounds, all := sizes(), actionsOf(records)
	for _, task := range tasks {
		for i, from := range bounds[:len(bounds)-1] {
			var some []action
			for _, a := range of(all, task) {
				if a.estimate.Likely >= from && a.estimate.Likely < bounds[i+1] {
					some = append(some, a)
				}
			}
			printResiduals(out, task, from, some)
		}
	}
	return out.Flush()
}

func printResiduals(w io.Writer, task disdel.Task, from disdel.Bytes, some []action) {
	var off, scaled []float64
	for _, a := range some {
		for _, peak := range a.peaks {
			d := float64(peak - a.estimate.Likely)
			off = append(off, d/float64(disdel.KB))
			scaled = append(scaled, 2*d/float64(max(1, a.estimate.High-a.estimate.Low)))
		}
	}
	if len(off) == 0 {
		return
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\t", task, from.MB(), len(off), insideInterval(some))
	for _, q := range []float64{0.05, 0.25, 0.5, 0.75, 0.95} {
		fmt.Fprintf(w, "%.0f\t", quantile(off, q))
	}
	fmt.Fprintf(w, "%.2f\t%.2f\t\n", quantile(scaled, 0.05), quantile(scaled, 0.95))
}
