package main

import (
	"bytes"
	"encoding/binary"
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

// againstTorch makes a step of networks on the GPU and with PyTorch, from the same weights and on the same batch. It
// leaves out dropout, because each library draws its own. Where a Python has no PyTorch the report says so: that is no
// failure.
func againstTorch(out io.Writer, b engine.Backend, python string, networks []string) error {
	fmt.Fprintf(out, "\n## A step of networks, batch %d: PyTorch, GPU\n\n", checkBatch)
	if _, why := said(exec.Command(python, "-c", "import torch")); why != "" {
		fmt.Fprintf(out, "left out: %s has no PyTorch (%s)\n", python, why)
		return nil
	}
	bound := bounds[0] // of float32
	fmt.Fprintf(out, "both in %s; alike are losses that are no more than %v times 1 + the loss apart, and "+
		"gradients no more "+
		"than %v of their length, of networks of more than %d convolutions %v\n\n", bound.precision, bound.loss, apart, deep,
		deepApart)
	wrong := 0
	for _, name := range networks {
		s, err := undropped(name)
		if err != nil {
			return err
		}
		got, err := step(b, s, random(s.Graph, s.BatchSize, 0))
		var want stepped
		on := "PyTorch"
		if err == nil {
			want, on, err = torchStep(python, name, s)
		}
		if err != nil { // the others are compared all the same
			fmt.Fprintf(out, "- %s %v, %s: FAILED: %v\n", name, []int(s.Graph.Input()), on, err)
			wrong++
			continue
		}
		c, verdict := compare(want, got), "ok"
		if !c.within(s.Graph, bound.loss, false) {
			verdict = "APART"
			wrong++
		}
		fmt.Fprintf(out, "- %s %v, %s: %v: %s\n", name, []int(s.Graph.Input()), on, c, verdict)
	}
	if wrong > 0 {
		return &disdel.Error{
			Kind: disdel.Internal, Op: "check", Msg: fmt.Sprintf("%d networks differ from PyTorch's or failed", wrong),
		}
	}
	return nil
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

// torchStep has PyTorch make a step, and says which PyTorch on what.
func torchStep(python, name string, s engine.Spec) (out stepped, on string, err error) {
	folder, err := os.MkdirTemp("", "step")
	if err != nil {
		return out, "", err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // it is in the system's temporary folder
	file, gradient := filepath.Join(folder, "arrays.safetensors"), filepath.Join(folder, "gradient")
	if err := writeArrays(file, s); err != nil {
		return out, "", err
	}
	in := s.Graph.Input()
	line, why := said(exec.Command(python, "bench/peer/torch_step.py", "--network", name,
		"--input", fmt.Sprintf("%dx%dx%d", in[0], in[1], in[2]), "--classes", fmt.Sprint(s.Graph.Output().Len()),
		"--arrays", file, "--gradient", gradient))
	if why != "" {
		return out, "", &disdel.Error{Kind: disdel.Internal, Op: "train with PyTorch", Msg: name + ": " + why}
	}
	var told struct {
		Loss          float64
		Torch, Device string
	}
	if err := json.Unmarshal(line, &told); err != nil {
		return out, "", err
	}
	data, err := os.ReadFile(gradient)
	if err != nil {
		return out, "", err
	}
	out = stepped{told.Loss, make([]float32, len(data)/4)}
	_, err = binary.Decode(data, binary.LittleEndian, out.gradient)
	return out, fmt.Sprintf("PyTorch %s on %s", told.Torch, told.Device), err
}

// writeArrays writes the first weights and the batch of a check.
func writeArrays(file string, s engine.Spec) error {
	b := random(s.Graph, s.BatchSize, 0)
	labels := make([]float32, len(b.Target.Classes))
	for k, y := range b.Target.Classes {
		labels[k] = float32(y)
	}
	all := append(engine.InitWeights(s.Graph, first),
		disdel.Tensor{Name: "x", Shape: append([]int{s.BatchSize}, s.Graph.Input()...), Data: b.Input.Values},
		disdel.Tensor{Name: "y", Shape: []int{s.BatchSize}, Data: labels})
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
