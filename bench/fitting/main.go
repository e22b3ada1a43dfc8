// Command fitting measures how networks are made to fit a memory limit. It prints its figures as lines:
//
//	figure NAME VALUE UNIT
//
// `fitting step` trains two steps in a process of its own, and prints how much memory that took. The figures of
// fit_zoo_256 and largest_512_m are those of plans: nothing is trained for them. The program does not compare figures
// with goals.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/runtime/engine/footprint"
	"github.com/disdel/disdel/runtime/engine/native"
	"github.com/disdel/disdel/scheduler"
)

var adam = disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "step" {
		rig.Main(func() error { return step(os.Args[2]) })
		return
	}
	seed := flag.Uint64("seed", 1, "of the drawn networks")
	pairs := flag.Int("pairs", 60, "networks and ways to save memory that are drawn")
	side := flag.Int("side", 64, "pixels of a side of the images of ResNet-50")
	only := flag.Bool("stages", false, "print the figures of stages only")
	plans := flag.Bool("plans", false, "print the figures of plans only, for which nothing is trained")
	program := flag.String("forecasts", "", "print the forecasts of jobs in stages only, which this disdel runs")
	large := flag.String("vgg", "", "train VGG-16 in actions of 512 MB only, by this disdel")
	flag.Parse()
	if *large != "" {
		rig.Main(func() error { return with(*large, vgg) })
		return
	}
	if *program != "" {
		rig.Main(func() error { return with(*program, forecasts) })
		return
	}
	if *plans {
		rig.Main(func() error { return errors.Join(largest(), zoo()) })
		return
	}
	if *only {
		rig.Main(func() error { return stages(*side) })
		return
	}
	rig.Main(func() error {
		for _, f := range []func() error{
			zoo, largest, func() error { return recompute(*side) },
			func() error { return stages(*side) }, func() error { return drawn(*seed, *pairs) },
		} {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	})
}

// with calls f with the whole path of a program: actions start in folders of their own.
func with(program string, f func(string) error) error {
	path, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	return f(path)
}

// plan plans a job of one network with two workers, whose actions may have so much memory.
func plan(g *model.Graph, batch int, limit disdel.Bytes) (disdel.Plan, error) {
	in := scheduler.PlanInput{
		Graph: g, Estimator: estimator.Planned(backends.Standard(nil)),
		Platform: disdel.PlatformLimits{MinMemory: 128 * disdel.MB, MaxMemory: limit, MaxTimeout: disdel.Millis(time.Hour)},
		Data: disdel.DataInfo{
			Name: "drawn", Train: 1000, HeldOut: 100, Sample: g.Input(), Classes: g.Output().Len(),
			SampleSize: disdel.Bytes(g.Input().Len()),
		},
	}
	in.Job.Training = disdel.Training{Epochs: 1, BatchSize: batch, Optimizer: adam, Loss: "crossEntropy"}
	in.Job.Distribution = disdel.Distribution{Policy: disdel.PolicyStatic, Workers: 2}
	return scheduler.NewPlan(in)
}

// zoo counts the networks, one of each family, that fit 256 MB at their own size with a batch of 32, and names the
// others.
func zoo() error {
	all, fits := 0, 0
	for _, e := range model.Zoo() {
		if e.VariantOf != "" {
			continue
		}
		all++
		g, err := model.Build(disdel.Network{Name: e.Name, Input: e.Input, Classes: 10})
		if err != nil {
			return err
		}
		if err := evaluated(e.Name, g); err != nil {
			return err
		}
		if p, err := plan(g, 32, 256*disdel.MB); err != nil {
			fmt.Printf("%s does not fit: %v\n", e.Name, err)
		} else {
			fmt.Printf("%s fits by %s\n", e.Name, p.SavedBy())
			fits++
		}
	}
	rig.Figure("fit_zoo_256", float64(fits), fmt.Sprintf("networks of %d, by their plans", all))
	return nil
}

// evaluated prints the estimates of an evaluation of one row by some networks that have too many weights for small
// actions: with all weights in the action, and with one part of the network after the other.
func evaluated(name string, g *model.Graph) error {
	if !slices.Contains([]string{"gpt2", "bert-base", "vit-b16"}, name) {
		return nil
	}
	in := estimator.Input{
		Graph: g, BatchSize: 1, Rows: 100, SampleBytes: disdel.Bytes(g.Input().Len()), Optimizer: adam, InBlocks: true,
	}
	by := estimator.Planned(backends.Standard(nil))
	parts, err := by.EvaluateByLayers(in)
	if err != nil {
		return err
	}
	name = strings.ReplaceAll(name, "-", "_")
	whole := by.Evaluate(in)
	rig.Figure("evaluate_"+name+"_mb", float64(parts.Total)/float64(disdel.MB), "MB, estimated, one part after the other")
	rig.Figure("evaluate_"+name+"_whole_mb", float64(whole.Total)/float64(disdel.MB), "MB, estimated, with all weights")
	return nil
}

// largest finds the largest networks of three and of eight dense layers that fit 512 MB with Adam. No layer is cut.
func largest() error { return errors.Join(largestOf(3, "_three_layers"), largestOf(8, "")) }

func largestOf(depth int, name string) error {
	wide := func(width int) (*model.Graph, error) {
		layers := make([]disdel.Layer, 0, depth)
		for range depth - 1 {
			layers = append(layers, disdel.Layer{Kind: "dense", Units: width, Activation: "relu"})
		}
		layers = append(layers, disdel.Layer{Kind: "dense", Units: 10, Activation: "softmax"})
		return model.Build(disdel.Network{Layers: layers, Input: []int{3, 32, 32}, Classes: 10})
	}
	const part = 64
	n := sort.Search(256, func(i int) bool {
		g, err := wide((i + 1) * part)
		if err == nil {
			_, err = plan(g, 32, 512*disdel.MB)
		}
		return err != nil
	})
	g, err := wide(n * part)
	if err != nil {
		return err
	}
	p, err := plan(g, 32, 512*disdel.MB)
	if err != nil {
		return err
	}
	fmt.Printf("the largest has layers of %d values and fits by %s\n", n*part, p.SavedBy())
	if next, err := wide((n + 1) * part); err == nil {
		_, err = plan(next, 32, 512*disdel.MB)
		fmt.Printf("the next one does not fit: %v\n", err)
	}
	rig.Figure("largest_512"+name+"_m", float64(g.Count().Trainable)/1e6, "million weights, by the plan")
	return nil
}

// recompute compares a step of ResNet-50 whose activations are computed again with one that keeps them.
func recompute(side int) error {
	g, err := model.Build(disdel.Network{Name: "resnet50", Input: []int{3, side, side}, Classes: 10})
	if err != nil {
		return err
	}
	s := engine.Spec{Graph: g, BatchSize: 32, Training: true, Optimizer: adam, Threads: runtime.NumCPU()}
	var took [2][]float64
	var memory [2]disdel.Bytes
	var engines [2]engine.Engine
	for i, r := range []disdel.Recompute{disdel.RecomputeNone, disdel.RecomputeAuto} {
		s.Recompute = r
		if engines[i], err = native.New(s); err != nil {
			return err
		}
		defer engines[i].Close()
		if err := engines[i].Init(disdel.Init{Scheme: "he"}); err != nil {
			return err
		}
		memory[i] = engines[i].Footprint().Sum(footprint.Activations, footprint.Backward)
	}
	for range 8 { // in turns, so that both meet the same machine
		for i, e := range engines {
			begun := time.Now()
			if _, err := e.Step(batch(g, s.BatchSize)); err != nil {
				return err
			}
			took[i] = append(took[i], rig.Since(begun))
		}
	}
	rig.Figure("recompute_memory", float64(memory[1])/float64(memory[0]), "activations over those without")
	rig.Figure("recompute_time", slices.Min(took[1])/slices.Min(took[0]), "fastest step over that without")
	return nil
}

// batch is a batch of rows with some values.
func batch(g *model.Graph, rows int) dataset.Batch {
	x := make([]float32, rows*g.Input().Len())
	for i := range x {
		x[i] = float32(i*7919%1000)/500 - 1
	}
	return dataset.Dense(rows, x, make([]int32, rows))
}

// pair is a network, and how its steps save memory.
type pair struct {
	Network string `json:"network"`
	Batch   int    `json:"batch"`
	disdel.StepMemory
}

// taken is the memory of a pair, planned and measured.
type taken struct {
	Plan disdel.Bytes `json:"planBytes"`
	RSS  disdel.Bytes `json:"rssBytes"`
}

// drawn compares plans with the resident memory of processes, each with a drawn network and way to save memory.
func drawn(seed uint64, pairs int) error {
	draw := rand.New(rand.NewPCG(seed, 5))
	names := []string{"resnet18", "resnet34", "resnet50", "mobilenetv1", "vgg16-cifar"}
	low, high, failed := math.Inf(1), 0.0, 0
	for range pairs {
		p := pair{Network: names[draw.IntN(len(names))], Batch: 32 + draw.IntN(97)}
		p.MicroBatch = []int{0, 16, 32}[draw.IntN(3)]
		p.Recompute = []disdel.Recompute{disdel.RecomputeNone, disdel.RecomputeAuto}[draw.IntN(2)]
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		var got taken
		out, err := exec.Command(os.Args[0], "step", string(text)).Output()
		if err == nil {
			err = json.Unmarshal(out, &got)
		}
		if err != nil {
			fmt.Printf("%s: %v\n", text, err)
			failed++
			continue
		}
		ratio := float64(got.Plan) / float64(got.RSS)
		low, high = min(low, ratio), max(high, ratio)
	}
	rig.Figure("plan_rss_min", low, fmt.Sprintf("plan over what a process takes for it, of %d", pairs-failed))
	rig.Figure("plan_rss_max", high, "the same")
	rig.Figure("fit_failed", float64(failed), "processes that did not train")
	return nil
}

// step trains two steps of a pair, and prints what the process took more than before.
func step(text string) error {
	var p pair
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	if _, err := train(pair{Network: "resnet20-cifar", Batch: 1}); err != nil { // what every process takes
		return err
	}
	runtime.GC()
	before, err := rig.Memory(0, "VmRSS")
	if err != nil {
		return err
	}
	planned, err := train(p)
	if err != nil {
		return err
	}
	peak, err := rig.Memory(0, "VmHWM")
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(taken{planned, peak[0] - before[0]})
}

// train trains two steps of a pair, and returns the memory of the plan and of a batch.
func train(p pair) (planned disdel.Bytes, err error) {
	g, err := model.Build(disdel.Network{Name: p.Network, Input: []int{3, 32, 32}, Classes: 10})
	if err != nil {
		return 0, err
	}
	e, err := native.New(engine.Spec{
		Graph: g, BatchSize: p.Batch, Training: true, Optimizer: adam, StepMemory: p.StepMemory,
	})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	if err := e.Init(disdel.Init{Scheme: "he"}); err != nil {
		return 0, err
	}
	rows := batch(g, p.Batch)
	for range 2 {
		if _, err := e.Step(rows); err != nil {
			return 0, err
		}
	}
	return e.Footprint().Total(), nil
}
