package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
)

// How often a folder is looked at, for how long a file has to be as it is before it is taken to be whole, and the
// pauses while nothing answers.
const (
	watchEvery   = 500 * time.Millisecond
	settledAfter = time.Second
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// watchedEndings are the names of files that a model can be asked about.
var watchedEndings = []string{
	".json", ".npy", ".csv", ".tsv", ".parquet", ".libsvm", ".idx", ".png", ".jpg",
	".jpeg",
}

// watching classifies the files of a folder as they arrive. A file with another size or time is a new file. A file is
// classified after it has not changed for a while. The output file alone remembers what is done.
type watching struct {
	ui                    *ui
	model, folder, output string
	every, settled        time.Duration

	answered int // files
	failed   int // of them, that could not be

	seen map[string]sighting // by name, of files that are not answered
	log  *answerLog
}

// sighting is the state of a file, and since when it has it.
type sighting struct {
	fileState
	since time.Time
}

// fileState identifies one state of a file.
type fileState struct {
	Name     string    `json:"file"`
	Size     int64     `json:"sizeBytes"`
	Modified time.Time `json:"modified"`
}

// watchDocument is what `infer --watch` prints at its end with -o json.
type watchDocument struct {
	Output   string `json:"output"`
	Answered int    `json:"answered"`
	Failed   int    `json:"failed"`
}

// newWatching reads the flags of infer.
func newWatching(c *cli.Context, u *ui) (*watching, error) {
	w := &watching{
		ui: u, model: c.Args().First(), folder: c.String("watch"), output: fileOf(c), every: watchEvery,
		settled: settledAfter,
	}
	if w.output == "" {
		return nil, missingFlag(c, "--watch "+w.folder+" --file FILE.jsonl")
	}
	if !strings.EqualFold(filepath.Ext(w.output), ".jsonl") {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "watch " + w.folder, Msg: w.output + " is no file of lines of JSON",
			Hint: "name one that ends in .jsonl",
		}
	}
	return w, nil
}

// run watches until ctx ends.
func (w *watching) run(ctx context.Context, models client.Models) (err error) {
	if info, err := os.Stat(w.folder); err != nil || !info.IsDir() {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "watch " + w.folder, Msg: "it is no folder", Hint: "make it first: mkdir " + w.folder,
		}
	}
	if _, err := models.Get(ctx, w.model); err != nil {
		return err
	}
	if w.log, err = openAnswerLog(w.output); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.log.close()) }()
	w.seen = map[string]sighting{}
	w.ui.Say("watching %s; Ctrl-C ends it", w.folder)
	if err := w.watch(ctx, models); err != nil {
		return err
	}
	doc := watchDocument{w.output, w.answered, w.failed}
	return w.ui.Show(doc, func(out io.Writer) {
		fmt.Fprintf(out, "%s: %s answered, %d of them with an error\n", doc.Output, disdel.Counted(doc.Answered, "file"),
			doc.Failed)
	})
}

// watch classifies new files until ctx ends, or until an error that is not of one file.
func (w *watching) watch(ctx context.Context, models client.Models) error {
	pause := time.Duration(0)
	for {
		err := w.look(ctx, models)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			pause = 0
		case disdel.KindOf(err).Retryable():
			if pause = min(max(2*pause, firstPause), longestPause); pause == firstPause {
				w.ui.Say("warning: %s; trying again", err)
			}
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(pause, w.every)):
		}
	}
}

// look classifies every complete file without an answer, oldest first.
func (w *watching) look(ctx context.Context, models client.Models) error {
	complete, err := w.complete(time.Now())
	if err != nil {
		return err
	}
	for _, f := range complete {
		if err := w.answer(ctx, models, f); err != nil {
			return err
		}
	}
	return nil
}

// complete are the files that have not changed for long enough. An empty file counts as unfinished.
func (w *watching) complete(now time.Time) (out []fileState, err error) {
	entries, err := os.ReadDir(w.folder)
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "watch " + w.folder, Err: files.Plain(err), Hint: "check that the folder is there",
		}
	}
	was := w.seen
	w.seen = map[string]sighting{}
	for _, e := range entries {
		f, ok := w.state(e.Name())
		if !ok || w.log.has(f) {
			continue
		}
		s := sighting{f, now}
		if before, known := was[f.Name]; known && before.fileState == f {
			s.since = before.since
		}
		w.seen[f.Name] = s
		if f.Size > 0 && now.Sub(s.since) >= w.settled {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b fileState) int {
		return cmp.Or(a.Modified.Compare(b.Modified), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

// state is the state of a file; ok is false if it is gone or no input of a model.
func (w *watching) state(name string) (f fileState, ok bool) {
	if strings.HasPrefix(name, ".") || !slices.Contains(watchedEndings, strings.ToLower(filepath.Ext(name))) {
		return f, false
	}
	info, err := os.Stat(filepath.Join(w.folder, name))
	if err != nil || !info.Mode().IsRegular() {
		return f, false
	}
	modified := time.Unix(0, info.ModTime().UnixNano()) // of a year that JSON can say, whatever a file claims
	return fileState{name, info.Size(), modified.UTC()}, true
}

// answer classifies one file and writes its line. It returns only errors that are not of this file.
func (w *watching) answer(ctx context.Context, models client.Models, f fileState) error {
	path := filepath.Join(w.folder, f.Name)
	text, err := files.Read(path)
	if _, gone := os.Stat(path); errors.Is(gone, fs.ErrNotExist) {
		return nil
	}
	line := answerLine{fileState: f}
	if err == nil {
		if now, ok := w.state(f.Name); !ok || now != f { // it is being written after all
			return nil
		}
		doc, _, asked := models.Answer(ctx, w.model, f.Name, text, disdel.Continuation{})
		if err = asked; err == nil {
			line.take(&doc)
		}
	}
	if err != nil {
		if ctx.Err() != nil || isBeyondFile(err) {
			return err
		}
		line.Error = disdel.AsError(err)
	}
	if err := w.log.add(line); err != nil {
		return err
	}
	w.answered++
	if line.Error != nil {
		w.failed++
	}
	w.ui.Say("%s", line.text())
	return nil
}

// isBeyondFile says whether an error concerns more than one file, so that the watch waits or ends.
func isBeyondFile(err error) bool {
	switch k := disdel.KindOf(err); k {
	case disdel.NotFound, disdel.Denied, disdel.NoSpace, disdel.Canceled:
		return true
	default:
		return k.Retryable()
	}
}

// answerLine is the answer for a file, or the reason why there is none.
type answerLine struct {
	fileState
	Model           string               `json:"model,omitempty"`
	Classes         []int                `json:"classes,omitempty"`
	Names           []string             `json:"names,omitempty"`
	Labels          []int32              `json:"labels,omitempty"`
	Probabilities   [][]float32          `json:"probabilities,omitempty"`
	PlainOutputs    bool                 `json:"plainOutputs,omitempty"`
	Predictions     []float32            `json:"predictions,omitempty"`
	Targets         []float32            `json:"targets,omitempty"`
	TargetNames     []string             `json:"targetNames,omitempty"`
	Values          [][]float64          `json:"values,omitempty"`
	Recommendations []disdel.Recommended `json:"recommendations,omitempty"`
	Warnings        []string             `json:"warnings,omitempty"`
	Error           *disdel.Error        `json:"error,omitempty"`
}

// take copies an answer into the line.
func (l *answerLine) take(doc *render.Inference) {
	l.Model, l.Classes, l.Names, l.Labels = doc.Model, doc.Classes, doc.Names, doc.Labels
	l.Probabilities, l.Predictions, l.Targets = doc.Probabilities, doc.Predictions, doc.Targets
	l.Recommendations, l.Warnings, l.PlainOutputs = doc.Recommendations, doc.Warnings, doc.PlainOutputs
	l.TargetNames, l.Values = doc.TargetNames, doc.Values
}

// text is the line for people.
func (l *answerLine) text() string {
	name, certainty := terminal.OneLine(l.Name), render.Certainty(l.PlainOutputs)
	switch {
	case l.Error != nil:
		return fmt.Sprintf("%s: %s", name, l.Error)
	case len(l.Classes) == 1 && len(l.Names) == 1:
		return fmt.Sprintf("%s: %s, %s %.4f", name, l.Names[0], certainty,
			l.Probabilities[0][l.Classes[0]])
	case len(l.Values) == 1 && len(l.TargetNames) == 1:
		return fmt.Sprintf("%s: %s %.6g", name, terminal.OneLine(l.TargetNames[0]), l.Values[0][0])
	case len(l.Classes) == 1:
		return fmt.Sprintf("%s: class %d, %s %.4f", name, l.Classes[0], certainty,
			l.Probabilities[0][l.Classes[0]])
	default:
		return fmt.Sprintf("%s: %s", name, disdel.Counted(
			max(len(l.Classes), len(l.Values), len(l.Predictions), len(l.Recommendations)), "answer"))
	}
}

// answerLog is the output file of `infer --watch`, which also says which files are done. It is locked while it is open.
type answerLog struct {
	file  *os.File
	end   int64 // of the last whole line
	lines map[string]bool
}

// openAnswerLog opens or creates the file, and cuts off an incomplete last line. It returns Conflict if another process
// writes to it, and Invalid if it is another kind of file.
func openAnswerLog(name string) (*answerLog, error) {
	bad := func(kind disdel.Kind, msg string, err error) (*answerLog, error) {
		return nil, &disdel.Error{
			Kind: kind, Op: "write " + name, Msg: msg, Err: err, Hint: "name another file with --file",
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

// openLocked opens and locks a file. It creates the file first, because files.Lock gives a new file permissions for its
// owner only.
func openLocked(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	f.Close()
	return files.Lock(name)
}

// lineStart begins every line, and every incomplete line.
const lineStart = `{"file":"`

// mayBeTornLine says whether a text can be the beginning of a line.
func mayBeTornLine(text string) bool {
	return strings.HasPrefix(text, lineStart) || strings.HasPrefix(lineStart, text)
}

// read reads the lines of the file.
func (l *answerLog) read() error {
	in := bufio.NewReaderSize(l.file, 1<<16)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if !mayBeTornLine(string(text)) {
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

// know remembers that a file is done, unless it failed for a reason that may pass.
func (l *answerLog) know(line *answerLine) {
	if line.Error == nil || isFaultOfFile(line.Error.Kind) {
		l.lines[line.fileState.key()] = true
	}
}

// isFaultOfFile says whether an error is the file's own, so that another try would fail too.
func isFaultOfFile(k disdel.Kind) bool {
	return k == disdel.Invalid || k == disdel.Corrupt || k == disdel.OverLimit || k == disdel.Diverged
}

// key is equal for equal states. It has the name as JSON writes it.
func (f fileState) key() string {
	return fmt.Sprintf("%d %d %s", f.Size, f.Modified.UnixNano(), string([]rune(f.Name)))
}

func (l *answerLog) has(f fileState) bool { return l.lines[f.key()] }

// add writes a line completely or not at all.
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
