package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// precisions are those that the processor's engine has.
var precisions = []disdel.Precision{disdel.PrecisionFloat32, disdel.PrecisionBF16}

// images are rows as batches have them.
type images struct {
	x      []float32
	labels []int32
	sample int
}

func imagesOf(s *dataset.Samples) images {
	out := images{x: make([]float32, len(s.U8)), labels: s.Labels, sample: len(s.U8) / len(s.Labels)}
	for i, v := range s.U8 {
		out.x[i] = float32(v) / 255
	}
	return out
}

// rows copies some of them into x and y.
func (m *images) rows(which []int, x []float32, y []int32) dataset.Batch {
	for i, r := range which {
		copy(x[i*m.sample:], m.x[r*m.sample:][:m.sample])
		y[i] = m.labels[r]
	}
	return dataset.Dense(len(which), x[:len(which)*m.sample], y[:len(which)])
}

const fashionBatch = 64

// bf16Points trains LeNet-5 on Fashion-MNIST from five seeds in both precisions, and prints by how many points of a
// hundred the mean accuracy on the test rows differs, bf16's less float32's.
func (b *bench) bf16Points() error {
	in, err := dataset.Files{
		Images:     filepath.Join(b.fashion, "train-images-idx3-ubyte.gz"),
		Labels:     filepath.Join(b.fashion, "train-labels-idx1-ubyte.gz"),
		TestImages: filepath.Join(b.fashion, "t10k-images-idx3-ubyte.gz"),
		TestLabels: filepath.Join(b.fashion, "t10k-labels-idx1-ubyte.gz"),
	}.Input("fashion-mnist")
	if err != nil {
		return err
	}
	train, test := imagesOf(&in.Train), imagesOf(in.Test)
	var sums [2]float64
	const seeds = 5
	for seed := range int64(seeds) {
		var points [2]float64
		for i, p := range precisions {
			if points[i], err = fashion(p, seed, b.epochs, train, test); err != nil {
				return err
			}
			sums[i] += points[i] / seeds
		}
		fmt.Printf("# Fashion-MNIST, LeNet-5, %d epochs, seed %d: %.2f %% with float32, %.2f %% with bf16\n", b.epochs,
			seed, points[0], points[1])
	}
	figure("float32_accuracy", sums[0], "%")
	figure("bf16_accuracy", sums[1], "%")
	figure("bf16_points", sums[1]-sums[0], "points")
	return nil
}

// fashion is the accuracy in percent after some epochs.
func fashion(p disdel.Precision, seed int64, epochs int, train, test images) (float64, error) {
	g, err := graph("lenet5", "1x28x28", 10)
	if err != nil {
		return 0, err
	}
	e, err := native.New(engine.Spec{
		Graph: g, BatchSize: fashionBatch, Training: true, Precision: p,
		Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 1e-3}},
	})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	if err := e.Init(disdel.Init{Seed: seed}); err != nil {
		return 0, err
	}
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	x, y := make([]float32, fashionBatch*train.sample), make([]int32, fashionBatch)
	for range epochs {
		for part := range slices.Chunk(rng.Perm(len(train.labels)), fashionBatch) {
			if _, err := e.Step(train.rows(part, x, y)); err != nil {
				return 0, err
			}
		}
	}
	right, order := 0, make([]int, len(test.labels))
	for i := range order {
		order[i] = i
	}
	for part := range slices.Chunk(order, fashionBatch) {
		m, err := e.Evaluate(test.rows(part, x, y))
		if err != nil {
			return 0, err
		}
		right += m.Correct
	}
	return 100 * float64(right) / float64(len(order)), nil
}

// bf16Memory compares plans, and measured peaks of processes, with those of float32.
func (b *bench) bf16Memory() error {
	for _, w := range workloads {
		w.batch, w.steps = 128, 1
		if w.network == "inceptionv3" || w.network == "resnet50" {
			w.batch = 32
		}
		var plans, peaks [2]float64
		for i, p := range precisions {
			m, _, err := run("0", b.ours(), w, "--precision", string(p))
			if err != nil {
				return err
			}
			plans[i], peaks[i] = float64(m.Plan), float64(m.PeakRSS)
		}
		fmt.Printf("# %s batch %d: plan %.1f MB and peak %.1f MB with float32, %.1f and %.1f with bf16\n", w.network,
			w.batch, plans[0]/(1<<20), peaks[0]/(1<<20), plans[1]/(1<<20), peaks[1]/(1<<20))
		figure(w.figure+"_bf16_plan", plans[1]/plans[0], "x")
		figure(w.figure+"_bf16_rss", peaks[1]/peaks[0], "x")
	}
	return nil
}

// bf16Speed compares ResNet-18's steps with those of float32, and, where the processor multiplies bfloat16, with those
// of PyTorch under autocast.
func (b *bench) bf16Speed() error {
	short := []string{"--precision", "bf16"}
	hardware := cpu.X86.HasAVX512BF16 || cpu.X86.HasAMXBF16
	rates, peers, w := map[string][]float64{}, tried{}, workloads[1]
	for range b.rounds {
		for name, more := range map[string][]string{"disdel float32": nil, "disdel bf16": short} {
			m, _, err := run("0", b.ours(), w, more...)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			rates[name] = append(rates[name], m.PerSecond)
		}
		for _, p := range b.peers() {
			if !hardware || !p.torch() {
				continue
			}
			if m, ok := peers.run(p, w, short...); ok {
				key := p.name + " autocast " + m.Torch
				rates[key] = append(rates[key], m.PerSecond)
			}
		}
	}
	best := 0.0
	for name, r := range rates {
		fmt.Printf("# %s %s: %.1f samples/s\n", w.network, name, median(r))
		if strings.HasPrefix(name, "torch") {
			best = max(best, median(r))
		}
	}
	figure("resnet18_bf16_speed", median(rates["disdel bf16"])/median(rates["disdel float32"]), "x")
	switch {
	case !hardware:
		fmt.Println("# bf16_ratio is not measured: this processor has neither AVX512-BF16 nor AMX, which PyTorch's " +
			"autocast is for")
	case best == 0:
		fmt.Println("# bf16_ratio is not measured: there is no PyTorch")
	default:
		figure("bf16_ratio", median(rates["disdel bf16"])/best, "x")
	}
	return nil
}
