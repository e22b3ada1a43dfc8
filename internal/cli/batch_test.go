package cli

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Ctrl-C in the middle of a batch cancels every job, those too that wait, tells what each came to, and leaves nothing
// behind.
func TestCtrlCCancelsAWholeBatch(t *testing.T) {
	t.Parallel()
	d := build(t)
	if _, errs, code := d.run("dataset", "add", "digits"); code != 0 {
		t.Fatal(errs)
	}
	file := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(file, []byte(longJob), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, out, _ := d.command("batch", file, "--set", "matrix={training.batchSize: [32, 64, 128]}",
		"--pool-memory", "600MB", "-o", "json")
	cmd.Stderr = nil
	errs, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	queued, starts, text := 0, 0, ""
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		text += lines.Text() + "\n"
		queued += strings.Count(lines.Text(), "  queued as ")
		starts += strings.Count(lines.Text(), "  starts after ")
		if queued == 3 && starts == 1 {
			queued = 0
			cmd.Process.Signal(syscall.SIGINT)
		}
	}
	cmd.Wait()
	var doc struct {
		Canceled int
		Jobs     []struct{ Job, Status string }
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if cmd.ProcessState.ExitCode() != 130 || doc.Canceled != 3 || len(doc.Jobs) != 3 {
		t.Errorf("exit %d, %+v\n%s", cmd.ProcessState.ExitCode(), doc, text)
	}
	for _, j := range doc.Jobs {
		shown, errs, code := d.run("history", "show", j.Job, "-o", "json")
		if rec := parse(t, shown); code != 0 || rec.Status != "canceled" || j.Status != "canceled" {
			t.Errorf("%+v, the record says %s\n%s", j, rec.Status, errs)
		}
	}
	d.nothingStays()
}
