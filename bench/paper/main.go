// Command paper runs the experiments of the DiSDeL paper on this machine, scaled, and prints lines of the form
//
//	figure NAME VALUE UNIT
//
// with a table for each experiment beside what the paper printed. It writes a page, a picture of each figure
// (figN.svg), and a file with every measurement, which is not part of the repository. The head of the page says what is
// emulated, and how all is scaled. One column judges: whether the paper's figure is beaten, and why a figure cannot be
// compared.
//
// The page is made only of the measurements. An experiment that runs again replaces its own measurements, so that a
// page can be filled in several sittings: bench-paper -only fig2,fig8.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
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

// bench is one sitting: the experiments that it runs, and what earlier ones measured.
type bench struct {
	only       []string      // names of experiments
	again      bool          // run none of them: the page is written anew
	repeat     int           // turns of each environment
	budget     time.Duration // of all experiments, of which each has a share
	share      time.Duration // of the experiment that runs
	size       scale
	tensorflow bool   // run its baselines, too
	jobs       string // part of the names of the pairs that run; "": all do
	python     string // an interpreter with TensorFlow
	cifar      string // folder of CIFAR-10's binary version; "": images like its own are made up
	seed       int64
	out        string
	file       string // of the page

	measurements string // the file of all measurements
	command      []string
	raw          *raw
	data         *sources
}

// experiment is one figure of the paper, or several that the same runs give.
type experiment struct {
	name    string
	also    []string // other names of it: figures that its runs give as well
	title   string
	share   float64 // of the budget
	measure func(*bench, context.Context, *measured) error
	report  func(*page, *measured)
}

// experiments are all of them, in the order in which they run and stand on the page. The shares are those of the time
// that each takes at the same scale; figures that are simulated take none.
func experiments() []experiment {
	return []experiment{
		{"fig1", nil, "time limits of platforms against one container", 0.08, (*bench).figure1, (*page).figure1},
		{"fig2", nil, "fixed-step retries", 0.16, (*bench).figure2, (*page).figure2},
		{"fig3", nil, "memory of an action over batches", 0.03, (*bench).figure3, (*page).figure3},
		{"fig8", []string{"fig7"}, "memory and time of eight pairs", 0.38, (*bench).figure8, (*page).figure8},
		{"fig9", nil, "memory in the phases of a job", 0.06, (*bench).figure9, (*page).figure9},
		{"fig10", nil, "accuracy by epoch", 0.08, (*bench).figure10, (*page).figure10},
		{"fig11", nil, "a pool of twice the memory", 0.06, (*bench).figure11, (*page).figure11},
		{"fig12", nil, "eight jobs at once", 0.15, (*bench).figure12, (*page).figure12},
		{"sim", []string{"fig13"}, "figures 11 to 13 at the paper's size, simulated", 0, nil, (*page).simulated},
	}
}

// find is the name of an experiment by one of its names, "" where there is none.
func find(name string) string {
	for _, e := range experiments() {
		if e.name == name || slices.Contains(e.also, name) {
			return e.name
		}
	}
	return ""
}

func parse(args []string) (*bench, error) {
	b := &bench{command: append([]string{"bench-paper"}, args...)}
	f := flag.NewFlagSet("paper", flag.ContinueOnError)
	var all []string
	for _, e := range experiments() {
		all = append(all, e.name)
	}
	only := f.String("only", strings.Join(all, ","), "experiments to run; the others stay as they were measured before")
	f.BoolVar(&b.again, "again", false, "run nothing: write the page of what was measured before")
	f.IntVar(&b.repeat, "repeat", 3, "turns of each environment, as far as the budget allows")
	f.DurationVar(&b.budget, "budget", 20*time.Minute, "time of all experiments; one whose share is used begins no "+
		"further turn")
	size := f.Float64("scale", defaultScale, "size of the experiments: 1 has the rows of jobs.go, and the platform's "+
		"times divided by 60")
	engine := f.String("engine", "both", "whose baselines: disdel, or both, which adds TensorFlow's")
	f.StringVar(&b.jobs, "jobs", "", "run only those of the eight pairs whose names contain this, such as J7")
	f.StringVar(&b.python, "tensorflow", ".cache/bench/tensorflow/bin/python", "a Python interpreter with TensorFlow")
	f.StringVar(&b.cifar, "cifar", "", "`FOLDER` of CIFAR-10's binary version")
	f.Int64Var(&b.seed, "seed", 1, "of all jobs")
	f.StringVar(&b.out, "out", "docs/bench-paper", "`FOLDER` of the pictures")
	f.StringVar(&b.measurements, "measurements", ".cache/bench-paper/raw.json", "`FILE` of all measurements")
	f.StringVar(&b.file, "page", "docs/explanation/reproduction.md", "`FILE` of the page")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch *engine {
	case "disdel":
	case "both", "tensorflow":
		b.tensorflow = b.hasTensorFlow()
	default:
		return nil, fmt.Errorf("there is no engine %q", *engine)
	}
	if b.size = scale(*size); !(b.size > 0) {
		return nil, errors.New("-scale is to be above 0")
	}
	for name := range strings.SplitSeq(*only, ",") {
		e := find(name)
		if e == "" {
			return nil, fmt.Errorf("there is no experiment %q: %s", name, strings.Join(all, ", "))
		}
		b.only = append(b.only, e)
	}
	return b, nil
}

// hasTensorFlow tells whether there is an interpreter that scripts/paper-deps.sh has given TensorFlow.
func (b *bench) hasTensorFlow() bool {
	_, err := os.Stat(b.python)
	packages := filepath.Join(filepath.Dir(b.python), "../lib/python3*/site-packages")
	found, _ := filepath.Glob(filepath.Join(packages, "tensorflow/__init__.py")) // of a pattern that is none
	if err != nil || len(found) == 0 {
		fmt.Fprintln(os.Stderr, "bench: there is no TensorFlow: only our own baselines run (scripts/paper-deps.sh)")
		return false
	}
	return true
}

// run runs the experiments that were asked for. What was measured is written after each, and an experiment that fails
// keeps no other from running.
func (b *bench) run(ctx context.Context) (err error) {
	for _, dir := range []string{b.out, filepath.Dir(b.measurements)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if b.raw, err = readRaw(b.measurements); err != nil {
		return err
	}
	if err := b.keepsPage(); err != nil {
		return err
	}
	fmt.Printf("# %s\n# %s\n", machine(), b.size)
	for _, e := range experiments() {
		if b.again || !slices.Contains(b.only, e.name) || ctx.Err() != nil {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s, %s\n", e.name, e.title)
		if bad := b.sit(ctx, e); bad != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", e.name, bad))
			continue
		}
		if _, bad := b.write(); bad != nil {
			return errors.Join(err, bad)
		}
	}
	p, bad := b.write()
	for _, line := range p.lines {
		fmt.Println(line)
	}
	return errors.Join(err, bad)
}

// sit runs an experiment and puts what it measured in the place of what was measured of the same before. One that this
// machine cannot run is noted, and no error.
func (b *bench) sit(ctx context.Context, e experiment) error {
	at := b.begin()
	b.share = time.Duration(e.share * float64(b.budget))
	m := &measured{Pools: map[string][]sample{}}
	if e.measure != nil {
		err := e.measure(b, ctx, m)
		if err != nil && disdel.KindOf(err) != disdel.Unavailable {
			return err
		}
		if err != nil {
			at.Not = err.Error()
		}
	}
	m.Data = maps.Clone(b.sources().notes)
	m.Sittings = []sitting{b.end(at)}
	b.raw.put(e.name, m, b.jobs != "" && (e.name == "fig8"))
	return nil
}

// keepsPage returns an error if the page would lose experiments, because there are no earlier measurements of them.
func (b *bench) keepsPage() error {
	all := !b.again && len(b.only) == len(experiments())
	if _, err := os.Stat(b.file); err != nil || all || len(b.raw.Experiments) > 0 {
		return nil
	}
	return fmt.Errorf("%s has no measurements, so %s would lose the experiments that do not run now. Run all "+
		"experiments, or name another page (-page)", b.measurements, b.file)
}

// write writes the page, and all that it is made of.
func (b *bench) write() (*page, error) {
	p := newPage(b.raw, b.out, b.file, b.seed)
	p.compose()
	b.raw.Figures = p.figures
	return p, errors.Join(p.err, b.raw.write(b.measurements), os.WriteFile(b.file, []byte(p.text()), 0o600))
}

// sources are those that all experiments share.
func (b *bench) sources() *sources {
	if b.data == nil {
		b.data = newSources(b.cifar)
	}
	return b.data
}

// turns calls one turn after another of all environments, until there were enough or the experiment's share of the time
// is used up. The first turn is always run, and another only where one of the same length still fits.
func (b *bench) turns(turn func(n int) error) error {
	began := time.Now()
	for n := range b.repeat {
		spent := time.Since(began)
		if n > 0 && spent+spent/time.Duration(n) > b.share {
			break
		}
		if err := turn(n); err != nil {
			return err
		}
	}
	return nil
}
