// Command paper runs the experiments of the DiSDeL paper on this machine, scaled, and prints lines of the form
//
//	figure NAME VALUE UNIT
//
// with a table for each experiment beside what the paper printed. It writes a page of all of it, and into a folder a
// picture of each figure (figN.svg) and every measurement (raw.json). What is emulated and by how much all is scaled
// stands at the head of the page. It judges nothing but one column: whether the paper's figure is beaten, and
// where it is not comparable, why.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel/service"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the bench, or a process of it: a container of the platform, or a training without any platform.
func run(ctx context.Context, args []string) error {
	if served, err := service.ServeActions(ctx, args); served {
		return err
	}
	if len(args) == 3 && args[1] == bareArgument {
		return trainBare(ctx, args[2])
	}
	b, err := parse(args[1:])
	if err != nil {
		return err
	}
	return b.run(ctx)
}

// bench is one run of the experiments.
type bench struct {
	figures []string
	repeat  int
	budget  time.Duration // of each figure
	shrink  int           // rows of every job are divided by it, to look whether all of it works
	engines []string      // whose baselines are run beside disdel: disdel, tensorflow
	only    string        // part of the names of the pairs that run
	python  string        // an interpreter with TensorFlow
	cifar   string        // folder of CIFAR-10's binary version; "": images like its own are made up
	seed    int64
	out     string
	file    string // of the page
	page    page
	data    *sources
	real    float64 // until all of the real batch had ended, s; 0: it did not run
}

// experiments are the figures, in the order in which they run.
func experiments() []experiment {
	return []experiment{
		{"1", "time limits of platforms against one container", (*bench).figure1},
		{"2", "fixed-step retries", (*bench).figure2},
		{"3", "memory of an action over batches", (*bench).figure3},
		{"8", "memory and time of eight networks (figures 7, 8 and 9)", (*bench).figure8},
		{"10", "accuracy by epoch", (*bench).figure10},
		{"11", "a pool of twice the memory", (*bench).figure11},
		{"12", "eight jobs at once", (*bench).figure12},
		{"sim", "figures 11, 12 and 13 at the paper's size, simulated", (*bench).simulated},
	}
}

// experiment is one figure of the paper, or several that the same runs give.
type experiment struct {
	name, title string
	run         func(*bench, context.Context) error
}

func parse(args []string) (*bench, error) {
	b := &bench{}
	f := flag.NewFlagSet("paper", flag.ContinueOnError)
	var all []string
	for _, e := range experiments() {
		all = append(all, e.name)
	}
	figures := f.String("figures", strings.Join(all, ","), "experiments to run")
	f.IntVar(&b.repeat, "repeat", 3, "turns of each environment")
	f.DurationVar(&b.budget, "budget", 12*time.Minute, "time after which a figure begins no further turn")
	f.IntVar(&b.shrink, "shrink", 1, "divide the rows of all jobs by this, to look whether all of it works")
	engine := f.String("engine", "disdel", "whose baselines: disdel, tensorflow or both")
	f.StringVar(&b.only, "jobs", "", "run only those of the eight pairs whose names contain this, such as J7")
	f.StringVar(&b.python, "tensorflow", ".cache/bench/tensorflow/bin/python", "a Python interpreter with TensorFlow")
	f.StringVar(&b.cifar, "cifar", "", "`FOLDER` of CIFAR-10's binary version")
	f.Int64Var(&b.seed, "seed", 1, "of all jobs")
	f.StringVar(&b.out, "out", "docs/bench-paper", "`FOLDER` of the pictures and raw.json")
	f.StringVar(&b.file, "page", "docs/reproduction.md", "`FILE` of the page")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch *engine {
	case "disdel", "tensorflow":
		b.engines = []string{*engine}
	case "both":
		b.engines = []string{"disdel", "tensorflow"}
	default:
		return nil, fmt.Errorf("there is no engine %q", *engine)
	}
	b.figures = strings.Split(*figures, ",")
	for _, name := range b.figures {
		if !known(name) {
			return nil, fmt.Errorf("there is no figure %q: %s", name, strings.Join(all, ", "))
		}
	}
	return b, nil
}

func known(figure string) bool {
	for _, e := range experiments() {
		if e.name == figure {
			return true
		}
	}
	return false
}

// run runs the figures that were asked for. What was measured is written even where one of them fails.
func (b *bench) run(ctx context.Context) (err error) {
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	b.page.begin(b)
	defer func() {
		if bad := b.write(); err == nil {
			err = bad
		}
	}()
	for _, e := range experiments() {
		for _, name := range b.figures {
			if name != e.name {
				continue
			}
			fmt.Fprintf(os.Stderr, "bench: figure %s, %s\n", e.name, e.title)
			if err := e.run(b, ctx); err != nil {
				return fmt.Errorf("figure %s: %w", e.name, err)
			}
		}
	}
	return nil
}

// write writes the page and every measurement.
func (b *bench) write() error {
	raw, err := json.MarshalIndent(b.page.raw, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.out, "raw.json"), append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.WriteFile(b.file, []byte(b.page.text()), 0o600)
}

// turns calls one turn after another of all environments, until there were enough or the figure's time is used up. The
// first turn is always run.
func (b *bench) turns(turn func(n int) error) (done int, err error) {
	until := time.Now().Add(b.budget)
	for n := range b.repeat {
		if n > 0 && time.Now().After(until) {
			break
		}
		if err := turn(n); err != nil {
			return n, err
		}
		done = n + 1
	}
	return done, nil
}
