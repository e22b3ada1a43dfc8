package service

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/process"
)

// ended is a process of this machine that is no more.
func ended(t *testing.T) process.Mark {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	m := process.Self()
	m.PID, m.Start = cmd.Process.Pid, m.Start+1
	return m
}

// What a command has left beside the models that was killed while it waited for answers goes with the next question:
// its answers, its inputs, and the note of it. What one waits for that lives, or of whom nothing is known, stays.
func TestWhatKilledQuestionsLeaveIsSweptAway(t *testing.T) {
	s, m, _ := digitsModel(t)
	h, err := s.everything(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	far := process.Mark{PID: 1, Boot: "another", Start: 1, Namespace: "pid:[1]"}
	session := func(token string, expires time.Time) {
		value, _ := json.Marshal(sessionNote{history.Owner{Mark: far, Token: token}, expires})
		note := history.Note{Kind: history.NoteSession, Name: token, Value: value}
		if _, err := h.WriteNote(t.Context(), note); err != nil {
			t.Fatal(err)
		}
	}
	session("far-alive", time.Now().Add(time.Hour))
	session("far-over", time.Now().Add(-time.Hour))
	session("far-late", time.Now().Add(-patience/2))
	models := filepath.Join(s.cfg.Home, "models")
	leave := func(name, who string) {
		for file, text := range map[string]string{
			"waiting/" + name: who, "answers/" + name + "/wanted": "", "answers/" + name + "/000000-1.safetensors": "x",
			"inputs/" + name + "/000000.f32": "x",
		} {
			path := filepath.Join(models, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	w, err := s.openWhisk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	action := disdel.ActionPlan{
		Task: disdel.TaskInfer, Name: "killed/infer",
		Limits: disdel.Limits{Memory: 256 * disdel.MB, Timeout: disdel.Millis(time.Minute)},
	}
	if err := w.executor.Prepare(t.Context(), "killed", []disdel.ActionPlan{action}); err != nil {
		t.Fatal(err)
	}
	who := func(mark process.Mark, token, where string) string {
		text, _ := json.Marshal(waiting{history.Owner{Mark: mark, Token: token}, where})
		return string(text)
	}
	here, err := h.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stays := map[string]bool{
		"killed": false, "lives": true, "far-alive": true, "far-over": false, "far-unknown": true, "elsewhere": true,
		"unreadable": true, "far-late": true, "unseen": true, "mine": false, "under-way": true,
	}
	leave("killed", who(ended(t), "killed", here))
	leave("lives", who(process.Self(), "lives", here))
	leave("far-alive", who(far, "far-alive", here))
	leave("far-over", who(far, "far-over", here))
	leave("far-unknown", who(far, "far-unknown", here)) // its note may come late: it is young
	leave("elsewhere", who(far, "far-over", "another history"))
	leave("far-late", who(far, "far-late", here)) // it could not be renewed for a while
	leave("unseen", who(far, "far-over", ""))
	leave("unreadable", "{")
	leave("mine", who(process.Self(), s.token, here)) // of a question that could not take away what it had left
	leave("under-way", who(process.Self(), s.token, here))
	s.asks("under-way", true)
	if _, err := s.InferData(t.Context(), m, DataQuestion{Dataset: "digits", Part: disdel.PartTest}, nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range stays {
		for _, file := range []string{"waiting/" + name, "answers/" + name, "inputs/" + name} {
			if _, err := os.Stat(filepath.Join(models, file)); (err == nil) != want {
				t.Errorf("%s: %v, and it stays: %t", file, err, want)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(models, "waiting", "*")); len(left) != 8 {
		t.Errorf("%v wait", left)
	}
	if err := w.executor.Remove(t.Context(), "killed"); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("the actions of who was killed: %v", err)
	}
}

// A note that its history does not know is one of a session that has ended, once it is not young any more. Where the
// histories are two, under whatever address, or one of them is not known, nothing is concluded.
func TestASessionThatIsNotThereHasEnded(t *testing.T) {
	s, h := records(t, t.TempDir())
	id, err := h.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, o := records(t, t.TempDir())
	if there, err := o.Identity(t.Context()); err != nil || there == id || there == "" {
		t.Fatalf("two histories are %q and %q, %v", id, there, err)
	}
	for _, c := range []struct {
		s         *Service
		of, where string
		age       time.Duration
		want      bool
	}{
		{s, id, id, 0, false},
		{s, id, id, 2 * patience, true},
		{s, "", "", 2 * patience, false},
		{other, id, "", 2 * patience, false},
	} {
		text, _ := json.Marshal(waiting{history.Owner{Mark: process.Mark{PID: 1, Boot: "another"}, Token: "x"}, c.of})
		one := modelstore.PendingQuestion{Who: text, Since: time.Now().Add(-c.age)}
		if got := c.s.abandoned(t.Context(), one, c.where); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// Of many who ask at once one sweeps, and reads no note of theirs.
func TestQuestionsAtOnceAreSweptForOnce(t *testing.T) {
	s := opened(t, t.TempDir())
	shelf, err := s.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.openWhisk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked := func(name string) *question { return &question{executor: w.executor, pkg: name, shelf: shelf} }
	over, err := s.waits(t.Context(), asked("first"))
	if err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(s.cfg.Home, "models", "waiting", "first")
	if err := os.Remove(note); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("first", note); err != nil { // which cannot be read
		t.Skip(err)
	}
	if _, err := shelf.PendingQuestions(t.Context(), s.isAsking); err != nil {
		t.Errorf("the note of a question that is under way is read: %v", err)
	}
	if err := shelf.AddQuestion(t.Context(), "old", []byte(`{"owner":{"token":"`+s.token+`"}}`)); err != nil {
		t.Fatal(err)
	}
	there := func() bool {
		_, err := os.Stat(filepath.Join(filepath.Dir(note), "old"))
		return err == nil
	}
	s.sweeping.Lock()
	s.sweep(t.Context(), asked("second"), "")
	if !there() {
		t.Error("two sweep at once")
	}
	s.sweeping.Unlock()
	if s.sweep(t.Context(), asked("second"), ""); there() {
		t.Error("nobody has swept")
	}
	if err := over(t.Context(), true); err != nil || s.isAsking("first") {
		t.Errorf("its question is still under way, %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(note)); len(left) > 0 {
		t.Errorf("%v wait", left)
	}
}
