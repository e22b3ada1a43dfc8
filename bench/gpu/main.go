// Command gpu checks and measures the engine for GPUs, on a machine that has one: `make gpu-check`, `make bench-gpu`.
// It trains networks on the GPU, on the processor and with PyTorch, and writes one report: where they differ (-parts
// check), how fast each is (-parts figures), and what several actions come to that share the GPU (-parts sharing).
// Where there is no GPU, or the program was built without the engine, the report says so, and the program ends with 1:
// nothing was checked.
package main

import (
	"bytes"
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
	worker := f.Bool("worker", false, "be one of those that share a GPU")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *worker {
		return work(pair(backends.Standard(nil))[1], os.Stdin, progress)
	}
	var text bytes.Buffer
	out := io.MultiWriter(&text, progress)
	began := time.Now()
	err := report(out, strings.Split(*parts, ","), *python)
	fmt.Fprintf(out, "\n%v in all\n", time.Since(began).Round(time.Second))
	if err != nil {
		fmt.Fprintf(out, "\nfailed: %v\n", err)
	}
	if failed := os.WriteFile(*to, text.Bytes(), 0o644); failed != nil {
		return failed
	}
	return err
}

func report(out io.Writer, parts []string, python string) error {
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
	for _, part := range parts {
		var err error
		switch part {
		case "check":
			err = errors.Join(promises(out), check(out, pair(table), model.Zoo()),
				againstTorch(out, pair(table)[1], python, peers),
				curves(out, pair(table)), sameBits(out, pair(table)[1]))
		case "figures":
			err = figures(out, pair(table), python)
		case "sharing":
			err = sharing(out, pair(table)[1])
		default:
			err = &disdel.Error{Kind: disdel.Invalid, Op: "read -parts", Msg: part, Hint: "check, figures, sharing"}
		}
		if err != nil {
			return err
		}
	}
	return nil
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
