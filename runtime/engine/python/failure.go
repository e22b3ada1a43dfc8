package python

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/disdel/disdel"
)

const operation = "run program"

// complained is the error that a worker's answer tells of. The user's own line comes first; the whole traceback is in
// the action's log.
func (c *control) complained(report *complaint) error {
	if report.Trace != "" {
		c.process.stderr.say(strings.TrimSpace(report.Trace))
	}
	e := &disdel.Error{Kind: disdel.Invalid, Op: operation, Msg: report.text()}
	switch report.Kind {
	case "memory":
		e.Kind, e.Hint = disdel.OOM, "raise the memory limit, or lower training.batchSize"
		if report.Bytes > 0 {
			e.Msg += fmt.Sprintf(" (it asked for %v more)", report.Bytes)
		}
	case "diverged":
		e.Kind, e.Hint = disdel.Diverged, "lower the learning rate, set training.clipNorm, or check the data's scale"
	case "import":
		if report.Module != "" {
			e.Hint = fmt.Sprintf("add %s to requirements.txt (model.python.requirements)", topModule(report.Module))
		}
	case "changed":
		e.Hint = "submit the job again: the program builds another network than the one that was described"
	case "exit":
		e.Hint = "a program must return, not end its process"
	default: // syntax, user, arguments, unsupported
		e.Hint = "correct the program and submit the job again; the action's log has the whole traceback"
	}
	return e
}

// text is the user's line and what went wrong there.
func (s *complaint) text() string {
	text := cmp.Or(strings.TrimSpace(s.Message), s.Kind)
	if s.Place != "" {
		text = s.Place + ": " + text
	}
	if s.Source != "" {
		text += " in `" + strings.TrimSpace(s.Source) + "`"
	}
	return text
}

func topModule(name string) string {
	name, _, _ = strings.Cut(name, ".")
	return name
}

// hung is the error of a program that did not answer before the deadline.
func (c *control) hung() error {
	text := "the program did not return before the action's deadline"
	if place := c.place(); place != "" {
		text = place + ": " + text
	}
	return &disdel.Error{
		Kind: disdel.Timeout, Op: operation, Msg: text,
		Hint: "look at that line; the action's log has the whole stack. If it only needs longer, raise resources.timeout",
	}
}

// nonsense is the error of a program that wrote to the worker's socket, or closed it and went on.
func (c *control) nonsense(err error) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: operation,
		Msg:  fmt.Sprintf("the program broke the connection to its action: %v", err),
		Hint: "it must not read, write or close file descriptor 3",
	}
}

// The shares of the memory limit from which a process that was killed, or that has crashed, is taken to have lacked
// memory. Libraries crash where they do not expect that an allocation fails.
const (
	killedNear  = 0.85
	crashedNear = 0.95
)

// died is the error of a process that ended without an answer.
func (c *control) died() error {
	status := c.process.status
	tail := c.process.stderr.last()
	place := c.place()
	at := func(text string) string {
		if place != "" {
			return place + ": " + text
		}
		return text
	}
	switch {
	case lacksMemory(tail):
		return c.outOfMemory(at("the program could not get the memory that it asked for"))
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		if c.process.lackedMemory(killedNear) {
			return c.outOfMemory(at("the program was killed: out of memory"))
		}
		return &disdel.Error{
			Kind: disdel.Crashed, Op: operation, Msg: at("the program was killed"),
			Hint: "look at the action's log; something outside of the program sent the signal",
		}
	case status.Signaled() && c.process.lackedMemory(crashedNear):
		return c.outOfMemory(at(fmt.Sprintf("the program crashed (signal %d) at its memory limit", int(status.Signal()))))
	case status.Signaled():
		return &disdel.Error{
			Kind: disdel.Crashed, Op: operation, Msg: at(fmt.Sprintf("the program crashed (signal %d, %v)", int(status.Signal()),
				status.Signal())),
			Hint: "a library of the program is at fault; the action's log has the stack",
		}
	default:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: operation, Msg: at(fmt.Sprintf("the program ended by itself with code %d",
				status.ExitStatus())),
			Hint: "a program must return, not end its process",
		}
	}
}

func (c *control) outOfMemory(text string) error {
	return &disdel.Error{
		Kind: disdel.OOM, Op: operation, Msg: text, Hint: "raise the memory limit, or lower training.batchSize",
	}
}

// lacksMemory tells whether a program's last words are of memory.
func lacksMemory(tail string) bool {
	for _, words := range []string{"std::bad_alloc", "can't allocate memory", "MemoryError", "Cannot allocate memory"} {
		if strings.Contains(tail, words) {
			return true
		}
	}
	return false
}

// frame is a line of a Python stack.
var frame = regexp.MustCompile(`File "([^"]+)", line (\d+)(?:,)? in (\S+)`)

// place is the newest line of the user's files in the stack that the process printed last, "" without one.
func (c *control) place() string {
	tail := c.process.stderr.last()
	if at := strings.LastIndex(tail, "most recent call first"); at >= 0 {
		tail = tail[at:]
	} else {
		return ""
	}
	for _, found := range frame.FindAllStringSubmatch(tail, -1) {
		if name, err := filepath.Rel(c.process.code, found[1]); err == nil && filepath.IsLocal(name) {
			return fmt.Sprintf("%s:%s in %s", name, found[2], found[3])
		}
	}
	return ""
}
