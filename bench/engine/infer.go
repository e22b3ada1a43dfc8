package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// inference predicts with one network and prints a measurement, rows a second as its samples.
func inference(args []string) error {
	f := flag.NewFlagSet("infer", flag.ContinueOnError)
	network := f.String("network", "lenet5", "")
	input := f.String("input", "1x28x28", "")
	classes := f.Int("classes", 10, "")
	batch := f.Int("batch", 1, "")
	steps := f.Int("steps", 2000, "")
	warmup := f.Int("warmup", 20, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	g, err := graph(*network, *input, *classes)
	if err != nil {
		return err
	}
	e, err := native.New(engine.Spec{Graph: g, BatchSize: *batch})
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Init(disdel.Init{Scheme: "he"}); err != nil {
		return err
	}
	rows := dataset.Dense(*batch, values(*batch*g.Input().Len()), nil)
	for range *warmup {
		if _, err := e.Predict(rows); err != nil {
			return err
		}
	}
	m := measurement{Network: *network, Batch: *batch, Plan: int64(e.Plan().Bytes()), Kernels: e.Kernels()}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rates, total := make([]float64, 0, groups), 0
	for range groups {
		n, start := max(1, *steps/groups), time.Now()
		for range n {
			if _, err := e.Predict(rows); err != nil {
				return err
			}
		}
		rates, total = append(rates, float64(n**batch)/time.Since(start).Seconds()), total+n
	}
	runtime.ReadMemStats(&after)
	m.Allocs = float64(after.Mallocs-before.Mallocs) / float64(total)
	m.PerSecond, m.PeakRSS = rig.Median(rates), peakRSS()
	return json.NewEncoder(os.Stdout).Encode(m)
}

// infer compares LeNet-5's rows a second with ONNX Runtime's on one core, with one row at a time and with 256. It also
// times 10,000 rows on the command line.
func (b *bench) infer() error {
	if _, err := os.Stat(b.onnx); err != nil {
		fmt.Println("# no ONNX Runtime to compare inference with")
		return b.commandLine()
	}
	file := filepath.Join(b.home, "lenet5.onnx")
	made, err := exec.Command(b.debian, "bench/peer/onnx_model.py", "--network", "lenet5", "--input", "1x28x28",
		"--classes",
		"10", "--out", file).CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(string(made)))
	}
	for _, w := range []workload{
		{"batch1", "lenet5", "1x28x28", 1, 10_000, 10}, {"batch256", "lenet5", "1x28x28", 256, 200, 10},
	} {
		var ours, theirs []float64
		for range b.rounds {
			mine, _, err := run("0", []string{b.self, "infer"}, w)
			if err != nil {
				return err
			}
			peer, _, err := run("0", []string{b.onnx, "bench/peer/onnx_infer.py", "--model", file}, w)
			if err != nil {
				return err
			}
			ours, theirs = append(ours, mine.PerSecond), append(theirs, peer.PerSecond)
		}
		rig.Figure("infer_rows_per_s_"+w.figure, rig.Median(ours), "1/s")
		rig.Figure("onnx_rows_per_s_"+w.figure, rig.Median(theirs), "1/s")
		rig.Figure("infer_ratio_"+w.figure, rig.Median(ours)/rig.Median(theirs), "x")
	}
	return b.commandLine()
}

// inferJob trains a LeNet-5 whose rows have 784 values, on what quickstart brings.
const inferJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: infer-bench}
model: {name: lenet5}
data: {source: "dataset://digits", resize: 28}
training: {epochs: 1, optimizer: {adam: {learningRate: 0.001}}}
`

// commandLine times `disdel infer` on 10,000 rows in a .npy file, from the start of the process to its end.
func (b *bench) commandLine() error {
	job, rows := filepath.Join(b.home, "job.yaml"), filepath.Join(b.home, "rows.npy")
	if err := errors.Join(os.WriteFile(job, []byte(inferJob), 0o600), writeNPY(rows, 10_000, 784)); err != nil {
		return err
	}
	command := func(args ...string) error {
		_, err := rig.Program{Path: b.program, Home: b.home}.Run(nil, append(args, "-q")...)
		return err
	}
	if err := errors.Join(command("quickstart"), command("submit", job)); err != nil {
		return err
	}
	times, err := rig.Times(b.rounds, func() error {
		return command("infer", "infer-bench", "--input", rows, "-o", "json")
	})
	if err == nil {
		rig.Figure("infer_10k_s", rig.Median(times)/1000, "s")
	}
	return err
}

// writeNPY writes an array of float32, [rows][columns], as NumPy stores it.
func writeNPY(file string, rows, columns int) error {
	var out bytes.Buffer
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, columns)
	for (10+len(header)+1)%64 != 0 {
		header += " "
	}
	header += "\n"
	out.WriteString("\x93NUMPY\x01\x00")
	err := errors.Join(binary.Write(&out, binary.LittleEndian, uint16(len(header))),
		binary.Write(&out, binary.LittleEndian, []byte(header)),
		binary.Write(&out, binary.LittleEndian, values(rows*columns)))
	return errors.Join(err, os.WriteFile(file, out.Bytes(), 0o600))
}
