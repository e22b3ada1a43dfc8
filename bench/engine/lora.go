package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// Rows of the part lora are texts of a drawn language. A text has a topic, and each of its words is one of the topic's
// with the probability ofTopic.
const (
	textWords  = 32
	topics     = 8
	topicWords = 100
	ofTopic    = 0.15
	tunedRows  = 400
	heldOut    = 1000
	loraSeeds  = 5
)

// lora prints the bytes of a worker's update with adapters over those of full fine-tuning, and the difference of the
// accuracies on held-out rows. A BERT-tiny learns topics first, and then whether a topic is even.
func lora() error {
	base, err := tune(disdel.Network{Classes: topics}, nil, 10*tunedRows, 8, 3e-4, 0, func(topic int) int { return topic })
	if err != nil {
		return err
	}
	rig.Figure("lora_base_accuracy", 100*base.accuracy, "%")
	full := disdel.Network{Classes: 2, Init: disdel.Init{Weights: "base", Except: "classifier"}}
	adapters := full
	adapters.LoRA = &disdel.LoRA{Rank: 8, Alpha: 16, Layers: "*"}
	even := func(topic int) int { return topic % 2 }
	var gaps, accuracies []float64
	var share float64
	for seed := int64(1); seed <= loraSeeds; seed++ {
		full.Init.Seed, adapters.Init.Seed = seed, seed
		whole, err := tune(full, base.weights, tunedRows, 8, 1e-4, seed, even)
		if err != nil {
			return err
		}
		few, err := tune(adapters, base.weights, tunedRows, 8, 1e-3, seed, even)
		if err != nil {
			return err
		}
		fmt.Printf("# seed %d: accuracy %.1f %% of full fine-tuning, %.1f %% with adapters\n", seed, 100*whole.accuracy,
			100*few.accuracy)
		share = float64(few.update) / float64(whole.update)
		gaps, accuracies = append(gaps, 100*(few.accuracy-whole.accuracy)), append(accuracies, 100*few.accuracy)
	}
	rig.Figure("lora_bytes", share, "of the bytes of an update of full fine-tuning")
	rig.Figure("lora_accuracy", rig.Mean(accuracies), "%")
	rig.Figure("lora_points", rig.Mean(gaps), "points of accuracy over full fine-tuning, mean of five seeds")
	return nil
}

// tuned is a network that has learned.
type tuned struct {
	weights  disdel.Weights
	update   disdel.Bytes // of a worker, as float32
	accuracy float64      // on held-out rows
}

// tune trains a BERT-tiny on drawn texts. It starts from given weights, but for the layers that the network draws.
func tune(n disdel.Network, given disdel.Weights, rows, epochs int, rate float64, seed int64,
	label func(topic int) int,
) (out tuned, err error) {
	n.Name, n.Input = "bert-tiny", []int{1, 1, textWords}
	g, err := model.Build(n)
	if err != nil {
		return out, err
	}
	const batch = 16
	e, err := native.New(engine.Spec{
		Graph: g, BatchSize: batch, Threads: 1, Training: true, Seed: seed,
		Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: rate, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}},
	})
	if err != nil {
		return out, err
	}
	defer e.Close()
	if err := e.Init(n.Init); err != nil {
		return out, err
	}
	if err := start(e, n.Init, given); err != nil {
		return out, err
	}
	x, y := texts(rows, uint64(seed), label)
	for epoch := range epochs {
		for _, at := range rand.New(rand.NewPCG(uint64(seed), uint64(epoch))).Perm(rows / batch) {
			from, to := at*batch, (at+1)*batch
			if _, err := e.Step(dataset.Dense(batch, x[from*textWords:to*textWords], y[from:to])); err != nil {
				return out, err
			}
		}
	}
	correct := 0
	x, y = texts(heldOut, 1<<32+uint64(seed), label)
	for from := 0; from < heldOut; from += batch {
		to := min(from+batch, heldOut)
		m, err := e.Evaluate(dataset.Dense(to-from, x[from*textWords:to*textWords], y[from:to]))
		if err != nil {
			return out, err
		}
		correct += m.Correct
	}
	return tuned{
		engine.Weights(e), aggregator.WireBytes(engine.Trained(e), disdel.WireFloat32), float64(correct) / heldOut,
	}, nil
}

// start sets the given weights.
func start(e engine.Engine, init disdel.Init, given disdel.Weights) error {
	named := map[string]disdel.Tensor{}
	for _, v := range given {
		named[v.Name] = v
	}
	for _, a := range e.State() {
		v, ok := named[a.Name]
		if !ok || init.Excepts(a.Name) || strings.Contains(a.Name, ".lora_") {
			continue
		}
		if err := a.Set(v); err != nil {
			return err
		}
	}
	return nil
}

// texts draws rows of words, and the labels of their topics.
func texts(rows int, seed uint64, label func(topic int) int) (x []float32, y []int32) {
	rng := rand.New(rand.NewPCG(seed, 7))
	for range rows {
		topic := rng.IntN(topics)
		for range textWords {
			of := rng.IntN(topics)
			if rng.Float64() < ofTopic {
				of = topic
			}
			x = append(x, float32(1+of*topicWords+rng.IntN(topicWords)))
		}
		y = append(y, int32(label(topic)))
	}
	return x, y
}
