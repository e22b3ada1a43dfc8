package main

import (
	"bytes"
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
	"github.com/disdel/disdel/internal/report"
)

// ui is how disdel talks: data on stdout, everything else on stderr.
type ui struct {
	in       io.Reader
	out, err io.Writer
	format   string // table, json or yaml
	quiet    bool
	live     bool // stderr is a terminal that may be rewritten
}

func newUI(in io.Reader, out, err io.Writer) *ui {
	u := &ui{in: in, out: out, err: err, format: "table"}
	if f, ok := err.(*os.File); ok {
		u.live = term.IsTerminal(int(f.Fd()))
	}
	return u
}

// say writes a message for the person at the terminal.
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
		return err
	case "yaml":
		return u.showYAML(v)
	default:
		var out bytes.Buffer // whatever prints it, no name in it reaches the terminal as a command
		print(&out)
		_, err := io.WriteString(u.out, clean(out.String()))
		return err
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
func clean(s string) string { return report.Clean(s) }

// oneLine is clean for a value within a line, which must not start one of its own.
func oneLine(s string) string { return report.OneLine(s) }

// table writes aligned columns; a row is a list of cells.
func table(w io.Writer, rows ...[]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = oneLine(c)
		}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	t.Flush()
}
