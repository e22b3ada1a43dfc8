package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// said waits until a process has written something that matches, and returns its first group.
func said(t *testing.T, file string, what string) string {
	t.Helper()
	for range 3000 {
		text, _ := os.ReadFile(file)
		if found := regexp.MustCompile(what).FindStringSubmatch(string(text)); found != nil {
			return found[len(found)-1]
		}
		time.Sleep(20 * time.Millisecond)
	}
	text, _ := os.ReadFile(file)
	t.Fatalf("nothing matches %s in\n%s", what, text)
	return ""
}

// background starts the program with its messages in a file.
func (d *tool) background(args ...string) (*exec.Cmd, string) {
	d.t.Helper()
	cmd, _, _ := d.command(args...)
	name := filepath.Join(d.t.TempDir(), "said")
	f, err := os.Create(name)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	cmd.Stderr = f
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, name
}

const smallJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: small}
model: {name: digits-cnn}
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 2, batchSize: 64}
`

// Two submits in a pool that has room for one: the second says that it waits, and passes.
func TestTheSecondSubmitWaits(t *testing.T) {
	d := build(t)
	first, _, _ := d.start("--pool-memory", "600MB")
	file := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(file, []byte(smallJob), 0o600); err != nil {
		t.Fatal(err)
	}
	second, text := d.background("submit", file, "--pool-memory", "600MB")
	said(t, text, `(?m)^queued (.*)$`)
	if shown, _, _ := d.run("history", "-o", "json"); !strings.Contains(shown, `"status": "queued"`) {
		t.Errorf("the history says %.200s", shown)
	}
	first.Process.Signal(os.Interrupt)
	first.Wait()
	if err := second.Wait(); err != nil {
		t.Errorf("%v: %s", err, said(t, text, `(?s)(.*)`))
	}
	d.nothingStays()
}

// A server that is killed with one job that runs and two that wait has lost none: the next one finishes them.
func TestTheJobsOfAKilledServerAreFinished(t *testing.T) {
	d := build(t)
	if _, errs, code := d.run("dataset", "add", "digits"); code != 0 {
		t.Fatal(errs)
	}
	serve := func() (*exec.Cmd, string) {
		cmd, text := d.background("--pool-memory", "600MB", "serve", "--listen", "127.0.0.1:0")
		return cmd, said(t, text, `serves (http://\S+)`)
	}
	ask := func(method, url, body string) (out struct{ ID, Status string }) {
		t.Helper()
		token, err := os.ReadFile(filepath.Join(d.home, "server.token"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		data, _ := io.ReadAll(res.Body)
		if err := json.Unmarshal(data, &out); err != nil || res.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s", method, url, res.StatusCode, data)
		}
		return out
	}
	first, url := serve()
	body, _ := json.Marshal(map[string]string{"file": smallJob})
	var jobs []string
	for range 3 {
		jobs = append(jobs, ask("POST", url+"/api/v1/jobs", string(body)).ID)
	}
	first.Process.Kill()
	first.Wait()
	_, url = serve()
	for _, id := range jobs {
		if rec := ask("GET", url+"/api/v1/jobs/"+id+"/wait?timeout=5m", ""); rec.Status != "succeeded" {
			t.Errorf("%s is %s", id, rec.Status)
		}
	}
}
