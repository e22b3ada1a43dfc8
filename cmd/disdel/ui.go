package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v4"
	"golang.org/x/term"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/report"
)

// ui is how disdel talks: data on stdout, everything else on stderr.
type ui struct {
	in       io.Reader
	out, err io.Writer
	args     []string // as they were typed
	format   string   // table, json or yaml
	quiet    bool
	live     bool              // stderr is a terminal that may be rewritten
	size     func() (int, int) // columns and rows of that terminal; 0: not known
	columns  func() int        // that a table on stdout may have; 0: any number
	exit     func(error) int   // the exit code that an error leads to
	written  *sink
}

// sink remembers that data did not get where it was meant to go: tables are written line by line, and nobody looks at each.
type sink struct {
	to     io.Writer
	failed error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	if s.failed == nil {
		s.failed = err
	}
	return n, err
}

// all is err, or that not all of the data was written.
func (u *ui) all(err error) error {
	if err != nil {
		return err
	}
	return unwritten(u.written.failed)
}

func newUI(in io.Reader, out, err io.Writer) *ui {
	data := &sink{to: out}
	u := &ui{
		in: in, out: data, written: data, err: err, format: "table",
		exit: func(err error) int { return exitCode(context.Background(), err) },
	}
	u.size = func() (int, int) { return terminalSize(err) }
	u.columns = func() int {
		columns, _ := terminalSize(out)
		return columns
	}
	if f, ok := err.(*os.File); ok {
		u.live = term.IsTerminal(int(f.Fd()))
	}
	return u
}

// terminalSize is the columns and rows of a terminal, zeros for everything else.
func terminalSize(w io.Writer) (columns, rows int) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, 0
	}
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}

// say writes a message for the person at the terminal. One that cannot be written, as where nobody reads any more, is dropped.
func (u *ui) say(format string, args ...any) {
	if !u.quiet {
		fmt.Fprintln(u.err, clean(fmt.Sprintf(format, args...)))
	}
}

// show writes v as the user asked: as JSON or YAML, or as the table that print makes.
func (u *ui) show(v any, print func(w io.Writer)) error {
	switch u.format {
	case "json":
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(v); err != nil {
			return err
		}
		_, err := u.out.Write(report.CleanJSON(out.Bytes()))
		return unwritten(err)
	case "yaml":
		return unwritten(u.showYAML(v))
	default:
		var out bytes.Buffer // whatever prints it, no name in it reaches the terminal as a command
		print(&page{Buffer: &out, columns: u.columns()})
		_, err := io.WriteString(u.out, clean(out.String()))
		return unwritten(err)
	}
}

// page is what a table is printed on: it knows how wide it may be.
type page struct {
	*bytes.Buffer
	columns int // 0: any number
}

// unwritten says that what was asked for did not arrive. Who closed the pipe knows that.
func unwritten(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE):
		return reported{errPipe}
	default:
		return &disdel.Error{Kind: disdel.Internal, Op: "write to standard output", Err: plainPathError(err), Hint: "check the place that the output goes to"}
	}
}

// errPipe is the end of a program whose output nobody reads any more, as of disdel history | head -1.
var errPipe = errors.New("nobody reads standard output any more")

// showYAML goes through JSON, so that both have the same field names.
func (u *ui) showYAML(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var tree any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return err
	}
	out, err := yaml.Marshal(tree)
	if err != nil {
		return err
	}
	_, err = io.WriteString(u.out, clean(string(out)))
	return err
}

// reported marks an error that the user has been shown already; it only sets the exit code.
type reported struct{ error }

func (r reported) Unwrap() error { return r.error }

// fail tells what went wrong, why and what to do next.
func (u *ui) fail(err error) {
	var done reported
	if err == nil || errors.As(err, &done) {
		return
	}
	if u.format != "table" {
		u.failDocument(err)
		return
	}
	var faults *disdel.Faults
	if errors.As(err, &faults) {
		jobfile.Render(faults, nil, u.err) // who has the source has shown it already
		return
	}
	var e *disdel.Error
	if !errors.As(err, &e) {
		fmt.Fprintf(u.err, "disdel: error: %s\n", clean(err.Error()))
		return
	}
	fmt.Fprintf(u.err, "disdel: error: %s\n", clean(headline(e)))
	if e.Err != nil {
		fmt.Fprintf(u.err, "disdel:   why: %s\n", clean(e.Err.Error()))
	}
	if e.Hint != "" {
		fmt.Fprintf(u.err, "disdel:  hint: %s\n", clean(e.Hint))
	}
}

func headline(e *disdel.Error) string {
	return strings.TrimSuffix(strings.Join(nonEmpty(e.Op, e.Msg), ": "), ": ")
}

// failDocument is an error where the output is for programs: one line of JSON, the last on stderr.
type failDocument struct {
	Kind     disdel.Kind    `json:"kind"`
	Message  string         `json:"message"`
	Cause    string         `json:"cause,omitempty"`
	Hint     string         `json:"hint,omitempty"`
	Job      disdel.JobID   `json:"job,omitempty"`
	File     string         `json:"file,omitempty"`
	Faults   []disdel.Fault `json:"faults,omitempty"`
	ExitCode int            `json:"exitCode"`
}

func (u *ui) failDocument(err error) {
	d := failDocument{Kind: disdel.KindOf(err), Message: clean(err.Error()), ExitCode: u.exit(err)}
	var faults *disdel.Faults
	var e *disdel.Error
	switch {
	case errors.As(err, &faults):
		d.File, d.Faults, d.Message = faults.File, faults.Faults, problems(len(faults.Faults))
	case errors.As(err, &e):
		d.Message, d.Hint, d.Job = clean(cmp.Or(headline(e), e.Kind.String())), clean(e.Hint), e.Job
		if e.Err != nil {
			d.Cause = clean(e.Err.Error())
		}
	}
	json.NewEncoder(u.err).Encode(d) //nolint:errcheck // there is no better place to tell
}

func problems(n int) string {
	if n == 1 {
		return "1 problem"
	}
	return fmt.Sprintf("%d problems", n)
}

func nonEmpty(list ...string) []string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// clean takes the teeth out of text that came from outside: control characters would reach the terminal.
func clean(s string) string { return report.Clean(s) }

// oneLine is clean for a value within a line, which must not start one of its own.
func oneLine(s string) string { return report.OneLine(s) }
