package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v4"
	"golang.org/x/term"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
)

// ui is how disdel talks: data on stdout, everything else on stderr.
type ui struct {
	in       io.Reader
	out, err io.Writer
	format   string // table, json or yaml
	quiet    bool
	live     bool // stderr is a terminal that may be rewritten
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
	if err != nil || u.written.failed == nil {
		return err
	}
	e := &disdel.Error{Kind: disdel.Internal, Op: "write output", Err: plainPathError(u.written.failed)}
	if diskFull(u.written.failed) {
		e.Kind = disdel.NoSpace
	}
	return e
}

func newUI(in io.Reader, out, err io.Writer) *ui {
	data := &sink{to: out}
	u := &ui{in: in, out: data, written: data, err: err, format: "table"}
	if f, ok := err.(*os.File); ok {
		u.live = term.IsTerminal(int(f.Fd()))
	}
	return u
}

// say writes a message for the person at the terminal.
func (u *ui) say(format string, args ...any) {
	if !u.quiet {
		fmt.Fprintf(u.err, format+"\n", args...)
	}
}

// show writes v as the user asked: as JSON or YAML, or as the table that print makes.
func (u *ui) show(v any, print func(w io.Writer)) error {
	switch u.format {
	case "json":
		enc := json.NewEncoder(u.out)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "yaml":
		return u.showYAML(v)
	default:
		print(u.out)
		return nil
	}
}

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
	_, err = u.out.Write(out)
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
	fmt.Fprintf(u.err, "disdel: error: %s\n", clean(strings.TrimSuffix(strings.Join(nonEmpty(e.Op, e.Msg), ": "), ": ")))
	if e.Err != nil {
		fmt.Fprintf(u.err, "disdel:   why: %s\n", clean(e.Err.Error()))
	}
	if e.Hint != "" {
		fmt.Fprintf(u.err, "disdel:  hint: %s\n", clean(e.Hint))
	}
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
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// table writes aligned columns; a row is a list of cells.
func table(w io.Writer, rows ...[]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = strings.NewReplacer("\n", " ", "\t", " ").Replace(clean(c))
		}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	t.Flush()
}
