package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/internal/terminal"
)

// withStore opens the history of a home.
func withStore(t *testing.T, home string, f func(ctx context.Context, h *history.Store)) {
	t.Helper()
	server, err := couchlite.Open(filepath.Join(home, "history.db"), couchlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	h, err := history.Open(t.Context(), history.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	f(t.Context(), h)
}

// understated tells the history of a home that jobs like its newest had used half of the memory that they did.
func (d *tool) understated() {
	d.t.Helper()
	withStore(d.t, d.home, func(ctx context.Context, h *history.Store) {
		id, err := h.Resolve(ctx, "@last")
		if err != nil {
			d.t.Fatal(err)
		}
		for n := range 4 {
			r, err := h.Get(ctx, id)
			if err != nil {
				d.t.Fatal(err)
			}
			r.ID = disdel.JobID(fmt.Sprintf("job-%026d", n+1)) // older than any
			for i := range r.Activations {
				r.Activations[i].Peak /= 2
			}
			if err := h.Save(ctx, &r); err != nil {
				d.t.Fatal(err)
			}
		}
	})
}

func (d *tool) record() disdel.Record {
	d.t.Helper()
	out, errs, code := d.run("history", "show", "@last", "-o", "json")
	var r disdel.Record
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		d.t.Fatalf("exit %d, %v\n%s", code, err, errs)
	}
	return r
}

// file writes a job file.
func (d *tool) file(text string) string {
	d.t.Helper()
	if _, errs, code := d.run("dataset", "add", "digits"); code != 0 {
		d.t.Fatal(errs)
	}
	name := filepath.Join(d.t.TempDir(), "job.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return name
}

// weights are the tensors of the newest model of a name, without the file's metadata, which has the job's id.
func (d *tool) weights(model string) string {
	d.t.Helper()
	name := filepath.Join(d.t.TempDir(), "model.safetensors")
	if _, errs, code := d.run("model", "export", model, "--output", name); code != 0 {
		d.t.Fatal(errs)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		d.t.Fatal(err)
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		d.t.Fatal(err)
	}
	var out strings.Builder
	for _, v := range f.Tensors {
		fmt.Fprintf(&out, "%s %v %x\n", v.Name, v.Shape, v.Data)
	}
	return out.String()
}

// wideJob needs some 195 MB, most of it activations, and little time.
const wideJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: wide}
model:
  layers:
    - conv: {filters: 768, kernel: 1, activation: relu}
    - dense: {units: 10, activation: softmax}
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 1, batchSize: 448, optimizer: {sgd: {learningRate: 0.05}}}
distribution: {workers: 1}
reliability: {retries: {backoff: {initial: 20ms, max: 100ms}}}
`

// Where steps may not save memory, a limit that was too small is raised until the job passes. The next job of its kind
// passes at once with either estimator.
func TestAnActionKilledForMemoryIsTriedAgainWithMore(t *testing.T) {
	t.Parallel()
	d := build(t)
	job := d.file(wideJob)
	if _, errs, code := d.run("submit", job, "--set", "training.fit=none", "-q"); code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	d.understated()
	_, errs, code := d.run("submit", job, "--set", "training.fit=none", "--estimator", "learned")
	r := d.record()
	if code != 0 || r.Status != disdel.StatusSucceeded || len(r.Adjustments) == 0 ||
		r.Losses.Attempts != len(r.Adjustments) || r.Losses.Cost <= 0 {
		t.Fatalf("exit %d, %v, adjustments %v, losses %+v\n%s", code, r.Status, r.Adjustments, r.Losses, errs)
	}
	first := r.Activations[0]
	if first.Outcome != disdel.OutcomeOutOfMemory || first.Limits.Memory >= 200*disdel.MB {
		t.Errorf("the first attempt ended as %v at %v", first.Outcome, first.Limits.Memory)
	}
	line := fmt.Sprintf("train 0 needed more than %d MB: %d MB now, attempt 2", first.Limits.Memory.MB(),
		r.Activations[1].Limits.Memory.MB())
	if !strings.Contains(errs, line) {
		t.Errorf("stderr does not say %q:\n%s", line, errs)
	}
	report, _, _ := d.run("report", "@last")
	for _, want := range []string{
		fmt.Sprintf("memory %v -> %v after out", r.Adjustments[0].From, r.Adjustments[0].To),
		"attempt failed, which took",
	} {
		if r.Losses.Attempts > 1 {
			want = strings.ReplaceAll(want, "attempt failed", "attempts failed")
		}
		if !strings.Contains(strings.Join(strings.Fields(report), " "), want) {
			t.Errorf("the report does not say %q:\n%s", want, report)
		}
	}
	shown, _, _ := d.run("history", "show", "@last")
	if !strings.Contains(shown, "ATTEMPTS") || !strings.Contains(shown, "\nlosses ") ||
		!strings.Contains(shown, "FAILED") {
		t.Errorf("history show:\n%s", shown)
	}
	passed := last(r, disdel.TaskTrain).Limits.Memory
	for _, by := range []string{"learned", "planned"} {
		if _, errs, code := d.run("submit", job, "--set", "training.fit=none", "--estimator", by); code != 0 {
			t.Fatalf("%s: exit %d\n%s", by, code, errs)
		}
		next := d.record()
		if next.Losses.Attempts != 0 || next.Activations[0].Limits.Memory < passed {
			t.Errorf("%s: %d failed attempts, limit %v, and %v had passed", by, next.Losses.Attempts,
				next.Activations[0].Limits.Memory, passed)
		}
	}
	d.nothingStays()
}

func last(r disdel.Record, task disdel.Task) (a disdel.Activation) {
	for _, v := range r.Activations {
		if v.Task == task {
			a = v
		}
	}
	return a
}

// steadyJob takes seconds, has rounds, and gives the same bits every time.
const steadyJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: steady}
model: {name: digits-cnn}
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 16, batchSize: 16, validateEvery: 4, optimizer: {adam: {learningRate: 0.002}}}
distribution: {workers: 2, aggregation: {optimizer: average}}
reliability: {retries: {limit: 20, perWorker: 10, backoff: {initial: 20ms, max: 100ms}}}
`

// until waits for something that a job that runs comes to.
func (d *tool) until(what string, is func() bool) {
	d.t.Helper()
	for began := time.Now(); time.Since(began) < 5*time.Minute; time.Sleep(20 * time.Millisecond) {
		if is() {
			return
		}
	}
	d.t.Fatalf("waited in vain for %s", what)
}

// checkpoints are the folders of the rounds that a job can go on from.
func (d *tool) checkpoints() []string {
	list, _ := filepath.Glob(filepath.Join(d.home, "models", "checkpoints", "job-*", "*", "reference.safetensors.sha256"))
	return list
}

// A train process that is killed is tried again, and a controller that is killed is taken up again; either way the
// weights are those of the job that nobody disturbed.
func TestWhatIsKilledComesToTheSameWeights(t *testing.T) {
	t.Parallel()
	d := build(t)
	job := d.file(steadyJob)
	if _, errs, code := d.run("submit", job, "-q"); code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	want, whole := d.weights("steady"), d.record()

	// A train process.
	cmd, _, errs := d.command("submit", job)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.until("containers", func() bool { return len(d.children()) >= 2 && len(d.checkpoints()) > 1 })
	syscall.Kill(d.children()[0], syscall.SIGKILL)
	cmd.Wait()
	r := d.record()
	if code := cmd.ProcessState.ExitCode(); code != 0 || r.Accuracy != whole.Accuracy || d.weights("steady") != want {
		t.Errorf("exit %d, accuracy %g and %g\n%s", code, whole.Accuracy, r.Accuracy, errs)
	}
	// a kill between two activations loses nothing
	if r.Losses.Attempts > 0 && !strings.Contains(errs.String(), ", attempt 2") {
		t.Errorf("%d attempts failed, and stderr says nothing:\n%s", r.Losses.Attempts, errs)
	}

	// The controller, twice.
	cmd, _, _ = d.command("submit", job)
	d.killed(cmd, 2)
	id := d.record().ID
	shown, _, _ := d.run("history", "show", "@last")
	if !strings.Contains(shown, "running") || !strings.Contains(shown, "resume "+string(id)) {
		t.Errorf("history show of a job whose controller was killed:\n%s", shown)
	}
	cmd, _, _ = d.command("resume", "@last")
	d.killed(cmd, 4)
	_, said, code := d.run("resume", "@last")
	r = d.record()
	if code != 0 || r.ID != id || r.Resumes != 2 || r.Accuracy != whole.Accuracy || d.weights("steady") != want {
		t.Errorf("exit %d, %s and %s, resumed %d times, accuracy %g and %g\n%s", code, id, r.ID, r.Resumes, whole.Accuracy,
			r.Accuracy, said)
	}
	if left := d.checkpoints(); len(left) > 0 {
		t.Errorf("checkpoints left: %v", left)
	}
	d.nothingStays()
}

// killed starts a job and kills its disdel once a checkpoint of a round is there.
func (d *tool) killed(cmd *exec.Cmd, round int) {
	d.t.Helper()
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.until("a checkpoint", func() bool {
		list := d.checkpoints()
		return len(list) > 0 && filepath.Base(filepath.Dir(list[len(list)-1])) >= fmt.Sprintf("%06d", round)
	})
	cmd.Process.Kill()
	cmd.Wait()
	d.until("the containers' end", func() bool { return len(d.children()) == 0 })
}

// A round that is longer than an action may run is divided into legs, and comes to the same weights.
func TestARoundInLegsComesToTheSameWeights(t *testing.T) {
	t.Parallel()
	d := build(t)
	job := d.file(strings.NewReplacer("epochs: 16", "epochs: 80", "workers: 2",
		"workers: 1, sync: end").Replace(steadyJob))
	if _, errs, code := d.run("submit", job, "-q"); code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	want, whole := d.weights("steady"), d.record()
	// A machine that is busy for one run and not for the next may need one leg: then its time gets shorter.
	train := last(whole, disdel.TaskTrain)
	took := time.Duration(train.Duration)
	var (
		timeout, errs string
		code, pauses  int
		r             disdel.Record
	)
	for tries := 0; tries < 4 && code == 0 && pauses == 0; tries++ {
		timeout = max(took/3, 500*time.Millisecond).Round(100 * time.Millisecond).String()
		_, errs, code = d.run("submit", job, "--set", "resources.timeout="+timeout)
		r = d.record()
		took, pauses = 0, 0
		for _, a := range r.Activations {
			if a.Task == disdel.TaskTrain {
				took += time.Duration(a.Duration)
			}
			if a.Outcome == disdel.OutcomePaused {
				pauses++
			}
		}
	}
	if code != 0 || pauses == 0 || d.weights("steady") != want {
		t.Fatalf("exit %d, %d pauses with a timeout of %s, %v took %v\n%s", code, pauses, timeout, train.Outcome,
			train.Duration, errs)
	}
	for _, want := range []string{
		"paused before its timeout of " + timeout, ", goes on in leg 2",
		fmt.Sprintf("takes about %d legs", r.Plan.Legs),
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr does not say %q:\n%s", want, errs)
		}
	}
	if r.Plan.Legs < 2 || r.Losses.Attempts > 0 && last(r, disdel.TaskTrain).Attempt == 1 {
		t.Errorf("the plan expected %d legs; losses %+v", r.Plan.Legs, r.Losses)
	}
	if shown, _, _ := d.run("history", "show", "@last"); !strings.Contains(shown, "LEGS") {
		t.Errorf("history show:\n%s", shown)
	}
	d.nothingStays()
}

// What the report of a job that ran out of memory says lets it pass, both anew and, once it has a checkpoint, from
// there. The exit code is the last outcome's.
func TestTheReportOfARealFailureLetsTheJobPass(t *testing.T) {
	t.Parallel()
	d := build(t)
	job := d.file(wideJob)
	if _, errs, code := d.run("submit", job, "-q"); code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	d.understated()
	_, errs, code := d.run("submit", job, "--estimator", "learned", "--set", "reliability.retries.limit=0")
	if code != terminal.ExitOOM || !strings.Contains(errs, "not tried again: the job allows no retries") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	if !strings.Contains(errs, "train 0 needed more than") || strings.Contains(errs, "attempt 2") {
		t.Errorf("stderr:\n%s", errs)
	}
	spec, errs, code := d.run("report", "@last", "--spec")
	if code != 0 || !strings.Contains(spec, "# changed: resources.memory=") {
		t.Fatalf("exit %d\n%s%s", code, spec, errs)
	}
	if _, errs, code := d.run("submit", d.file(spec), "--estimator", "learned", "-q"); code != 0 {
		t.Errorf("with the report's change: exit %d\n%s", code, errs)
	}
	if _, errs, code := d.run("submit", job, "--set", "resources.maxCost=0.001GB-s"); code != terminal.ExitRefused ||
		!strings.Contains(errs, "is likely to cost") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	steady := d.file(strings.Replace(steadyJob, "epochs: 16", "epochs: 9000", 1))
	if _, errs, code := d.run("submit", steady, "--set", "reliability.deadline=8s", "--set",
		"resources.timeout=4s"); code != terminal.ExitTimeout {
		t.Errorf("exit %d\n%s", code, errs)
	}
	told, _, _ := d.run("report", "@last")
	if !strings.Contains(told, "disdel resume job-") || !strings.Contains(told, "--set reliability.deadline=") {
		t.Errorf("the report does not offer to go on:\n%s", told)
	}
	d.nothingStays()
}
