package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
)

// fakeAnswers answers files by what they hold.
type fakeAnswers struct {
	client.Models
	answer func(text string) error // nil: an answer
}

func (s fakeAnswers) Answer(_ context.Context, _, file string, text []byte, _ disdel.Continuation,
) (render.Inference, modelstore.Model, error) {
	if s.answer != nil {
		if err := s.answer(string(text)); err != nil {
			return render.Inference{}, modelstore.Model{}, err
		}
	}
	return render.Inference{
		Model: "m:v1", Classes: []int{len(text)}, Probabilities: [][]float32{make([]float32, len(text)+1)},
	}, modelstore.Model{}, nil
}

// watched is a watch of a new folder, with an output beside it.
func watched(t *testing.T) *watching {
	t.Helper()
	dir := t.TempDir()
	w := &watching{
		ui: terminal.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}), model: "m",
		folder: filepath.Join(dir, "in"), output: filepath.Join(dir, "out.jsonl"), seen: map[string]sighting{},
	}
	if err := os.Mkdir(w.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	w.begin(t)
	return w
}

// begin is a start of the command.
func (w *watching) begin(t *testing.T) {
	t.Helper()
	var err error
	if w.log, err = openAnswerLog(w.output); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.log.close() })
}

// put writes a file whose time is so long ago.
func (w *watching) put(t *testing.T, name, text string, ago time.Duration) {
	t.Helper()
	path := filepath.Join(w.folder, name)
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600),
		os.Chtimes(path, time.Time{}, time.Unix(1_800_000_000, 5).Add(-ago))); err != nil {
		t.Fatal(err)
	}
}

// lines is the output, a text a line: the file, and its class or its error.
func (w *watching) lines(t *testing.T) (out []string) {
	t.Helper()
	data, err := os.ReadFile(w.output)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(data)) {
		var line answerLine
		if err := json.Unmarshal([]byte(text), &line); err != nil || !strings.HasSuffix(text, "\n") {
			t.Fatalf("%q: %v", text, err)
		}
		if line.Error != nil {
			out = append(out, line.Name+" "+line.Error.Kind.String())
		} else {
			out = append(out, fmt.Sprint(line.Name, " ", line.Classes))
		}
	}
	return out
}

// A file is answered once it has stayed as it is, in the order of their times; what is empty, hidden, a folder or of
// another sort is not; a file that changes is answered anew.
func TestAWatchWaitsForWholeFiles(t *testing.T) {
	w, ctx := watched(t), t.Context()
	w.settled = time.Hour
	w.put(t, "b.csv", "12", 2*time.Minute)
	w.put(t, "a.json", "123", time.Minute)
	w.put(t, "empty.csv", "", time.Minute)
	w.put(t, ".hidden.csv", "1", time.Minute)
	w.put(t, "notes.txt", "1", time.Minute)
	if err := os.Mkdir(filepath.Join(w.folder, "folder.csv"), 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	whole := func(after time.Duration) (names []string) {
		list, err := w.complete(now.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			names = append(names, f.Name)
		}
		return names
	}
	if got := whole(0); got != nil {
		t.Errorf("%v at the first look", got)
	}
	w.put(t, "b.csv", "123456", time.Second) // it was being written
	if got := whole(time.Hour); !slices.Equal(got, []string{"a.json"}) {
		t.Errorf("%v, and one has changed", got)
	}
	if got := whole(2 * time.Hour); !slices.Equal(got, []string{"a.json", "b.csv"}) {
		t.Errorf("%v", got)
	}
	w.settled, w.seen = 0, map[string]sighting{}
	for range 2 {
		if err := w.look(ctx, fakeAnswers{}); err != nil {
			t.Fatal(err)
		}
	}
	w.put(t, "a.json", "1234", 0)
	if err := w.look(ctx, fakeAnswers{}); err != nil {
		t.Fatal(err)
	}
	if got := w.lines(t); !slices.Equal(got, []string{"a.json [3]", "b.csv [6]", "a.json [4]"}) {
		t.Errorf("%v", got)
	}
}

// A file that cannot be read gets a line and ends nothing; where nothing can be answered the watch waits, or ends, and
// no file gets a line for it.
func TestAWatchGoesOn(t *testing.T) {
	w, ctx := watched(t), t.Context()
	w.put(t, "bad.csv", "bad", 3*time.Minute)
	w.put(t, "good.csv", "good", 2*time.Minute)
	fails := func(kind disdel.Kind, of string) fakeAnswers {
		return fakeAnswers{answer: func(text string) error {
			if text != of {
				return nil
			}
			return &disdel.Error{Kind: kind, Op: "read", Msg: "it is " + text}
		}}
	}
	for _, kind := range []disdel.Kind{disdel.Unavailable, disdel.Lost, disdel.NotFound, disdel.Denied} {
		if err := w.look(ctx, fails(kind, "bad")); !errors.Is(err, kind) || len(w.lines(t)) != 0 {
			t.Errorf("%v: %v, and %v", kind, err, w.lines(t))
		}
	}
	if err := w.look(ctx, fails(disdel.Invalid, "bad")); err != nil {
		t.Fatal(err)
	}
	w.put(t, "worse.csv", "worse", time.Minute)
	if err := w.look(ctx, fails(disdel.Crashed, "worse")); err != nil {
		t.Fatal(err)
	}
	want := []string{"bad.csv invalid", "good.csv [4]", "worse.csv crashed"}
	if got := w.lines(t); !slices.Equal(got, want) || w.answered != 3 || w.failed != 2 {
		t.Errorf("%v, %d answered, %d of them not", got, w.answered, w.failed)
	}
	if err := w.look(ctx, fakeAnswers{}); err != nil || len(w.lines(t)) != 3 {
		t.Errorf("%v, %v", w.lines(t), err)
	}
	// The next start tries again what had not failed for its file, and nothing else.
	if err := w.log.close(); err != nil {
		t.Fatal(err)
	}
	w.begin(t)
	if err := w.look(ctx, fakeAnswers{}); err != nil {
		t.Fatal(err)
	}
	if got := w.lines(t); !slices.Equal(got, append(want, "worse.csv [5]")) {
		t.Errorf("%v", got)
	}
}

// A line that a process left half written is cut off, and its file answered; a file of something else is left alone,
// and so is one that another watch writes.
func TestAnOutputIsGoneOnWith(t *testing.T) {
	w, ctx := watched(t), t.Context()
	w.put(t, "a.csv", "1", time.Minute)
	w.put(t, "b.csv", "12", time.Second)
	if err := w.look(ctx, fakeAnswers{}); err != nil {
		t.Fatal(err)
	}
	if _, err := openAnswerLog(w.output); !errors.Is(err, disdel.Conflict) {
		t.Errorf("a second watch: %v", err)
	}
	if err := w.log.close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(w.output)
	if err == nil {
		err = os.WriteFile(w.output, data[:len(data)-9], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.begin(t)
	if err := w.look(ctx, fakeAnswers{}); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(w.output); err != nil || !bytes.Equal(again, data) {
		t.Errorf("%v\n%s\nwant\n%s", err, again, data)
	}
	if err := w.log.close(); err != nil {
		t.Fatal(err)
	}
	torn := append(slices.Clone(data), `{"file":"`+strings.Repeat("c", 1000)...)
	if err := os.WriteFile(w.output, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	w.begin(t)
	if again, err := os.ReadFile(w.output); err != nil || !bytes.Equal(again, data) {
		t.Errorf("%v\n%.200s\nwant\n%s", err, again, data)
	}
	for _, text := range []string{
		"something\n", "something", "{\"a\": 1}\n", "[1]\n", `{"rows": [[1, 2]]}`, "{\n  \"file\": 1\n}",
	} {
		other := filepath.Join(t.TempDir(), "other.jsonl")
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := openAnswerLog(other)
		left, readable := os.ReadFile(other)
		if !errors.Is(err, disdel.Invalid) || string(left) != text || readable != nil {
			t.Errorf("%q: %v, and %q is left", text, err, left)
		}
	}
}

// A watch ends with its context, without an error, also in the middle of a question, whose file gets no line.
func TestAWatchEndsWhenItIsTold(t *testing.T) {
	w := watched(t)
	w.every = time.Millisecond
	w.put(t, "a.csv", "1", time.Minute)
	w.put(t, "b.csv", "12", time.Second)
	ctx, stop := context.WithCancel(t.Context())
	err := w.watch(ctx, fakeAnswers{answer: func(text string) error {
		if text == "1" {
			return nil
		}
		stop()
		return &disdel.Error{Kind: disdel.Canceled, Op: "infer", Err: ctx.Err()}
	}})
	if got := w.lines(t); err != nil || !slices.Equal(got, []string{"a.csv [1]"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// Files of names that are no text, and of times that nobody has had, are answered once, also after another start.
func TestOddFilesAreAnsweredOnce(t *testing.T) {
	w, ctx := watched(t), t.Context()
	for name, at := range map[string]time.Time{
		"odd\xff\xfe.csv": time.Unix(1_800_000_000, 7), "late.csv": time.Date(12_000, 1, 1, 0, 0, 0, 0, time.UTC),
		"early.csv": time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		w.put(t, name, "12", 0)
		if err := os.Chtimes(filepath.Join(w.folder, name), time.Time{}, at); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := w.look(ctx, fakeAnswers{}); err != nil {
			t.Fatal(err)
		}
		if got := w.lines(t); len(got) != 3 {
			t.Errorf("%q", got)
		}
		if err := w.log.close(); err != nil {
			t.Fatal(err)
		}
		w.begin(t)
	}
}

// An output that is begun has the permissions that the user gives new files, and one that is there keeps its own.
func TestAnOutputHasTheUsersPermissions(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine.jsonl")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		umask int
		want  os.FileMode
	}{
		{mine, 0o022, 0o600}, {filepath.Join(dir, "new.jsonl"), 0o027, 0o640}, {filepath.Join(dir, "x.jsonl"), 0o022, 0o644},
	} {
		was := syscall.Umask(c.umask)
		l, err := openAnswerLog(c.name)
		syscall.Umask(was)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := l.file.Stat(); err != nil || info.Mode().Perm() != c.want {
			t.Errorf("%s: %v, %v", c.name, info.Mode(), err)
		}
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
	}
}
