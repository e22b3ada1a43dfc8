// Command spine measures one job from end to end with the built program. It prints its figures as lines:
//
//	figure NAME VALUE UNIT
//
// It runs quickstart. If the data set is there, it also runs the Fashion-MNIST example, on the embedded store and on a
// Redis that it starts. Then it times an embedded history of 10, 10,000 and 100,000 records. A figure is the median of
// -runs runs. The program does not compare figures with goals.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

func main() {
	program := flag.String("program", "bin/disdel", "the built program")
	example := flag.String("example", "examples/lenet-fashion.yaml", "the Fashion-MNIST job")
	runs := flag.Int("runs", 3, "runs of quickstart")
	records := flag.Int("records", 100_000, "largest history that is measured, about 30 KB a record; 0: none")
	flag.Parse()
	rig.Main(func() error {
		path, err := filepath.Abs(*program)
		if err != nil {
			return err
		}
		return rig.Folder(func(home string) error {
			b := &bencher{rig.Program{Path: path, Home: home}}
			last, err := b.quickstart(*runs)
			if err == nil {
				err = b.histories(last, *records)
			}
			if err == nil {
				err = b.fashion(*example)
			}
			return err
		})
	})
}

type bencher struct{ rig.Program }

// job runs a command that ends with a record, and returns it with the wall time.
func (b *bencher) job(args ...string) (r disdel.Record, seconds float64, err error) {
	start := time.Now()
	r, err = b.Job(nil, args...)
	return r, time.Since(start).Seconds(), err
}

func (b *bencher) quickstart(runs int) (last disdel.Record, err error) {
	var times, accuracies []float64
	for range runs {
		r, s, err := b.job("quickstart")
		if err != nil {
			return last, err
		}
		last, times, accuracies = r, append(times, s), append(accuracies, r.Accuracy)
	}
	rig.Figure("quickstart_s", rig.Median(times), "s")
	rig.Figure("quickstart_accuracy", rig.Median(accuracies), "share")
	ratios("quickstart", last)
	return last, nil
}

// ratios prints how the estimates of the train actions stand to their measured peaks.
func ratios(name string, r disdel.Record) {
	var over []float64
	for _, a := range r.Activations {
		if a.Task == disdel.TaskTrain && a.Peak > 0 {
			over = append(over, float64(a.Estimate)/float64(a.Peak))
		}
	}
	rig.Figure(name+"_estimate_over_peak_median", rig.Median(over), "ratio")
	rig.Figure(name+"_estimate_over_peak_min", slices.Min(over), "ratio")
}

func (b *bencher) fashion(example string) error {
	if _, err := b.Run(nil, "dataset", "add", "fashion-mnist", "-q"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: no Fashion-MNIST:", err)
		return nil
	}
	if err := b.fashionOn("embedded", example); err != nil {
		return err
	}
	redis, stop, err := rig.StartRedis(b.Home)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: no redis-server:", err)
		return nil
	}
	defer stop()
	return b.fashionOn("redis", example, "--redis", redis)
}

// fashionOn runs the Fashion-MNIST job on a store.
func (b *bencher) fashionOn(store, example string, flags ...string) error {
	r, s, err := b.job(append([]string{"submit", example}, flags...)...)
	if err != nil {
		return err
	}
	rig.Figure("fashion_"+store+"_s", s, "s")
	rig.Figure("fashion_"+store+"_accuracy", r.Accuracy, "share")
	if store == "embedded" {
		ratios("fashion", r)
	}
	return nil
}
