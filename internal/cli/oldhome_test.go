package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// A home of every version that landed opens: its jobs are listed and explained, its models are listed and answer, and a
// job that was killed goes on from its newest checkpoint. Each home has a job that succeeded and one that was killed
// between two checkpoints, whose workers keep moments and what a wire rounded away.
func TestAHomeOfEachEarlierVersion(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("../../service/testdata/home-*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatal("no home of an earlier version", err)
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			t.Parallel()
			d := build(t)
			if err := os.Mkdir(d.home, 0o700); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("tar", "xzf", archive, "-C", d.home).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			ok := func(args ...string) string {
				t.Helper()
				out, errs, code := d.run(args...)
				if code != 0 {
					t.Fatalf("%v: exit %d\n%s", args, code, errs)
				}
				return out
			}
			list := ok("history")
			for _, name := range []string{"whole", "interrupted"} {
				if !strings.Contains(list, name) || !strings.Contains(ok("report", name), name) {
					t.Errorf("%s is not listed, or its report does not name it:\n%s", name, list)
				}
				var r disdel.Record
				if err := json.Unmarshal([]byte(ok("history", "show", name, "-o", "json")), &r); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if models := ok("model", "list"); !strings.Contains(models, "whole") {
				t.Errorf("models:\n%s", models)
			}
			ok("evaluate", "whole", "--dataset", "tiny")
			ok("resume", "interrupted", "-q")
			r := d.record()
			if r.Status != disdel.StatusSucceeded || r.Resumes != 1 || len(r.Rounds) == 0 ||
				r.Rounds[len(r.Rounds)-1].Round != r.Plan.Rounds-1 {
				t.Errorf("the job that was killed: %v after %d resumes and %d rounds of %d", r.Status, r.Resumes,
					len(r.Rounds), r.Plan.Rounds)
			}
			if stages := r.AllStages(); len(stages) < 2 {
				t.Errorf("%d stages: it did not go on from a checkpoint", len(stages))
			}
		})
	}
}
