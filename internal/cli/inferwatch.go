package cli

import (
	"cmp"
	"context"
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
var watchedEndings = []string{".json", ".npy", ".csv", ".png", ".jpg", ".jpeg"}

// watching answers for the files of a folder as they come. A file is one of a name, a size and a time: one that changes
// is another, and is answered once it has stayed as it is. What was answered stands in the output, and nowhere else.
type watching struct {
	ui                    *terminal.UI
	model, folder, output string
	every, settled        time.Duration

	answered int // files
	failed   int // of them, that could not be

	seen map[string]sighting // by name, of files that are not answered
	log  *answerLog
}

// sighting is a file as it was, and since when.
type sighting struct {
	fileState
	since time.Time
}

// fileState tells a file apart from an earlier one of its name.
type fileState struct {
	Name     string    `json:"file"`
	Size     int64     `json:"sizeBytes"`
	Modified time.Time `json:"modified"`
}

// watchDocument is what `infer --watch` says at its end with -o json.
type watchDocument struct {
	Output   string `json:"output"`
	Answered int    `json:"answered"`
	Failed   int    `json:"failed"`
}

// newWatching reads the flags of infer.
func newWatching(c *cli.Context, u *terminal.UI) (*watching, error) {
	w := &watching{
		ui: u, model: c.Args().First(), folder: c.String("watch"), output: c.String("output"), every: watchEvery,
		settled: settledAfter,
	}
	if w.output == "" {
		return nil, NeedsFlag(c, "--watch "+w.folder+" --output FILE.jsonl")
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
		fmt.Fprintf(out, "%s: %s answered, %d of them with an error\n", doc.Output, terminal.Counted(doc.Answered, "file"),
			doc.Failed)
	})
}

// watch answers for what has come, and looks again. It ends with ctx, without an error, or where nothing can be
// answered any more.
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

// look answers for every file that is whole and has no answer, in the order in which they came.
func (w *watching) look(ctx context.Context, models client.Models) error {
	whole, err := w.whole(time.Now())
	if err != nil {
		return err
	}
	for _, f := range whole {
		if err := w.answer(ctx, models, f); err != nil {
			return err
		}
	}
	return nil
}

// whole are the files that have stayed as they are for long enough. An empty one is one that somebody begins to write.
func (w *watching) whole(now time.Time) (out []fileState, err error) {
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

// state is a file as it is now, false for what no model can be asked about, and for what is gone.
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

// answer writes the line of a file. It returns what no other file would pass with either.
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
		doc, _, asked := models.Answer(ctx, w.model, f.Name, text)
		if err = asked; err == nil {
			line.take(&doc)
		}
	}
	if err != nil {
		if ctx.Err() != nil || beyondFile(err) {
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

// beyondFile tells of failures that are no file's own: the watch waits, or ends.
func beyondFile(err error) bool {
	switch k := disdel.KindOf(err); k {
	case disdel.NotFound, disdel.Denied, disdel.NoSpace, disdel.Canceled:
		return true
	default:
		return k.Retryable()
	}
}
