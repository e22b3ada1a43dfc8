// Command engine measures the training engine. `engine step` trains one network in a process of its own and prints its
// speed and memory, `engine infer` predicts with one; `engine` prints the figures of `make bench-engine`, lines of the
// form
//
//	figure NAME VALUE UNIT
//
// running itself and its peers (PyTorch, and TensorFlow where it is installed) in turns on the same core. It judges
// nothing.
package main

import (
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

func main() {
	rig.Main(func() error {
		switch {
		case len(os.Args) > 1 && os.Args[1] == "step":
			return step(os.Args[2:])
		case len(os.Args) > 1 && os.Args[1] == "infer":
			return inference(os.Args[2:])
		case len(os.Args) > 1 && os.Args[1] == "continue":
			return continuing(os.Args[2:])
		case len(os.Args) > 1 && os.Args[1] == "attention":
			return attending(os.Args[2:])
		case len(os.Args) > 3 && os.Args[1] == "encode":
			return encoding(os.Args[2:])
		default:
			return compare(os.Args[1:])
		}
	})
}

// measurement is what one process reports.
type measurement struct {
	Network    string  `json:"network"`
	Batch      int     `json:"batch"`
	PerSecond  float64 `json:"samples_per_s"`
	PeakRSS    int64   `json:"peak_rss_bytes"`
	Plan       int64   `json:"plan_bytes"`
	Inputs     int64   `json:"inputs_bytes"`       // the batch as it is handed over
	FirstStep  int64   `json:"first_step_unix_ns"` // when it had ended
	Allocs     float64 `json:"allocs_per_step"`
	Kernels    string  `json:"kernels"`
	Loss       float64 `json:"loss"`
	Torch      string  `json:"torch"`
	TensorFlow string  `json:"tensorflow"`
	JAX        string  `json:"jax"`
}

// groups are how many parts a process's steps are timed in: its speed is their median.
const groups = 5

// graph is a network of the zoo or a network of sequences at a size, as 3x32x32.
func graph(network, input string, classes int) (*model.Graph, error) {
	var shape []int
	for s := range strings.SplitSeq(input, "x") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, err
		}
		shape = append(shape, n)
	}
	n := disdel.Network{Name: network, Input: shape, Classes: classes}
	switch network {
	case "gpt-small":
		n.NextToken = true
	case "lstm":
		n.Name, n.Layers = "", []disdel.Layer{
			{Kind: "embedding", Vocabulary: lstmTokens, Width: 128, Padded: new(true)},
			{Kind: "lstm", Units: 256},
			{Kind: "takePosition", Take: "last"},
			{Kind: "dense", Units: classes},
		}
	}
	return model.Build(n)
}

// lstmTokens is the vocabulary of the network lstm.
const lstmTokens = 20000

// tokens are the numbers of words, from 1 on; 0 pads rows.
func tokens(n, vocabulary int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(1 + i*7919%(vocabulary-1))
	}
	return x
}

// values are numbers from -1 to 1.
func values(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i*7919%1000)/500 - 1
	}
	return x
}

// step trains one network and prints a measurement.
func step(args []string) error {
	f := flag.NewFlagSet("step", flag.ContinueOnError)
	network := f.String("network", "lenet5", "")
	input := f.String("input", "1x28x28", "")
	classes := f.Int("classes", 10, "")
	batch := f.Int("batch", 64, "")
	steps := f.Int("steps", 20, "")
	warmup := f.Int("warmup", 2, "")
	threads := f.Int("threads", 1, "")
	exact := f.Bool("exact", false, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	g, err := graph(*network, *input, *classes)
	if err != nil {
		return err
	}
	e, err := native.New(engine.Spec{
		Graph: g, BatchSize: *batch, Threads: *threads, Training: true, Exact: *exact,
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.01, Momentum: 0.9}},
	})
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Init(disdel.Init{Scheme: "he"}); err != nil {
		return err
	}
	x, y := values(*batch*g.Input().Len()), make([]int32, *batch)
	if n := g.Vocabulary(); n > 0 {
		x = tokens(len(x), n)
	}
	for i := range y {
		y[i] = int32(i * 31 % *classes)
	}
	m := measurement{
		Network: *network, Batch: *batch, Inputs: int64(4 * (len(x) + len(y))), Plan: int64(e.Plan().Bytes()),
		Kernels: e.Kernels(),
	}
	rows := dataset.Dense(*batch, x, y)
	for i := range max(*warmup, 1) {
		if _, err := e.Step(rows); err != nil {
			return err
		}
		if i == 0 {
			m.FirstStep = time.Now().UnixNano()
		}
	}
	rates := make([]float64, 0, groups)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	total := 0
	for range groups {
		n := max(1, *steps/groups)
		start := time.Now()
		for range n {
			got, err := e.Step(rows)
			if err != nil {
				return err
			}
			m.Loss = got.Loss
		}
		total += n
		rates = append(rates, float64(n**batch)/time.Since(start).Seconds())
	}
	runtime.ReadMemStats(&after)
	m.Allocs = float64(after.Mallocs-before.Mallocs) / float64(total)
	m.PerSecond, m.PeakRSS = rig.Median(rates), peakRSS()
	return json.NewEncoder(os.Stdout).Encode(m)
}

// peakRSS is the most resident memory this process had, 0 where the system does not say.
func peakRSS() int64 {
	peak, err := rig.Memory(0, "VmHWM")
	if err != nil {
		return 0
	}
	return int64(peak[0])
}

// processorTime is what this process has taken so far, in all its threads.
func processorTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
