// Command gpu checks and measures the engine for GPUs, on a machine that has one: `make gpu-check`, `make bench-gpu`.
// It trains networks on the GPU, on the processor and with PyTorch, and writes one report: where they differ (-parts
// check), how fast each is (-parts figures), and what several actions come to that share the GPU (-parts sharing).
// Where there is no GPU, or the program was built without the engine, the report says so, and the program ends with 1:
// nothing was checked.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/gpus"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gpu:", err)
		os.Exit(1)
	}
}

// run writes the report, whatever came of it.
func run(args []string, progress io.Writer) error {
	f := flag.NewFlagSet("gpu", flag.ContinueOnError)
	parts := f.String("parts", "check,figures,sharing", "what to do: check, figures, sharing")
	to := f.String("report", "gpu-report.md", "the file that is written")
	python := f.String("python", "python3", "the Python whose PyTorch is compared with, where it has one")
	within := f.Duration("within", 0, "how long to go on with parts and networks that have not begun; 0: to the end")
	worker := f.Bool("worker", false, "be one of those that share a GPU")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *worker {
		return work(pair(backends.Standard(nil))[1], os.Stdin, progress)
	}
	file, err := os.Create(*to) // written as it goes: whatever ends the program, what was found is there
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was closed, or what it lacks has been said
	out := io.MultiWriter(file, progress)
	began := time.Now()
	var until time.Time
	if *within > 0 {
		until = began.Add(*within)
	}
	err = report(out, strings.Split(*parts, ","), *python, until)
	fmt.Fprintf(out, "\n%v in all\n", time.Since(began).Round(time.Second))
	if err != nil {
		fmt.Fprintf(out, "\nfailed: %v\n", err)
	}
	return errors.Join(err, file.Close())
}

// report does all parts, whatever comes of one of them: a machine with a GPU may be there for this once.
func report(out io.Writer, parts []string, python string, until time.Time) error {
	fmt.Fprintf(out, "# The engine for GPUs, %s\n\n", time.Now().UTC().Format(time.RFC3339))
	fmt.Fprintf(out, "%s on %s/%s, %d processors\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	found := gpus.Look(gpus.Here())
	found.Print(out)
	if len(found.Missing) > 0 {
		return &disdel.Error{
			Kind: disdel.Unavailable, Op: "find a GPU", Msg: "there is none to check: " + strings.Join(found.Missing, "; "),
		}
	}
	table := backends.Standard(nil)
	var failed []error
	for _, part := range parts {
		if late(out, part, until) {
			continue
		}
		var err error
		switch part {
		case "check":
			err = errors.Join(promises(out), check(out, pair(table), model.Zoo()),
				againstTorch(out, pair(table)[1], python, peers),
				curves(out, pair(table)), sameBits(out, pair(table)[1]))
		case "figures":
			err = figures(out, pair(table), python, until)
		case "sharing":
			err = sharing(out, pair(table)[1])
		default:
			err = &disdel.Error{Kind: disdel.Invalid, Op: "read -parts", Msg: part, Hint: "check, figures, sharing"}
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// late says in the report that something was not begun, where its time is over; the zero time is never over.
func late(out io.Writer, what string, until time.Time) bool {
	over := !until.IsZero() && time.Now().After(until)
	if over {
		fmt.Fprintf(out, "\nleft out for want of time: %s\n", what)
	}
	return over
}

// pair is the processor's backend and the GPU's.
func pair(t engine.Table) (out [2]engine.Backend) {
	for _, b := range t.Backends {
		switch b.Name() {
		case disdel.BackendNative:
			out[0] = b
		case disdel.BackendCUDA:
			out[1] = b
		}
	}
	return out
}
