package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/disdel/disdel"
)

// ErrInterrupted is the cause of a context that Ctrl-C or a signal ended.
var ErrInterrupted = errors.New("interrupted")

// ErrHungUp is the cause of a context that a closed terminal (SIGHUP) ended. It is an ErrInterrupted.
var ErrHungUp = fmt.Errorf("%w: its terminal was closed", ErrInterrupted)

// ErrRule means that the result of a job that succeeded meets a rule of --fail-if.
var ErrRule = errors.New("a rule of --fail-if is met")

// ErrDiffers means that a deployment differs from its manifest.
var ErrDiffers = errors.New("the deployment differs from the manifest")

// ErrPaused means that the job was paused, which is neither a success nor a failure.
var ErrPaused = errors.New("the job is paused")

// interrupts counts the Ctrl-C and SIGTERM that this process got.
type interrupts struct {
	mu    sync.Mutex
	count int           // guarded by mu
	next  chan struct{} // guarded by mu: the next interrupt closes it; nil: the second one ends the process
}

type interruptsKey struct{}

// interrupted notes an interrupt; last says that it must end the process.
func (i *interrupts) interrupted() (last bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.count++; i.count == 1 {
		return false
	}
	if i.next == nil {
		return true
	}
	close(i.next)
	i.next = nil
	return false
}

// NextInterrupt returns a channel that the next Ctrl-C or SIGTERM closes. That interrupt does not end the process. ctx
// is the context of Interruptible; with another one the channel is nil.
func NextInterrupt(ctx context.Context) <-chan struct{} {
	i, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.next == nil {
		i.next = make(chan struct{})
	}
	return i.next
}

// Interruptible returns a context that the first Ctrl-C, SIGTERM or SIGHUP ends, with ErrInterrupted or ErrHungUp as
// the cause. A second Ctrl-C or SIGTERM ends the process at once. A second SIGHUP does not: a closed terminal may send
// several. A program that ignores SIGHUP, as under nohup, goes on without its terminal. A closed pipe does not end a
// running job: writes to it fail and are ignored.
func Interruptible() (context.Context, func()) {
	i := &interrupts{}
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), interruptsKey{}, i))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-pipes:
			case s := <-signals:
				switch {
				case s == syscall.SIGHUP:
					cancel(ErrHungUp)
				case i.interrupted():
					os.Exit(ExitInterrupted)
				default:
					cancel(ErrInterrupted)
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(done)
		cancel(nil)
	}
}

// Exit codes, as `disdel help exit-codes` prints them. 1 to 3 agree with wsk.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitUnreachable = 3
	ExitDenied      = 4
	ExitRefused     = 5
	ExitConflict    = 6
	ExitOOM         = 7
	ExitCanceled    = 8
	ExitDiffers     = 8 // of deploy status and deploy preview
	ExitPaused      = 9
	ExitRule        = 10
	ExitTimeout     = 124
	ExitInterrupted = 130
	ExitPipe        = 141
)

// exitCode is one exit code as `disdel help exit-codes` shows it.
type exitCode struct {
	Code    int    `json:"code"`
	Meaning string `json:"meaning"`
}

// ExitCodes are all exit codes.
var ExitCodes = []exitCode{
	{ExitOK, "success"},
	{ExitFailed, "the job failed, or a general error"},
	{ExitUsage, "usage, or an invalid file"},
	{ExitUnreachable, "a back end cannot be reached"},
	{ExitDenied, "not authenticated or not authorised"},
	{ExitRefused, "refused: the estimate is over a limit, a quota or the budget is used up, or a disk is full"},
	{ExitConflict, "conflict: somebody else is at it, as of a job that runs already, or what it builds on has changed"},
	{ExitOOM, "the job ran out of memory"},
	{ExitCanceled, "somebody cancelled the job; of deploy status and deploy preview: something differs"},
	{ExitPaused, "the job is paused: a resume goes on with it"},
	{ExitRule, "the job succeeded, and its result meets a rule of --fail-if"},
	{ExitTimeout, "timed out, or past the deadline"},
	{ExitInterrupted, "interrupted by Ctrl-C, SIGTERM or SIGHUP; a job of a server or in the background goes on"},
	{ExitPipe, "nobody reads standard output any more"},
}

// PrintExitCodes writes the list of exit codes.
func PrintExitCodes(w io.Writer) {
	for _, c := range ExitCodes {
		fmt.Fprintf(w, "%3d  %s\n", c.Code, c.Meaning)
	}
}

var kindExit = map[disdel.Kind]int{
	disdel.Invalid: ExitUsage, disdel.Unavailable: ExitUnreachable, disdel.Denied: ExitDenied,
	disdel.OverLimit: ExitRefused, disdel.NoSpace: ExitRefused, disdel.Conflict: ExitConflict, disdel.OOM: ExitOOM,
	disdel.Canceled: ExitCanceled, disdel.Timeout: ExitTimeout,
}

// KindOf is the kind of error of an exit code, or otherwise if the code has none.
func KindOf(code int, otherwise disdel.Kind) disdel.Kind {
	kind := otherwise
	for k, c := range kindExit {
		if c == code {
			kind = k
		}
	}
	return kind
}

// ExitCode is the exit code for an error. ctx says whether the program was interrupted.
func ExitCode(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(context.Cause(ctx), ErrInterrupted):
		return ExitInterrupted
	case errors.Is(err, ErrPipe):
		return ExitPipe
	case errors.Is(err, ErrPaused):
		return ExitPaused
	case errors.Is(err, ErrDiffers):
		return ExitDiffers
	case errors.Is(err, ErrRule):
		return ExitRule
	}
	if code, ok := kindExit[disdel.KindOf(err)]; ok {
		return code
	}
	return ExitFailed
}

// Shape of a printed source line: its width, and how much of it stands left of a place far to the right, in characters.
const (
	lineWidth   = 120
	leftOfPlace = 40
)

// PrintFaults prints faults for people: FILE:LINE:COLUMN, path, message and hint, then the line of the source with a
// caret under the wrong key or value, and at the end the number of problems. source is the text of the job file; nil
// leaves out its lines. A fault without a line belongs to a --set if source is given, and to the whole file otherwise.
// Control characters of the source are escaped. PrintFaults ignores errors of w.
func PrintFaults(faults *disdel.Faults, source []byte, w io.Writer) {
	lines := SourceLines(source)
	for _, f := range faults.Faults {
		fmt.Fprintln(w, faultLine(faults.File, f, source != nil))
		if f.Line > 0 && f.Line <= len(lines) {
			fmt.Fprint(w, snippet(lines[f.Line-1], f.Line, f.Column))
		}
	}
	fmt.Fprintln(w, disdel.Counted(len(faults.Faults), "problem"))
}

// SourceLines splits a text at every line end that YAML knows.
func SourceLines(source []byte) []string {
	text := strings.TrimPrefix(string(source), "\ufeff")
	if text == "" {
		return nil
	}
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
}

// faultLine is the line by which editors and people find the place.
func faultLine(file string, f disdel.Fault, job bool) string {
	where := file
	switch {
	case f.Line > 0:
		where = fmt.Sprintf("%s:%d:%d", file, f.Line, f.Column)
	case job && file != "":
		where = "--set"
	}
	var parts []string
	for _, p := range []string{where, f.Path, f.Msg} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	line := strings.Join(parts, ": ")
	if f.Hint != "" {
		line += "; " + f.Hint
	}
	return Escape(strings.ReplaceAll(line, "\n", " "))
}

// snippet is one line of the source with carets below. A place behind the end of the line gets its caret there.
func snippet(line string, number, column int) string {
	chars := []rune(strings.ToValidUTF8(line, "\ufffd"))
	start := min(max(column-1, 0), len(chars))
	end := start + tokenLength(chars[start:])
	from, before := 0, ""
	if start > lineWidth-leftOfPlace {
		from, before = start-leftOfPlace, "..."
	}
	to, after := len(chars), ""
	if to > from+lineWidth {
		to, after = from+lineWidth, "..."
	}
	show := func(part []rune) string { return Escape(strings.ReplaceAll(string(part), "\t", " ")) }
	left, middle := before+show(chars[from:start]), show(chars[start:min(end, to)])
	gutter := fmt.Sprintf("%4d | ", number)
	return gutter + left + middle + show(chars[min(end, to):to]) + after + "\n" +
		strings.Repeat(" ", len(gutter)-2) + "| " + strings.Repeat(" ", width(left)) +
		strings.Repeat("^", max(1, width(middle))) + "\n"
}

// width counts characters. Wide characters count as one column.
func width(s string) int { return utf8.RuneCountInString(s) }

// tokenLength is the length of the key or value that text starts with, in characters.
func tokenLength(text []rune) int {
	if len(text) == 0 {
		return 0
	}
	if q := text[0]; q == '"' || q == '\'' {
		for i := 1; i < len(text); i++ {
			if text[i] == q {
				return i + 1
			}
		}
		return len(text)
	}
	n := 0
	for n < len(text) && !endsToken(text[n:]) {
		n++
	}
	return len([]rune(strings.TrimRight(string(text[:n]), " \t")))
}

// endsToken says whether a plain key or value ends before text: at a colon or comment, or at a mark of a flow.
func endsToken(text []rune) bool {
	next := ' '
	if len(text) > 1 {
		next = text[1]
	}
	switch text[0] {
	case ',', '[', ']', '{', '}':
		return true
	case ':':
		return next == ' '
	case ' ', '\t':
		return next == '#'
	default:
		return false
	}
}
