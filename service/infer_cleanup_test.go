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
	"github.com/disdel/disdel/internal/process"
	"github.com/disdel/disdel/service/infer"
	"github.com/disdel/disdel/service/lease"
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
	h, err := s.historyOfAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	far := process.Mark{PID: 1, Boot: "another", Start: 1, Namespace: "pid:[1]"}
	session := func(token string, expires time.Time) {
		value, _ := json.Marshal(map[string]any{"owner": history.Owner{Mark: far, Token: token}, "expires": expires})
		note := history.Note{Kind: history.NoteSession, Name: token, Value: value}
		if _, err := h.WriteNote(t.Context(), note); err != nil {
			t.Fatal(err)
		}
	}
	session("far-alive", time.Now().Add(time.Hour))
	session("far-over", time.Now().Add(-time.Hour))
	session("far-late", time.Now().Add(-lease.Patience/2))
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
		text, _ := json.Marshal(map[string]any{"owner": history.Owner{Mark: mark, Token: token}, "history": where})
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
	defer s.underWay.Begin("under-way")()
	ask := infer.DataRequest{Dataset: "digits", Part: disdel.PartTest}
	if _, err := s.InferData(t.Context(), m, ask, nil); err != nil {
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
