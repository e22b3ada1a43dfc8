package cli

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// A user's own gorgonia graph, in a program of its own, is a train action: it learns on the embedded platform, and
// answers.
func TestAGorgoniaGraphTrainsThroughThePlatform(t *testing.T) {
	t.Parallel()
	d := build(t)
	action := filepath.Join(filepath.Dir(d.path), "digits-gorgonia")
	if out, err := exec.Command("go", "build", "-o", action, "../../examples/gorgonia").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const job = "../../examples/gorgonia/job.yaml"
	if _, errs, code := d.run("dataset", "add", "digits"); code != 0 {
		t.Fatal(errs)
	}
	out, errs, code := d.run("submit", job, "--action", action, "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	var r disdel.Record
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Accuracy < 0.93 || r.Plan.Workers != 2 || r.Job.Model.Custom != "digits-gorgonia" {
		t.Errorf("accuracy %v with %d workers", r.Accuracy, r.Plan.Workers)
	}
	for _, a := range r.Plan.Actions {
		t.Logf("%s: estimate %v", a.Task, a.Estimate.Total)
	}
	digit, errs, code := d.run("dataset", "sample", "digits", "--row", "7")
	if code != 0 {
		t.Fatal(errs)
	}
	cmd, answer, errors := d.command("infer", "digits-gorgonia", "--input", "-", "--action", action, "-o", "json")
	cmd.Stdin = strings.NewReader(digit)
	if err := cmd.Run(); err != nil || !strings.Contains(answer.String(), `"classes"`) {
		t.Errorf("%v\n%s%s", err, answer, errors)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no program":      {[]string{"submit", job}, "--action FILE"},
		"no such program": {[]string{"submit", job, "--action", "nowhere"}, "go build"},
		"no action":       {[]string{"submit", job, "--action", "/bin/true"}, "no description"},
		"another network": {
			[]string{"submit", job, "--action", action, "--set", "model.custom=other"},
			"custom: digits-gorgonia",
		},
		"a cluster": {[]string{"submit", job, "--action", action, "--apihost", "https://localhost:1"}, "--image IMAGE"},
	} {
		if _, errs, code := d.run(c.args...); code != terminal.ExitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d\n%s", name, code, errs)
		}
	}
	d.nothingStays()
}

// The gorgonia backend trains what disdel's own engine trains, when the job asks for it.
func TestJobsTrainOnTheGorgoniaBackend(t *testing.T) {
	t.Parallel()
	d := build(t)
	if _, errs, code := d.run("dataset", "add", "digits"); code != 0 {
		t.Fatal(errs)
	}
	const job = "../../examples/digits-cnn.yaml"
	out, errs, code := d.run("submit", job, "--backend", "gorgonia", "--epochs", "4", "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	var r disdel.Record
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Accuracy < 0.8 || r.Job.Training.Backend != "gorgonia" {
		t.Errorf("accuracy %v on backend %q", r.Accuracy, r.Job.Training.Backend)
	}
	if _, errs, code := d.run("submit", job, "--backend", "torch"); code != terminal.ExitUsage ||
		!strings.Contains(errs, "training.backend") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}
