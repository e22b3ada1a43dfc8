package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// sharers is how many actions share a GPU, each a process of its own as containers are.
const sharers = 4

// What a worker prints: that its first step has ended, and how many samples a second it trained on after it was told to
// go on.
const (
	firstStep = "first"
	ratedAt   = "rate "
)

// lenet is what sharing is measured with.
func lenet() (engine.Spec, error) {
	g, err := model.Build(measured[0].network)
	return engine.Spec{
		Graph: g, BatchSize: measured[0].batch, Training: true,
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.01, Momentum: 0.9}},
	}, err
}

// work is a worker: it makes one step, says so, waits for a line, and then trains for three seconds.
func work(b engine.Backend, in io.Reader, out io.Writer) error {
	s, err := lenet()
	if err != nil {
		return err
	}
	e, err := b.New(s)
	if err != nil {
		return err
	}
	defer e.Close() //nolint:errcheck // the process ends
	if err := e.Init(disdel.Init{Seed: 1}); err != nil {
		return err
	}
	step := stepsOn(e, random(s.Graph, s.BatchSize, 1))
	if err := step(); err != nil {
		return err
	}
	fmt.Fprintln(out, firstStep)
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	n, from := 0, time.Now()
	for time.Since(from) < 3*time.Second {
		if err := step(); err != nil {
			return err
		}
		n += s.BatchSize
	}
	fmt.Fprintf(out, "%s%.0f\n", ratedAt, float64(n)/time.Since(from).Seconds())
	return nil
}

// sharing measures one action alone, then several on one GPU, each in a process of its own that starts cold.
func sharing(out io.Writer, b engine.Backend) error {
	fmt.Fprintf(out, "\n## LeNet-5, batch %d: one action, and %d that share a GPU\n\n", measured[0].batch, sharers)
	alone, err := together(1)
	if err != nil {
		return err
	}
	before := usedOfGPU()
	all, err := together(sharers)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "figure lenet5/512/alone %.0f samples/s\n", alone.rate)
	fmt.Fprintf(out, "figure lenet5/512/start %.2f s, from the start of the process to the end of its first step\n",
		alone.first.Seconds())
	fmt.Fprintf(out, "figure lenet5/512/shared %.0f samples/s of %d together\n", all.rate, sharers)
	fmt.Fprintf(out, "figure lenet5/512/shared-ratio %.2f x\n", all.rate/alone.rate)
	s, err := lenet()
	if err != nil {
		return err
	}
	f, err := b.Footprint(s)
	if err != nil {
		return err
	}
	if all.used > before && before > 0 {
		each := float64(all.used-before) / sharers
		fmt.Fprintf(out, "figure lenet5/512/device %.0f bytes an action, %.3f of the footprint with its guess of a context\n",
			each, each/float64(f.In(footprint.Device)))
	} else {
		fmt.Fprintln(out, "no figure of the device's memory: nvidia-smi tells none")
	}
	return nil
}

// shared is what several workers came to together.
type shared struct {
	rate  float64
	first time.Duration // until the last one's first step
	used  disdel.Bytes  // of the GPU's memory, once all have made a step; 0: not known
}

// together runs so many workers at once. They go on together once all of them have made a step.
func together(n int) (s shared, err error) {
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	began := time.Now()
	workers := make([]*worker, n)
	for i := range workers {
		if workers[i], err = start(exec.Command(self, "-worker")); err != nil {
			return s, err
		}
		defer workers[i].end()
	}
	for _, w := range workers {
		if _, err := w.hear(firstStep); err != nil {
			return s, err
		}
	}
	s.first, s.used = time.Since(began), usedOfGPU()
	for _, w := range workers {
		if _, err := fmt.Fprintln(w.in, "go"); err != nil {
			return s, err
		}
	}
	for _, w := range workers {
		text, err := w.hear(ratedAt)
		if err != nil {
			return s, err
		}
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return s, err
		}
		s.rate += rate
	}
	return s, nil
}

// worker is a process that trains.
type worker struct {
	process *exec.Cmd
	in      io.WriteCloser
	lines   *bufio.Scanner
	said    strings.Builder
}

func start(cmd *exec.Cmd) (w *worker, err error) {
	w = &worker{process: cmd}
	cmd.Stderr = &w.said
	if w.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.lines = bufio.NewScanner(out)
	return w, cmd.Start()
}

// hear is what follows a word at the start of the next line.
func (w *worker) hear(word string) (string, error) {
	if !w.lines.Scan() || !strings.HasPrefix(w.lines.Text(), word) {
		w.end()
		return "", &disdel.Error{
			Kind: disdel.Crashed, Op: "measure sharing", Msg: fmt.Sprintf("a worker said %q: %s", w.lines.Text(),
				strings.TrimSpace(w.said.String())),
		}
	}
	return strings.TrimPrefix(w.lines.Text(), word), nil
}

// end waits for the process, which ends once nobody speaks to it.
func (w *worker) end() {
	_ = w.in.Close()
	_ = w.process.Wait() // what it had to say is heard, or w.said
}

// usedOfGPU is the memory in use of the first GPU, by everybody; 0 where nvidia-smi is not there.
func usedOfGPU() disdel.Bytes {
	out, err := exec.Command("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits").Output()
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return 0
	}
	return disdel.Bytes(n) * disdel.MB
}
