// Command functions measures users' Python programs as actions, beside plain PyTorch on the same data. It prints its
// figures as lines:
//
//	figure NAME VALUE UNIT
//
// The part steps compares the time of training steps, starts times the starts of workers, exchange times their weights'
// way, and estimates compares the estimates of drawn programs with their measured peaks. The part translated compares
// Python with disdel's own engine on the same program, and kills disturbs jobs. The part
// frameworks compares the losses of libraries as jobs and alone, kubeml the time of an epoch with KubeML's way, and
// examples counts the programs of KubeML's kind that fail. The program does not compare figures with goals.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

func main() {
	program := flag.String("program", "bin/disdel", "the built program")
	python := flag.String("python", "/usr/bin/python3", "an interpreter with PyTorch")
	programs := flag.String("programs", "bench/functions/programs", "folder of the Python programs")
	clients := flag.String("clients", "clients/python/src", "folder of the Python package disdel")
	libraries := flag.String("libraries", ".cache/frameworks/bin/python", "an interpreter with Keras and other libraries")
	parts := flag.String("parts", "steps,starts,exchange,estimates,translated,kills,frameworks,kubeml,examples",
		"what is measured")
	runs := flag.Int("runs", 3, "pairs of runs")
	disturbed := flag.Int("kills", 60, "jobs that are disturbed by a kill")
	draws := flag.Int("draws", 40, "programs whose estimates are compared")
	seed := flag.Uint64("seed", 34, "of the drawn programs")
	flag.Parse()
	rig.Main(func() error {
		return rig.Folder(func(home string) error {
			b := &bencher{
				python: *python, runs: *runs, draws: *draws, disturbed: *disturbed,
				rng: rand.New(rand.NewPCG(*seed, 0)),
			}
			var err error
			if b.Path, err = filepath.Abs(*program); err != nil {
				return err
			}
			if b.programs, err = filepath.Abs(*programs); err != nil {
				return err
			}
			if b.clients, err = filepath.Abs(*clients); err != nil {
				return err
			}
			if b.libraries, err = filepath.Abs(*libraries); err != nil {
				return err
			}
			b.Home = home
			all := []rig.Part{
				{Name: "steps", Run: b.steps},
				{Name: "starts", Run: b.starts},
				{Name: "exchange", Run: b.exchange},
				{Name: "estimates", Run: b.estimates},
				{Name: "translated", Run: b.translated},
				{Name: "kills", Run: b.kills},
				{Name: "frameworks", Run: b.frameworks},
				{Name: "kubeml", Run: b.kubeml},
				{Name: "examples", Run: b.examples},
			}
			return rig.RunParts(all, *parts)
		})
	})
}

type bencher struct {
	rig.Program
	python, programs string
	clients          string   // folder of the Python package disdel
	libraries        string   // an interpreter with all libraries that are compared
	also             []string // further arguments of submit
	runs, draws      int
	disturbed        int // jobs
	rng              *rand.Rand
}

// data is a data set of drawn images of ten classes.
type data struct {
	name           string
	images, labels string // files
	rows           int
}

// draw writes images and labels as NumPy arrays and adds them as a data set.
func (b *bencher) draw(name string, rows int, shape ...int) (data, error) {
	var x []byte
	for range rows * product(shape) {
		x = binary.LittleEndian.AppendUint32(x, math.Float32bits(b.rng.Float32()))
	}
	return b.add(name, "<f4", x, rows, shape)
}

// drawBytes is draw for images of bytes, as KubeML's users upload them.
func (b *bencher) drawBytes(name string, rows int, shape ...int) (data, error) {
	x := make([]byte, rows*product(shape))
	for i := range x {
		x[i] = byte(b.rng.Uint32())
	}
	return b.add(name, "|u1", x, rows, shape)
}

func product(shape []int) int {
	n := 1
	for _, side := range shape {
		n *= side
	}
	return n
}

// add adds images of a type of NumPy as a data set of ten classes in turn.
func (b *bencher) add(name, kind string, x []byte, rows int, shape []int) (data, error) {
	file := filepath.Join(b.Home, name)
	d := data{name: name, images: file + "-x.npy", labels: file + "-y.npy", rows: rows}
	y := make([]byte, rows)
	for i := range y {
		y[i] = byte(i % 10)
	}
	if err := writeArray(d.images, kind, x, append([]int{rows}, shape...)...); err != nil {
		return d, err
	}
	if err := writeArray(d.labels, "|u1", y, rows); err != nil {
		return d, err
	}
	_, err := b.Run(nil, "dataset", "add", name, "--format", "npy", "--images", d.images, "--labels", d.labels, "-q")
	return d, err
}

// writeArray writes a file in NumPy's format, version 1.0.
func writeArray(file, kind string, values []byte, shape ...int) error {
	var sides strings.Builder
	for _, side := range shape {
		sides.WriteString(strconv.Itoa(side) + ",")
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kind, sides.String())
	for (10+len(head)+1)%64 != 0 {
		head += " "
	}
	head += "\n"
	out := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head)))
	return os.WriteFile(file, append(append(out, head...), values...), 0o600)
}

// submit trains a program as one worker with one thread, and returns the record. file may name the entry, FILE:ENTRY; it
// is Net else. sets are further settings.
func (b *bencher) submit(file string, d data, sets ...string) (disdel.Record, error) {
	if !strings.Contains(file, ":") {
		file += ":Net"
	}
	args := []string{
		"submit", filepath.Join(b.programs, file), "--data", "dataset://" + d.name, "--python", b.python,
		"--action-memory", "4GB",
		"--set", "distribution.workers=1", "--set", "resources.threads=1", "--set", "data.split.train=1",
		"--set", "data.split.validation=0", "--set", "training.optimizer={sgd: {learningRate: 0.01, momentum: 0.9}}",
	}
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	return b.Job(nil, append(args, b.also...)...)
}

// trained returns the first successful train activation of a record.
func trained(rec *disdel.Record) (a disdel.Activation, err error) {
	for _, a := range rec.Activations {
		if a.Task == disdel.TaskTrain && a.Outcome == disdel.OutcomeSuccess {
			return a, nil
		}
	}
	return a, fmt.Errorf("job %s has no successful train action", rec.ID)
}

// network is a program whose steps are measured.
type network struct {
	file, module, name string
	batch, rows        int
	shape              []int
}

// steps prints how the training steps of an action compare with those of a plain loop, in pairs of runs.
func (b *bencher) steps() error {
	worst := math.Inf(1)
	for _, n := range []network{
		{"lenet.py", "lenet", "lenet5", 64, 64 * 150, []int{1, 28, 28}},
		{"resnet18.py", "resnet18", "resnet18", 32, 32 * 20, []int{3, 64, 64}},
	} {
		d, err := b.draw(n.name, n.rows, n.shape...)
		if err != nil {
			return err
		}
		var ours, plain []float64
		for range b.runs {
			action, loop, err := b.pair(n, d)
			if err != nil {
				return err
			}
			ours, plain = append(ours, action), append(plain, loop)
		}
		ratio := rig.Median(plain) / rig.Median(ours)
		rig.Figure("function_"+n.name+"_steps_per_s", float64(n.rows/n.batch)/rig.Median(ours), "steps/s")
		rig.Figure("function_"+n.name+"_step_ratio", ratio, "ratio")
		worst = min(worst, ratio)
	}
	rig.Figure("function_step_ratio", worst, "ratio")
	return nil
}

// pair trains one epoch as an action and in a plain loop, and returns the seconds of their steps.
func (b *bencher) pair(n network, d data) (action, loop float64, err error) {
	rec, err := b.submit(n.file, d, "training.epochs=1", "training.batchSize="+strconv.Itoa(n.batch))
	if err != nil {
		return 0, 0, err
	}
	a, err := trained(&rec)
	if err != nil {
		return 0, 0, err
	}
	loop, err = b.plain(n, d)
	return float64(a.Phases["compute"]) / 1e9, loop, err
}

// plain trains one epoch in a plain PyTorch loop and returns the seconds of its steps.
func (b *bencher) plain(n network, d data) (float64, error) {
	var answer struct{ Seconds float64 }
	err := b.peer("peer.py", map[string]any{
		"module": n.module, "images": d.images, "labels": d.labels, "batch": n.batch, "threads": 1,
	}, &answer)
	return answer.Seconds, err
}

// translated prints how many times as fast disdel's engine takes the steps of a user's ResNet-18 as Python does.
func (b *bencher) translated() error {
	const batch, steps = 32, 20
	d, err := b.draw("translated", batch*steps, 3, 64, 64)
	if err != nil {
		return err
	}
	took := map[string][]float64{}
	for range b.runs {
		for _, backend := range []string{disdel.BackendPython, disdel.BackendAuto} {
			rec, err := b.submit("resnet18.py", d, "training.epochs=1", "training.batchSize="+strconv.Itoa(batch),
				"training.backend="+backend)
			if err != nil {
				return err
			}
			if backend == disdel.BackendAuto && !rec.Job.Model.Translated() {
				return fmt.Errorf("backend auto left ResNet-18 to Python: %q", rec.Warnings)
			}
			a, err := trained(&rec)
			if err != nil {
				return err
			}
			took[backend] = append(took[backend], float64(a.Phases["compute"])/1e9)
		}
	}
	rig.Figure("translate_ratio", rig.Median(took[disdel.BackendPython])/rig.Median(took[disdel.BackendAuto]), "ratio")
	return nil
}

// starts prints how long it takes from an action's start to the end of its first step: with the first worker of a
// platform, whose template imports PyTorch, and with later ones, which are forked from it. Every job has another
// learning rate, so that no worker can be used again.
func (b *bencher) starts() error {
	p, err := rig.StartPlatform(b.Path, "--action-memory", "2GB")
	if err != nil {
		return err
	}
	defer p.Close()
	there := *b
	there.Program, there.also = p.Program, []string{"--apihost", p.Host}
	const batch = 64
	d, err := there.draw("starts", batch, 1, 28, 28)
	if err != nil {
		return err
	}
	var starts []float64
	for i := range 2*b.runs + 1 {
		rec, err := there.submit("lenet.py", d, "training.epochs=1", fmt.Sprintf("training.batchSize=%d", batch),
			fmt.Sprintf("training.optimizer={sgd: {learningRate: %g}}", 0.01+float64(i)/1000))
		if err != nil {
			return err
		}
		a, err := trained(&rec)
		if err != nil {
			return err
		}
		spent := a.Phases["load"] + a.Phases["fetch"] + a.Phases["compute"]
		starts = append(starts, float64(spent)/1e6+float64(a.InitTime)/1e6)
	}
	rig.Figure("function_cold_start_ms", starts[0], "ms")
	rig.MedianFigure("function_warm_start_ms", starts[1:], "ms")
	return nil
}

// estimates prints how the estimates of drawn programs compare with the measured peaks of their train actions.
func (b *bencher) estimates() error {
	d, err := b.draw("estimates", 1024, 1, 28, 28)
	if err != nil {
		return err
	}
	var errors []float64
	kills, inside, failed := 0, 0, 0
	for range b.draws {
		p := b.program()
		rec, err := b.submit("drawn.py", d, p.sets()...)
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: %v: %v\n", p, err)
			failed++
			continue
		}
		for _, a := range rec.Activations {
			if a.FailureKind() == disdel.OOM {
				kills++
			}
		}
		a, err := trained(&rec)
		if err != nil || a.Peak == 0 {
			failed++
			continue
		}
		off := 100 * math.Abs(float64(a.Expected())-float64(a.Peak)) / float64(a.Peak)
		errors = append(errors, off)
		if a.Peak <= a.Limits.Memory {
			inside++
		}
		n := rec.Job.Model.Python.Network.Python
		fmt.Fprintf(os.Stderr, "%v: likely %v, limit %v, peak %v; floor %v, steps by batch %v, factor %v\n", p, a.Expected(),
			a.Limits.Memory, a.Peak, n.Floor, n.Memory, n.Factor)
	}
	rig.Figure("function_programs", float64(b.draws), "programs")
	rig.Figure("function_failed_programs", float64(failed), "programs")
	rig.MedianFigure("function_estimate_error_median_pct", errors, "%")
	rig.Figure("function_estimate_error_p95_pct", rig.Percentile(errors, 0.95), "%")
	rig.Figure("function_oom_kills", float64(kills), "activations")
	return nil
}

// drawn is a drawn program.
type drawn struct {
	kind, optimizer     string
	width, depth, batch int
}

func (b *bencher) program() drawn {
	kinds := []string{"convolutions", "dense", "encoder", "recurrent", "branching"}
	optimizers := []string{
		"{sgd: {learningRate: 0.01}}", "{sgd: {learningRate: 0.01, momentum: 0.9}}",
		"{adam: {learningRate: 0.001}}",
	}
	return drawn{
		kind: kinds[b.rng.IntN(len(kinds))], optimizer: optimizers[b.rng.IntN(len(optimizers))],
		width: 16 << b.rng.IntN(4), depth: 1 + b.rng.IntN(4), batch: 4 << b.rng.IntN(7),
	}
}

func (p drawn) sets() []string {
	return []string{
		"training.epochs=1", "training.batchSize=" + strconv.Itoa(p.batch), "training.optimizer=" + p.optimizer,
		fmt.Sprintf("model.python.arguments={kind: %s, width: %d, depth: %d}", p.kind, p.width, p.depth),
	}
}
