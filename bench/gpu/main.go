// Command gpu checks and measures the engine for GPUs, on a machine that has one: `make gpu-check`, `make bench-gpu`.
// It trains networks on the GPU, on the processor and with PyTorch, and writes one report: where they differ (-parts
// check), how fast each is (-parts figures), and what several actions come to that share the GPU (-parts sharing).
// Where there is no GPU, or the program was built without the engine, the report says so, and the program ends with 1:
// nothing was checked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// complaint begins what the program says of why it failed.
const complaint = "gpu: "

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, complaint+withHint(err))
		os.Exit(1)
	}
}

// withHint is what went wrong and what to do about it, where the error says that.
func withHint(err error) string {
	if e, says := errors.AsType[*disdel.Error](err); says && e.Hint != "" {
		return err.Error() + "\nhint: " + e.Hint
	}
	return err.Error()
}

// settings are what the program was told.
type settings struct {
	parts, to, python string
	within, silence   time.Duration
}

// run writes the report, or does what a process that it has started is for.
func run(args []string, progress io.Writer) error {
	var s settings
	f := flag.NewFlagSet("gpu", flag.ContinueOnError)
	f.StringVar(&s.parts, "parts", "check,figures,sharing", "what to do: check, figures, sharing")
	f.StringVar(&s.to, "report", "gpu-report.md", "the file that is written")
	f.StringVar(&s.python, "python", "python3", "the Python whose PyTorch is compared with, where it has one")
	f.DurationVar(&s.within, "within", 0, "how long to go on with what has not begun; 0: to the end")
	f.DurationVar(&s.silence, "silence", 2*time.Minute, "how long a piece of it may print nothing before it is ended")
	piece := f.String("piece", "", "do this piece of the report alone, in this process")
	worker := f.Bool("worker", false, "be one of those that share a GPU")
	if err := f.Parse(args); err != nil {
		return err
	}
	switch {
	case *worker:
		return work(pair(backends.Standard(nil))[1], os.Stdin, progress)
	case *piece != "":
		return do(*piece, progress, s.python)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return write(ctx, s, progress)
}

// write writes the report, whatever came of it.
func write(ctx context.Context, s settings, progress io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	file, err := os.Create(s.to) // written as it goes: whatever ends the program, what was found is there
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was closed, or what it lacks has been said
	out := io.MultiWriter(file, progress)
	began := time.Now()
	fmt.Fprintf(out, "# The engine for GPUs, %s\n\n", began.UTC().Format(time.RFC3339))
	fmt.Fprintf(out, "%s on %s/%s, %d processors\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	err = s.reporter(self, out, began).report(ctx, strings.Split(s.parts, ","))
	fmt.Fprintf(out, "\n%v in all\n", time.Since(began).Round(time.Second))
	if err != nil {
		fmt.Fprintf(out, "\nfailed: %v\n", err)
	}
	return errors.Join(err, file.Close())
}

// reporter makes a report by this program's file, as the settings say.
func (s settings) reporter(self string, out io.Writer, began time.Time) reporter {
	r := reporter{out: out, silence: s.silence, command: func(piece string) *exec.Cmd {
		return exec.Command(self, "-piece", piece, "-python", s.python)
	}}
	if s.within > 0 {
		r.until = began.Add(s.within)
	}
	return r
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
