package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// said waits until a process has written something that matches, and returns its first group.
func (d *tool) said(file, what string) string {
	d.t.Helper()
	form := regexp.MustCompile(what)
	var found []string
	d.until(what+" in "+file, func() bool {
		text, _ := os.ReadFile(file) // nothing yet
		found = form.FindStringSubmatch(string(text))
		return found != nil
	})
	return found[len(found)-1]
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
	t.Parallel()
	d := build(t)
	first, _, _ := d.start("--pool-memory", "600MB")
	file := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(file, []byte(smallJob), 0o600); err != nil {
		t.Fatal(err)
	}
	second, text := d.background("submit", file, "--pool-memory", "600MB")
	d.said(text, `(?m)^queued (.*)$`)
	if shown, _, _ := d.run("history", "-o", "json"); !strings.Contains(shown, `"status": "queued"`) {
		t.Errorf("the history says %.200s", shown)
	}
	first.Process.Signal(os.Interrupt)
	first.Wait()
	if err := second.Wait(); err != nil {
		t.Errorf("%v: %s", err, d.said(text, `(?s)(.*)`))
	}
	d.nothingStays()
}

// A server that is killed with one job that runs and two that wait has lost none: the next one finishes them.
func TestTheJobsOfAKilledServerAreFinished(t *testing.T) {
	t.Parallel()
	d := build(t)
	if _, errs, code := d.run("dataset", "add", "digits"); code != 0 {
		t.Fatal(errs)
	}
	serve := func() (*exec.Cmd, string) {
		cmd, text := d.background("--pool-memory", "600MB", "serve", "--listen", "127.0.0.1:0")
		return cmd, d.said(text, `serves (http://\S+)`)
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

// A command says the same whether a server carries it out or its own process.
func TestAServerSaysWhatTheProcessSays(t *testing.T) {
	t.Parallel()
	d := build(t)
	_, text := d.background("serve", "--listen", "127.0.0.1:0")
	url := d.said(text, `serves (http://\S+)`)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.yaml", smallJob)
	bad := write("bad.yaml", strings.Replace(smallJob, "digits,", "letters,", 1))
	// What is measured differs from time to time, and what is expected goes by what else the machine does.
	numbers := regexp.MustCompile(`job-[0-9a-z]+|[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?|[#=.]{2,}| +`)
	sometimes := regexp.MustCompile(`,?\n? *(the machine is busy|"note")[^\n]*|,`)
	plain := func(s string) string {
		s = strings.ReplaceAll(s, " --server "+url, "")
		return numbers.ReplaceAllString(sometimes.ReplaceAllString(s, ""), "#")
	}
	both := func(rough bool, args ...string) string {
		t.Helper()
		out, errs, code := d.run(args...)
		far, complaints, exit := d.run(append([]string{"--server", url}, args...)...)
		if rough {
			out, errs, far, complaints = plain(out), plain(errs), plain(far), plain(complaints)
		}
		complaints = strings.ReplaceAll(complaints, " --server "+url, "")
		if out != far || errs != complaints || code != exit {
			t.Errorf("%v: here %d\n%s%s\nfrom the server %d\n%s%s", args, code, out, errs, exit, far, complaints)
		}
		return out
	}
	if out := both(false, "dataset", "add", "digits"); !strings.Contains(out, "digits") {
		t.Fatal(out)
	}
	// Of a job's own time there is the order of what is said; how often its actions are seen at work is chance, and a
	// forecast there is where a job like it has run before.
	outline := func(s string) (out []string) {
		for line := range strings.Lines(s) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if !slices.Contains([]string{"train", "aggregate", "evaluate", "expect", "forecast", "the", "warning:"}, word) {
				out = append(out, word)
			}
		}
		return out
	}
	here, told, code := d.run("submit", good)
	far, complaints, exit := d.run("--server", url, "submit", good)
	if code != 0 || exit != 0 || !slices.Equal(outline(here), outline(far)) ||
		!slices.Equal(outline(told), outline(complaints)) || !strings.Contains(far, "succeeded") {
		t.Errorf("here %d\n%s%s\nfrom the server %d\n%s%s", code, here, told, exit, far, complaints)
	}
	both(true, "history") // the ages differ by what the clock says
	both(false, "history", "show", "@last", "-o", "json")
	both(true, "history", "show", "@last")
	both(true, "report", "@last")
	both(false, "report", "@last", "--spec")
	both(false, "job", "logs", "@last", "-o", "json")
	both(false, "job", "wait", "@last", "-o", "json")
	both(false, "job", "cancel", "@last")
	both(false, "dataset", "list", "-o", "json")
	both(false, "dataset", "show", "digits")
	row := write("row.json", both(false, "dataset", "sample", "digits", "--row", "7"))
	both(false, "model", "list")
	both(false, "model", "show", "small", "-o", "json")
	both(false, "infer", "small", "--input", row)
	said := both(false, "infer", "small", "--dataset", "digits", "--part", "test", "--output", "-")
	if lines := strings.Count(said, "\n"); lines != 359 { // a fifth of 1,797
		t.Errorf("%d answers for the rows that were held out", lines)
	}
	both(false, "infer", "small", "--dataset", "nothing", "--output", "-")
	both(false, "infer", "small", "--dataset", "digits", "--part", "half", "--output", "-")
	// An estimate goes by how busy the machine is at its moment: both are documents.
	for _, more := range [][]string{nil, {"--what-if", "workers=1,2", "--max-memory", "256MB"}} {
		for _, where := range [][]string{nil, {"--server", url}} {
			out, errs, code := d.run(slices.Concat(where, []string{"estimate", good, "-o", "json"}, more)...)
			if code != 0 || !json.Valid([]byte(out)) {
				t.Errorf("%v: exit %d\n%s", where, code, errs)
			}
		}
	}
	both(false, "estimate", good, "--max-memory", "2MB")
	both(false, "validate", good)
	both(false, "validate", bad)
	both(false, "submit", bad)
	both(false, "model", "show", "nothing")
	both(false, "history", "show", "nothing")
	both(false, "resume", "@last")
	both(false, "dataset", "remove", "nothing")
}

// serveForScript is the command serve of the scripts: it starts disdel serve, and sets SERVER to its address and ADMIN
// to its own token. What it said until then is stderr of the script. The server ends with the script.
func serveForScript(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command("disdel", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "DISDEL_HOME="+ts.Getenv("DISDEL_HOME"), "PATH="+ts.Getenv("PATH"), "NO_COLOR=1")
	said, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		cmd.Wait()                       //nolint:errcheck // the script is over
	})
	in := bufio.NewScanner(said)
	var all strings.Builder
	for in.Scan() {
		all.WriteString(in.Text() + "\n")
		if _, address, serves := strings.Cut(in.Text(), "serves "); serves {
			ts.Setenv("SERVER", address)
			token, err := os.ReadFile(filepath.Join(ts.Getenv("DISDEL_HOME"), "server.token"))
			ts.Check(err)
			ts.Setenv("ADMIN", strings.TrimSpace(string(token)))
			go io.Copy(io.Discard, said) //nolint:errcheck // what else it says is read by nobody
			_, err = fmt.Fprint(ts.Stderr(), all.String())
			ts.Check(err)
			return
		}
	}
	ts.Fatalf("it does not serve: %s", all.String())
}
