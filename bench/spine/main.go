// Command spine measures one job end to end with the built program, and prints lines of the form
//
//	figure NAME VALUE UNIT
//
// It runs quickstart and, where the data is there, the Fashion-MNIST example on the embedded store and on a Redis that
// it starts, and asks an embedded history of 10, 10,000 and 100,000 records. Figures are the median of -runs runs; it
// judges nothing.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

func main() {
	program := flag.String("program", "bin/disdel", "the built program")
	example := flag.String("example", "examples/lenet-fashion.yaml", "the Fashion-MNIST job")
	runs := flag.Int("runs", 3, "runs of quickstart")
	records := flag.Int("records", 100_000, "largest history that is measured, about 30 KB a record; 0: none")
	flag.Parse()
	if err := bench(*program, *example, *runs, *records); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(program, example string, runs, records int) error {
	home, err := os.MkdirTemp("", "disdel-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	if program, err = filepath.Abs(program); err != nil {
		return err
	}
	b := &bencher{program: program, home: home}
	last, err := b.quickstart(runs)
	if err != nil {
		return err
	}
	if err := b.histories(last, records); err != nil {
		return err
	}
	return b.fashion(example)
}

type bencher struct{ program, home string }

// job runs a command that ends with a record, and returns it with the wall time.
func (b *bencher) job(args ...string) (r disdel.Record, seconds float64, err error) {
	cmd := exec.Command(b.program, append(args, "-o", "json", "-q")...)
	cmd.Env = append(os.Environ(), "DISDEL_HOME="+b.home)
	cmd.Stderr = os.Stderr
	start := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return r, 0, fmt.Errorf("%v: %w", args, err)
	}
	return r, time.Since(start).Seconds(), json.Unmarshal(out, &r)
}

func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.4g %s\n", name, value, unit)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
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
	figure("quickstart_s", median(times), "s")
	figure("quickstart_accuracy", median(accuracies), "share")
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
	figure(name+"_estimate_over_peak_median", median(over), "ratio")
	figure(name+"_estimate_over_peak_min", over[0], "ratio")
}

func (b *bencher) fashion(example string) error {
	cmd := exec.Command(b.program, "dataset", "add", "fashion-mnist", "-q", "--home", b.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: no Fashion-MNIST: %s", out)
		return nil
	}
	r, s, err := b.job("submit", example)
	if err != nil {
		return err
	}
	figure("fashion_embedded_s", s, "s")
	figure("fashion_embedded_accuracy", r.Accuracy, "share")
	ratios("fashion", r)
	socket := filepath.Join(b.home, "redis.sock")
	server := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", b.home)
	if err := server.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: no redis-server:", err)
		return nil
	}
	defer func() {
		server.Process.Kill()
		server.Wait()
	}()
	for range 500 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if r, s, err = b.job("submit", example, "--redis", "unix://"+socket); err != nil {
		return err
	}
	figure("fashion_redis_s", s, "s")
	figure("fashion_redis_accuracy", r.Accuracy, "share")
	return nil
}
