package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// peers are the networks that bench/peer/networks.py has, too.
var peers = []string{
	"lenet5", "resnet18", "resnet20-cifar", "resnet50", "resnet152", "vgg16", "vgg16-cifar", "mobilenetv1", "inceptionv3",
}

// againstTorch trains networks for some steps on the GPU and with PyTorch, from the same weights, on the same batches,
// without dropout, whose draws are each library's own. Where a Python has no PyTorch the report says so: that is no
// failure.
func againstTorch(out io.Writer, b engine.Backend, python string, networks []string) error {
	fmt.Fprintf(out, "\n## Losses of %d steps, batch %d: PyTorch, GPU\n\n", checkSteps, checkBatch)
	if _, why := said(exec.Command(python, "-c", "import torch")); why != "" {
		fmt.Fprintf(out, "left out: %s has no PyTorch (%s)\n", python, why)
		return nil
	}
	apart := bounds[0].apart // of float32
	fmt.Fprintf(out, "both in float32; alike are losses that are no more than %v times 1 + the loss apart\n\n", apart)
	wrong := 0
	for _, name := range networks {
		s, err := undropped(name)
		if err != nil {
			return err
		}
		got, err := losses(b, s)
		if err != nil {
			return err
		}
		want, err := torchLosses(python, name, s)
		if err != nil {
			return err
		}
		verdict := "ok"
		if i := firstApart(want.Losses, got, apart); i >= 0 {
			verdict = fmt.Sprintf("APART at step %d", i)
			wrong++
		}
		fmt.Fprintf(out, "- %s %v, PyTorch %s on %s: %.5f and %.5f: %s\n", name, []int(s.Graph.Input()), want.Torch,
			want.Device, want.Losses, got, verdict)
	}
	if wrong > 0 {
		return &disdel.Error{Kind: disdel.Internal, Op: "check", Msg: fmt.Sprintf("%d networks differ from PyTorch's", wrong)}
	}
	return nil
}

// firstApart is the first step whose losses are farther apart than they may be, -1 where none are.
func firstApart(want, got []float64, apart float64) int {
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || !near(got[i], want[i], apart) {
			return i
		}
	}
	return -1
}

// undropped is what trains a network of the zoo without dropping anything.
func undropped(name string) (engine.Spec, error) {
	e, _ := model.Find(name) // building says that there is none
	g, err := smaller(e)
	if err != nil {
		return engine.Spec{}, err
	}
	for i := range g.Nodes {
		g.Nodes[i].Rate = 0
	}
	return checked(g), nil
}

// learned is what PyTorch says of a training.
type learned struct {
	Losses []float64 `json:"losses"`
	Torch  string    `json:"torch"`
	Device string    `json:"device"`
}

// torchLosses has PyTorch train as losses does.
func torchLosses(python, name string, s engine.Spec) (l learned, err error) {
	folder, err := os.MkdirTemp("", "losses")
	if err != nil {
		return l, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // it is in the system's temporary folder
	file := filepath.Join(folder, "arrays.safetensors")
	if err := write(file, s); err != nil {
		return l, err
	}
	in := s.Graph.Input()
	out, why := said(exec.Command(python, "bench/peer/torch_losses.py", "--network", name,
		"--input", fmt.Sprintf("%dx%dx%d", in[0], in[1], in[2]), "--classes", fmt.Sprint(s.Graph.Output().Len()),
		"--arrays", file, "--rate", fmt.Sprint(checkRate), "--momentum", fmt.Sprint(checkMomentum)))
	if why != "" {
		return l, &disdel.Error{Kind: disdel.Internal, Op: "train with PyTorch", Msg: name + ": " + why}
	}
	return l, json.Unmarshal(out, &l)
}

// write writes the first weights and the batches of a check.
func write(file string, s engine.Spec) error {
	all := engine.InitWeights(s.Graph, first)
	for i := range checkSteps {
		b := random(s.Graph, s.BatchSize, uint64(i))
		labels := make([]float32, len(b.Target.Classes))
		for k, y := range b.Target.Classes {
			labels[k] = float32(y)
		}
		all = append(all,
			disdel.Tensor{
				Name: fmt.Sprintf("x.%d", i), Shape: append([]int{s.BatchSize}, s.Graph.Input()...), Data: b.Input.Values,
			},
			disdel.Tensor{Name: fmt.Sprintf("y.%d", i), Shape: []int{s.BatchSize}, Data: labels})
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(safetensors.Write(f, safetensors.FromWeights(all, nil)), f.Close())
}

// said is the last line that a program prints, or the last of what it complains of.
func said(cmd *exec.Cmd) (line []byte, why string) {
	cmd.Env = append(os.Environ(), fmt.Sprintf("OMP_NUM_THREADS=%d", runtime.NumCPU()))
	out, err := cmd.Output()
	if err == nil {
		lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
		return lines[len(lines)-1], ""
	}
	var ended *exec.ExitError
	if !errors.As(err, &ended) || len(bytes.TrimSpace(ended.Stderr)) == 0 {
		return nil, err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(ended.Stderr)), "\n")
	return nil, lines[len(lines)-1]
}
