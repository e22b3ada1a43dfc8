package terminal

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/itchyny/gojq"
	"golang.org/x/term"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/files"
)

// UI prints for one command: data to standard output, everything else to standard error.
type UI struct {
	In       io.Reader
	Out, Err io.Writer
	Args     []string // as they were typed
	Format   string   // table, json, jsonl, yaml or name
	Quiet    bool
	Terminal bool              // stderr is a terminal
	Live     bool              // stderr is a terminal that may be rewritten
	Size     func() (int, int) // columns and rows of that terminal; 0: not known
	Columns  func() int        // that a table on stdout may have; 0: any number
	Place    addresses.Place   // that printed commands need; of a job's record it may know more
	Exit     func(error) int   // the exit code that an error leads to
	written  *sink
	filter   *gojq.Code // of --jq; nil: none

	Scripted bool // In has the answers of a person although it is no terminal, as in tests
}

// sink remembers a failed write, because tables are written line by line without a check of each.
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

// All is err, or the error of a failed write of data.
func (u *UI) All(err error) error {
	if err != nil {
		return err
	}
	return Unwritten(u.written.failed)
}

// New is a UI on three streams.
func New(in io.Reader, out, err io.Writer) *UI {
	data := &sink{to: out}
	u := &UI{
		In: in, Out: data, written: data, Err: err, Format: "table",
		Exit: func(err error) int { return ExitCode(context.Background(), err) },
	}
	u.Size = func() (int, int) { return size(err) }
	u.Columns = func() int {
		columns, _ := size(out)
		return columns
	}
	if f, ok := err.(*os.File); ok {
		u.Terminal = term.IsTerminal(int(f.Fd()))
		u.Live = u.Terminal
	}
	return u
}

// Interactive says whether a person can answer a question: input and messages are a terminal's. --plain, --quiet and
// TERM=dumb change nothing about that.
func (u *UI) Interactive() bool {
	in, ok := u.In.(*os.File)
	return u.Scripted || ok && u.Terminal && term.IsTerminal(int(in.Fd()))
}

// FullScreen takes over the whole terminal and delivers each key at once. restore ends that. It returns Invalid if
// there is no terminal.
func (u *UI) FullScreen() (restore func(), err error) {
	in, ok := u.In.(*os.File)
	if !ok || !u.Live || !u.Interactive() {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "take the terminal", Msg: "there is none that can be rewritten",
			Hint: "disdel jobs follow JOB shows a job line by line",
		}
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Internal, Op: "take the terminal", Err: err}
	}
	io.WriteString(u.Err, "\x1b[?1049h\x1b[?25l") //nolint:errcheck // who cannot be written to sees nothing
	return func() {
		io.WriteString(u.Err, "\x1b[?25h\x1b[?1049l") //nolint:errcheck // the same
		term.Restore(int(in.Fd()), before)            //nolint:errcheck // there is nothing else to be done
	}, nil
}

// size is the columns and rows of a terminal, zeros for anything else.
func size(w io.Writer) (columns, rows int) {
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

// Say writes a message for the person at the terminal. Commands in it get the flags of the place. Say ignores failed
// writes, for example if nobody reads any more.
func (u *UI) Say(format string, args ...any) {
	if !u.Quiet {
		fmt.Fprintln(u.Err, u.shown(fmt.Sprintf(format, args...)))
	}
}

// Ask writes a question. --quiet does not hide it, because its answer is waited for.
func (u *UI) Ask(format string, args ...any) {
	io.WriteString(u.Err, u.shown(fmt.Sprintf(format, args...))) //nolint:errcheck // as of Say
}

// Tell is Say for several lines.
func (u *UI) Tell(print func(w io.Writer)) {
	if !u.Quiet {
		var out bytes.Buffer
		print(&out)
		io.WriteString(u.Err, u.shown(out.String())) //nolint:errcheck // as of Say
	}
}

// shown prepares a text for people: without control characters, and with the flags of the place in every command of
// disdel.
func (u *UI) shown(text string) string { return Clean(u.Place.Complete(text)) }

// Faults prints the faults of a job file, with the lines of source if that is not nil.
func (u *UI) Faults(all *disdel.Faults, source []byte) {
	PrintFaults(u.complete(all), source, u.Err)
}

// complete gives commands in faults the flags of the place.
func (u *UI) complete(all *disdel.Faults) *disdel.Faults {
	out := *all
	out.Faults = slices.Clone(all.Faults)
	for i := range out.Faults {
		f := &out.Faults[i]
		f.Msg, f.Hint = u.Place.Complete(f.Msg), u.Place.Complete(f.Hint)
	}
	return &out
}

// Page is a buffer for tables that knows its width.
type Page struct {
	*bytes.Buffer
	Columns int // 0: any number
}

// Unwritten explains a failed write of data. A closed pipe needs no explanation.
func Unwritten(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE):
		return Reported(ErrPipe)
	default:
		return &disdel.Error{
			Kind: disdel.Internal, Op: "write to standard output", Err: files.Plain(err),
			Hint: "check the place that the output goes to",
		}
	}
}

// ErrPipe means that nobody reads standard output any more, as in disdel jobs | head -1.
var ErrPipe = errors.New("nobody reads standard output any more")

// reported marks an error that the user has been shown already; it only sets the exit code.
type reported struct{ error }

func (r reported) Unwrap() error { return r.error }

// Reported marks an error that the user has been shown already.
func Reported(err error) error { return reported{err} }

// Fail prints what failed, why, and what to do next.
func (u *UI) Fail(err error) {
	var done reported
	if err == nil || errors.As(err, &done) {
		return
	}
	if u.Format != "table" && u.Format != "name" {
		u.failDocument(err)
		return
	}
	var faults *disdel.Faults
	if errors.As(err, &faults) {
		u.Faults(faults, nil) // who has the source has shown it already
		return
	}
	var e *disdel.Error
	if !errors.As(err, &e) {
		fmt.Fprintf(u.Err, "disdel: error: %s\n", u.shown(err.Error()))
		return
	}
	fmt.Fprintf(u.Err, "disdel: error: %s\n", u.shown(Headline(e)))
	if e.Err != nil {
		fmt.Fprintf(u.Err, "disdel:   why: %s\n", u.shown(e.Err.Error()))
	}
	if e.Hint != "" {
		fmt.Fprintf(u.Err, "disdel:  hint: %s\n", u.shown(e.Hint))
	}
}

// Command is a command line that works at this program's place.
func (u *UI) Command(words ...string) string { return u.Place.Command(Program(), words...) }

// Confirm asks a question whose answer y or yes allows something. Off a terminal, and with yes, it does not ask and
// returns nil. It returns Canceled for any other answer.
func (u *UI) Confirm(question string, yes bool) error {
	if yes || !u.Interactive() {
		return nil
	}
	u.Ask("%s [y/N] ", question)
	answer, _ := bufio.NewReader(u.In).ReadString('\n') // the end of input is no yes
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Canceled, Msg: "nothing was deleted", Hint: "answer y, or give --yes to be asked nothing",
	}
}

// Headline is an error's operation and message, without its cause.
func Headline(e *disdel.Error) string {
	return strings.TrimSuffix(strings.Join(NonEmpty(e.Op, e.Msg), ": "), ": ")
}

// failDocument is an error for programs: one line of JSON, the last on standard error.
type failDocument struct {
	Kind     disdel.Kind    `json:"kind"`
	Code     disdel.Code    `json:"code,omitempty"`
	Message  string         `json:"message"`
	Cause    string         `json:"cause,omitempty"`
	Hint     string         `json:"hint,omitempty"`
	Changes  [][]string     `json:"changes,omitempty"` // those of the hint, as --set takes them
	Job      disdel.JobID   `json:"job,omitempty"`
	File     string         `json:"file,omitempty"`
	Faults   []disdel.Fault `json:"faults,omitempty"`
	ExitCode int            `json:"exitCode"`
}

func (u *UI) failDocument(err error) {
	d := failDocument{Kind: disdel.KindOf(err), Message: u.shown(err.Error()), ExitCode: u.Exit(err)}
	var faults *disdel.Faults
	var e *disdel.Error
	switch {
	case errors.As(err, &faults):
		d.File, d.Faults, d.Message = faults.File, u.complete(faults).Faults, disdel.Counted(len(faults.Faults), "problem")
	case errors.As(err, &e):
		d.Message, d.Hint, d.Job = u.shown(cmp.Or(Headline(e), e.Kind.String())), u.shown(e.Hint), e.Job
		d.Code, d.Changes = e.Code, e.Changes
		if e.Err != nil {
			d.Cause = u.shown(e.Err.Error())
		}
	}
	json.NewEncoder(u.Err).Encode(d) //nolint:errcheck // there is no better place to tell
}

// NonEmpty is the texts that are not empty.
func NonEmpty(list ...string) []string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Expect reads the output format from the global flags before they are parsed, because parser errors use it too.
func (u *UI) Expect(globals []string) {
	u.Take(os.Getenv("DISDEL_OUTPUT"))
	for i, flag := range globals {
		name, value, inline := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if !inline && i+1 < len(globals) {
			value = globals[i+1]
		}
		switch name {
		case "o", "output":
			u.Take(value)
		case "jq":
			u.Format = "json"
		}
	}
}
