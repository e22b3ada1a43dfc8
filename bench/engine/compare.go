package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// workload is a network at a size.
type workload struct {
	figure, network, input string
	batch, steps           int
	classes                int
}

var workloads = []workload{
	{"lenet5", "lenet5", "1x28x28", 64, 400, 10},
	{"resnet18", "resnet18", "3x32x32", 32, 25, 10},
	{"vgg16", "vgg16-cifar", "3x32x32", 32, 5, 10},
	{"resnet50", "resnet50", "3x32x32", 32, 10, 10},
	{"mobilenetv1", "mobilenetv1", "3x32x32", 32, 25, 10},
	{"inceptionv3", "inceptionv3", "3x96x96", 32, 5, 10},
}

// sequences are the workloads of `make bench-sequences`. A class of gpt-small is a token.
var sequences = []workload{
	{"gpt_small", "gpt-small", "1x1x256", 8, 10, 8192},
	{"vit_tiny", "vit-tiny-cifar", "3x32x32", 32, 10, 10},
	{"bert_tiny", "bert-tiny", "1x1x128", 16, 50, 2},
	{"lstm", "lstm", "1x1x128", 16, 20, 2},
}

// bench is one run of all figures.
type bench struct {
	self    string
	peers   func() []peer // found once they are asked for
	rounds  int
	program string // disdel, built
	onnx    string // a Python interpreter with onnxruntime
	debian  string // one with torch, which writes what onnxruntime reads
	tokens  string // one with tokenizers
	home    string // a folder of the bench's own
}

func compare(args []string) error {
	f := flag.NewFlagSet("engine", flag.ContinueOnError)
	only := f.String("only", "",
		"figures whose names contain this; sequences: those of make bench-sequences; attention, tokenizer, lora: its parts")
	torch := f.String("torch", "/usr/bin/python3", "Python interpreters with torch, separated by commas")
	tensorflow := f.String("tensorflow", ".cache/bench/tensorflow/bin/python",
		"a Python interpreter with tensorflow, if there is one")
	jax := f.String("jax", ".cache/bench/jax/bin/python", "a Python interpreter with jax and keras, if there is one")
	tokens := f.String("tokenizers", ".cache/bench/tokenizers/bin/python", "a Python interpreter with tokenizers")
	onnx := f.String("onnx", ".cache/bench/onnxruntime/bin/python", "a Python interpreter with onnxruntime")
	program := f.String("program", "bin/disdel", "the built program")
	rounds := f.Int("rounds", 3, "processes of each program, in turns; figures are of their medians")
	if err := f.Parse(args); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "disdel-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	debian, _, _ := strings.Cut(*torch, ",")
	b := bench{self: self, rounds: *rounds, onnx: *onnx, debian: debian, tokens: *tokens, home: home}
	if b.program, err = filepath.Abs(*program); err != nil {
		return err
	}
	b.peers = sync.OnceValue(func() []peer { return peersOf(strings.Split(*torch, ","), *tensorflow, *jax) })
	steps := []struct {
		name string
		do   func() error
	}{
		{"ratio", func() error { return b.ratios(workloads) }},
		{"infer", b.infer},
		{"gemm_share", b.gemm},
		{"threads2_speedup", b.threads},
		{"plan_rss", b.plans},
		{"first_step_ms", b.firstStep},
	}
	var failed []error
	switch *only {
	case "sequences":
		return errors.Join(b.ratios(sequences), b.texts(), b.attention(), b.tokenizers(), lora())
	case "attention":
		return b.attention()
	case "tokenizer":
		return b.tokenizers()
	case "lora":
		return lora()
	}
	for _, s := range steps {
		if !strings.Contains(s.name, *only) {
			continue
		}
		if err := s.do(); err != nil { // the others are measured all the same
			err = fmt.Errorf("%s: %w", s.name, err)
			fmt.Printf("# %v\n", err)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// run measures one process; cores is taskset's list.
func run(cores string, command []string, w workload, more ...string) (m measurement, started time.Time, err error) {
	args := append([]string{"-c", cores}, command...)
	args = append(args, "--network", w.network, "--input", w.input, "--classes",
		strconv.Itoa(cmp.Or(w.classes, 10)), "--batch", strconv.Itoa(w.batch),
		"--steps", strconv.Itoa(w.steps), "--warmup", "2")
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	cmd := exec.CommandContext(ctx, "taskset", append(args, more...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	started = time.Now()
	out, err := cmd.Output()
	if err != nil {
		return m, started, errors.Join(err, errors.New(errs.String()))
	}
	return m, started, json.Unmarshal(out, &m)
}

func (b *bench) ours() []string { return []string{b.self, "step"} }

// ratios trains every workload beside every peer: the ratio that counts is to the fastest.
func (b *bench) ratios(of []workload) error {
	allocs := 0.0
	for _, w := range of {
		rates, memory, peers := map[string][]float64{}, map[string][]float64{}, tried{}
		note := func(key string, m measurement) {
			rates[key] = append(rates[key], m.PerSecond)
			memory[key] = append(memory[key], float64(m.PeakRSS))
		}
		for range b.rounds {
			m, _, err := run("0", b.ours(), w)
			if err != nil {
				return fmt.Errorf("%s: %w", w.network, err)
			}
			note("disdel ", m)
			allocs = max(allocs, m.Allocs)
			for _, p := range b.peers() {
				if m, ok := peers.run(p, w); ok {
					note(p.name+" "+m.Torch+m.TensorFlow+m.JAX, m)
				}
			}
		}
		ours := rig.Median(rates["disdel "])
		best, leanest := 0.0, 0.0
		for key, r := range rates {
			fmt.Printf("# %s %s: %.1f samples/s, %.0f MB\n", w.network, strings.TrimSpace(key), rig.Median(r),
				rig.Median(memory[key])/(1<<20))
			if key == "disdel " {
				continue
			}
			best = max(best, rig.Median(r))
			if strings.HasPrefix(key, "torch") && (leanest == 0 || rig.Median(memory[key]) < leanest) {
				leanest = rig.Median(memory[key])
			}
		}
		rig.Figure(w.figure+"_samples_per_s", ours, "1/s")
		if best > 0 {
			rig.Figure(w.figure+"_ratio", ours/best, "x")
		}
		if leanest > 0 {
			rig.Figure(w.figure+"_rss_ratio", rig.Median(memory["disdel "])/leanest, "x")
		}
	}
	rig.Figure("allocs_per_step", allocs, "allocations")
	return nil
}

// gemm compares a large matrix product with multiply-adds on registers only, in turns.
func (b *bench) gemm() error {
	set, err := kernel.Choose()
	if err != nil {
		return err
	}
	const n = 1024
	var share, speed, peaks []float64
	kernel.NewTeam(set, 1, 1).Run(func(w *kernel.Worker) {
		a, c, scratch := kernel.Matrix{Data: make([]float32, n*n), Stride: n}, make([]float32, n*n),
			make([]float32, kernel.GemmLen())
		for range 5 {
			start := time.Now()
			peak := set.Peak(1<<22) / time.Since(start).Seconds()
			start = time.Now()
			const turns = 5
			for range turns {
				w.Gemm(n, n, n, a, a, c, n, false, scratch)
			}
			got := turns * 2 * n * n * n / time.Since(start).Seconds()
			share, speed, peaks = append(share, got/peak), append(speed, got/1e9), append(peaks, peak/1e9)
		}
	})
	rig.Figure("fma_peak", rig.Median(peaks), "GFLOP/s")
	rig.Figure("gemm", rig.Median(speed), "GFLOP/s")
	rig.Figure("gemm_share", rig.Median(share), "x")
	return nil
}

// threads trains ResNet-18 on one core and on two, in turns.
func (b *bench) threads() error {
	var speedup []float64
	w := workloads[1]
	for range 5 {
		one, _, err := run("0", b.ours(), w)
		if err != nil {
			return err
		}
		two, _, err := run("0,1", b.ours(), w, "--threads", "2")
		if err != nil {
			return err
		}
		speedup = append(speedup, two.PerSecond/one.PerSecond)
	}
	rig.Figure("threads2_speedup", rig.Median(speedup), "x")
	return nil
}

// plans compares the peak resident memory of training with the plan and the batch, for a network of each family of the
// zoo at two batch sizes. What the process holds beside its slab is measured on the smallest network.
func (b *bench) plans() error {
	var least, most float64
	var base int64
	small := workload{network: "softmax-regression", input: "1x28x28", batch: 16, steps: 5}
	for range 3 {
		m, _, err := run("0", b.ours(), small)
		if err != nil {
			return err
		}
		base = max(base, m.PeakRSS-m.Plan-m.Inputs)
	}
	fmt.Printf("# process beside its slab: %.2f MB\n", float64(base)/(1<<20))
	for _, e := range model.Zoo() {
		if e.VariantOf != "" {
			continue
		}
		for _, batch := range []int{16, 48} {
			m, _, err := run("0", b.ours(), workload{network: e.Name, input: smallInput(e), batch: batch, steps: 1})
			if err != nil {
				return fmt.Errorf("%s: %w", e.Name, err)
			}
			r := float64(m.PeakRSS) / float64(m.Plan+m.Inputs+base)
			fmt.Printf("# %s batch %d: plan %.1f MB, peak %.1f MB, %.3f\n", e.Name, batch, float64(m.Plan)/(1<<20),
				float64(m.PeakRSS)/(1<<20), r)
			if least == 0 || r < least {
				least = r
			}
			most = max(most, r)
		}
	}
	rig.Figure("plan_rss_min", least, "x")
	rig.Figure("plan_rss_max", most, "x")
	return nil
}

// smallInput is the size at which a network of the zoo is measured.
func smallInput(e model.Entry) string {
	switch {
	case e.Name == "inceptionv3":
		return "3x96x96"
	case e.Input[1] == 1: // a text
		return "1x1x64"
	case e.Input[1] > 32:
		return "3x32x32"
	default:
		return fmt.Sprintf("%dx%dx%d", e.Input[0], e.Input[1], e.Input[2])
	}
}

// firstStep is the time from starting a process to the end of its first step, LeNet-5.
func (b *bench) firstStep() error {
	var ms []float64
	for range 5 {
		m, started, err := run("0", b.ours(), workload{network: "lenet5", input: "1x28x28", batch: 64, steps: 5})
		if err != nil {
			return err
		}
		ms = append(ms, float64(m.FirstStep-started.UnixNano())/1e6)
	}
	rig.Figure("first_step_ms", rig.Median(ms), "ms")
	return nil
}
