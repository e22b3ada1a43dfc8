package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/disdel/disdel/bench/rig"
)

// frameworks prints how many libraries reach as a job the loss that they reach alone. A step takes all rows, so that
// their order makes no difference.
func (b *bencher) frameworks() error {
	const rows, epochs = 160, 20
	d, err := b.draw("frameworks", rows, 1, 8, 8)
	if err != nil {
		return err
	}
	there := *b
	there.programs, there.python = filepath.Join(b.programs, "frameworks"), b.libraries
	programs := []string{
		"torch_step:Net", "torch_loop:train", "keras_fit:train", "huggingface:train", "lightning_fit:train", "scikit:train",
		"arrays:Net",
	}
	same := 0
	for _, p := range programs {
		module, entry, _ := strings.Cut(p, ":")
		var alone struct{ Loss float64 }
		err := there.peer("alone.py", map[string]any{
			"module": module, "images": d.images, "labels": d.labels, "epochs": epochs,
		}, &alone)
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s alone: %v\n", module, err)
			continue
		}
		rec, err := there.submit(module+".py:"+entry, d, fmt.Sprint("training.epochs=", epochs),
			fmt.Sprint("training.batchSize=", rows), "distribution.aggregation.optimizer=average",
			"resources.memory=2GB") // a busy machine may not measure Keras in time
		if err != nil || len(rec.Rounds) == 0 {
			fmt.Fprintf(os.Stderr, "bench: %s as a job: %v\n", module, err)
			continue
		}
		loss := rec.Rounds[len(rec.Rounds)-1].TrainLoss
		fmt.Fprintf(os.Stderr, "%s: loss %.6f, alone %.6f\n", module, loss, alone.Loss)
		if math.Abs(loss-alone.Loss) <= 0.01*alone.Loss {
			same++
		}
	}
	rig.Figure("function_frameworks", float64(same), fmt.Sprintf("of %d libraries have the loss that they reach alone",
		len(programs)))
	return nil
}

// examples prints how many of four programs in the shape of KubeML's published functions fail. Each trains an epoch on
// bytes as KubeML's users upload them, is evaluated, and its last batch is short.
func (b *bencher) examples() error {
	const rows = 2*32 + 8
	failed, all := 0, []string{"lenet", "resnet34", "resnet32", "vgg16"}
	for _, name := range all {
		shape := []int{3, 32, 32}
		if name == "lenet" {
			shape = []int{1, 28, 28}
		}
		d, err := b.drawBytes("examples-"+name, rows, shape...)
		if err != nil {
			return err
		}
		rec, err := b.submit(filepath.Join("kubeml", name+".py:main"), d, "training.epochs=1", "training.batchSize=32",
			"data.split.train=0.8", "data.split.validation=0.2")
		if err == nil && (len(rec.Rounds) == 0 || rec.Model == nil) {
			err = fmt.Errorf("job %s is %s", rec.ID, rec.Status)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: KubeML's %s: %v\n", name, err)
			failed++
		}
	}
	rig.Figure("kubeml_examples", float64(failed), fmt.Sprintf("of %d programs fail", len(all)))
	return nil
}

// kubeml prints how many times as long an epoch takes in KubeML's way, with the same program, rows and redis-server.
func (b *bencher) kubeml() error {
	const batch, rows, workers, epochs = 64, 64 * 100, 2, 5
	d, err := b.draw("kubeml", rows, 1, 28, 28)
	if err != nil {
		return err
	}
	url, stop, err := rig.StartRedis(b.Home)
	if err != nil {
		return err
	}
	defer stop()
	there := *b
	there.also = []string{"--redis", url}
	var ours, theirs []float64
	for range b.runs {
		rec, err := there.submit("kubeml_lenet.py:main", d, fmt.Sprint("training.epochs=", epochs),
			fmt.Sprint("training.batchSize=", batch), fmt.Sprint("distribution.workers=", workers))
		if err != nil {
			return err
		}
		for _, r := range rec.Rounds {
			ours = append(ours, float64(r.Duration)/1e9)
		}
		address := strings.TrimSuffix(strings.TrimPrefix(url, "redis://"), "/0")
		var answer struct{ Seconds []float64 }
		if err := b.peer("kubeml_way.py", map[string]any{
			"module": "kubeml_lenet", "images": d.images, "labels": d.labels, "batch": batch, "rows": rows, "rate": 0.01,
			"workers": workers, "epochs": epochs, "redis": address,
		}, &answer); err != nil {
			return err
		}
		theirs = append(theirs, answer.Seconds...)
	}
	rig.MedianFigure("function_epoch_s", ours, "s")
	rig.MedianFigure("function_kubeml_epoch_s", theirs, "s")
	rig.Figure("function_vs_kubeml", rig.Median(theirs)/rig.Median(ours), "ratio")
	return nil
}

// peer runs a Python program of the benchmark with a JSON argument and reads the JSON that it prints last. Its libraries
// compute with one thread.
func (b *bencher) peer(file string, asked, answer any) error {
	argument, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	cmd := exec.Command(b.python, filepath.Join(b.programs, file), string(argument))
	cmd.Dir, cmd.Stderr = b.programs, os.Stderr
	cmd.Env = append(os.Environ(), "PYTHONPATH="+b.clients, "CUDA_VISIBLE_DEVICES=")
	for _, name := range []string{"OMP", "MKL", "OPENBLAS"} {
		cmd.Env = append(cmd.Env, name+"_NUM_THREADS="+strconv.Itoa(1))
	}
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return json.Unmarshal([]byte(lines[len(lines)-1]), answer)
}
