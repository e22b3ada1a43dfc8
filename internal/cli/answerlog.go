package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
)

// answerLine is what a model said of a file, or why it said nothing.
type answerLine struct {
	fileState
	Model           string               `json:"model,omitempty"`
	Classes         []int                `json:"classes,omitempty"`
	Names           []string             `json:"names,omitempty"`
	Labels          []int32              `json:"labels,omitempty"`
	Probabilities   [][]float32          `json:"probabilities,omitempty"`
	Predictions     []float32            `json:"predictions,omitempty"`
	Targets         []float32            `json:"targets,omitempty"`
	Recommendations []disdel.Recommended `json:"recommendations,omitempty"`
	Warnings        []string             `json:"warnings,omitempty"`
	Error           *disdel.Error        `json:"error,omitempty"`
}

// take enters an answer.
func (l *answerLine) take(doc *render.Inference) {
	l.Model, l.Classes, l.Names, l.Labels = doc.Model, doc.Classes, doc.Names, doc.Labels
	l.Probabilities, l.Predictions, l.Targets = doc.Probabilities, doc.Predictions, doc.Targets
	l.Recommendations, l.Warnings = doc.Recommendations, doc.Warnings
}

// text is a line as a person reads it.
func (l *answerLine) text() string {
	name := terminal.OneLine(l.Name)
	switch {
	case l.Error != nil:
		return fmt.Sprintf("%s: %s", name, l.Error)
	case len(l.Classes) == 1 && len(l.Names) == 1:
		return fmt.Sprintf("%s: %s, probability %.4f", name, l.Names[0], l.Probabilities[0][l.Classes[0]])
	case len(l.Classes) == 1:
		return fmt.Sprintf("%s: class %d, probability %.4f", name, l.Classes[0], l.Probabilities[0][l.Classes[0]])
	default:
		return fmt.Sprintf("%s: %s", name, terminal.Counted(
			max(len(l.Classes), len(l.Predictions), len(l.Recommendations)), "answer"))
	}
}

// answerLog is the file that lines are added to, which remembers for which files there is one. It is locked while it is
// open.
type answerLog struct {
	file  *os.File
	end   int64 // of the last whole line
	lines map[string]bool
}

// openAnswerLog opens a file of lines, or begins one. What a process that died left of a line is cut off. It returns
// Conflict where another one adds to the file, and Invalid for a file of something else.
func openAnswerLog(name string) (*answerLog, error) {
	bad := func(kind disdel.Kind, msg string, err error) (*answerLog, error) {
		return nil, &disdel.Error{
			Kind: kind, Op: "write " + name, Msg: msg, Err: err, Hint: "name another file with --output",
		}
	}
	f, err := openLocked(name)
	switch {
	case files.Held(err):
		return bad(disdel.Conflict, "another process is writing it", nil)
	case err != nil:
		return bad(disdel.Invalid, "", files.Plain(err))
	}
	l := &answerLog{file: f, lines: map[string]bool{}}
	if err := l.read(); err != nil {
		f.Close()
		return bad(disdel.Invalid, err.Error(), nil)
	}
	if err := f.Truncate(l.end); err != nil {
		f.Close()
		return bad(disdel.Invalid, "", files.Plain(err))
	}
	return l, nil
}

// openLocked opens and locks a file. One that is new has the permissions that the user gives new files: a lock is for
// its owner alone.
func openLocked(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	f.Close()
	return files.Lock(name)
}

// lineStart is what every line begins with, and what was torn off of one too.
const lineStart = `{"file":"`

// torn tells whether text may be the beginning of a line.
func torn(text string) bool {
	return strings.HasPrefix(text, lineStart) || strings.HasPrefix(lineStart, text)
}

// read goes through the lines that are there.
func (l *answerLog) read() error {
	in := bufio.NewReaderSize(l.file, 1<<16)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if !torn(string(text)) {
				return fmt.Errorf("line %d is no answer for a file", n)
			}
			return nil
		}
		var line answerLine
		if err == nil && (json.Unmarshal(text, &line) != nil || line.Name == "") {
			err = fmt.Errorf("line %d is no answer for a file", n)
		}
		if err != nil {
			return err
		}
		l.end += int64(len(text))
		l.know(&line)
	}
}

// know remembers a line, unless another attempt may come to something else: it failed, and not for its file.
func (l *answerLog) know(line *answerLine) {
	if line.Error == nil || ownFault(line.Error.Kind) {
		l.lines[line.fileState.key()] = true
	}
}

// ownFault tells of what is wrong with a file itself.
func ownFault(k disdel.Kind) bool {
	return k == disdel.Invalid || k == disdel.Corrupt || k == disdel.OverLimit || k == disdel.Diverged
}

// key is what two equal states have in common, with the name as JSON has it.
func (f fileState) key() string {
	return fmt.Sprintf("%d %d %s", f.Size, f.Modified.UnixNano(), string([]rune(f.Name)))
}

func (l *answerLog) has(f fileState) bool { return l.lines[f.key()] }

// add writes a line, whole or not at all.
func (l *answerLog) add(line answerLine) error {
	text, err := json.Marshal(line)
	if err != nil { // what the model says is no number
		line = answerLine{fileState: line.fileState, Model: line.Model, Error: &disdel.Error{
			Kind: disdel.Diverged, Op: "answer", Msg: "the model says no number", Hint: "ask one whose training did not diverge",
		}}
		if text, err = json.Marshal(line); err != nil {
			return err
		}
	}
	text = append(text, '\n')
	if _, err := l.file.WriteAt(text, l.end); err != nil {
		kind := disdel.Internal
		if files.DiskFull(err) {
			kind = disdel.NoSpace
		}
		return &disdel.Error{
			Kind: kind, Op: "write " + l.file.Name(), Err: errors.Join(files.Plain(err), l.file.Truncate(l.end)),
			Hint: "check the disk; files without a line are answered at the next start",
		}
	}
	l.end += int64(len(text))
	l.lines[line.fileState.key()] = true // of this process, whatever came of it: it would come to the same
	return nil
}

func (l *answerLog) close() error { return l.file.Close() }
