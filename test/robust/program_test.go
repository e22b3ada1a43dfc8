package robust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
)

// disdelIn is the built program with a home of its own.
type disdelIn struct {
	path, home string
	env        []string
}

func (d disdelIn) command(args ...string) *exec.Cmd {
	c := exec.Command(d.path, args...)
	c.Env = append(append(os.Environ(), "DISDEL_HOME="+d.home), d.env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

// ran is what a command of disdel came to.
type ran struct {
	out, err string
	code     int
	took     time.Duration
}

func (r ran) String() string {
	return fmt.Sprintf("exit %d after %v\n%s%s", r.code, r.took, r.out, r.err)
}

// run waits for a command; one that does not end within the time is killed and fails the test: nothing may hang.
func (d disdelIn) run(t *testing.T, within time.Duration, args ...string) ran {
	t.Helper()
	p := d.start(t, args...)
	return p.wait(t, within)
}

// process is a command that runs.
type process struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
	began    time.Time
	done     chan struct{}
}

func (d disdelIn) start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: d.command(args...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	p.launch(t)
	return p
}

// launch starts the command. It ends with the test.
func (p *process) launch(t *testing.T) {
	t.Helper()
	p.began, p.done = time.Now(), make(chan struct{})
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.cmd.Wait() //nolint:errcheck // its exit code is looked at
		close(p.done)
	}()
	t.Cleanup(p.kill)
}

func (p *process) kill() {
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	<-p.done
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) wait(t *testing.T, within time.Duration) ran {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		p.kill()
		t.Fatalf("%v still ran after %v\n%s%s", p.cmd.Args, within, p.out.String(), p.err.String())
	}
	return ran{p.out.String(), p.err.String(), p.cmd.ProcessState.ExitCode(), time.Since(p.began)}
}

// patience is for what takes seconds on a quiet machine: tests do not depend on how fast theirs is.
const patience = 5 * time.Minute

// record is what a command printed with -o json.
func record(t *testing.T, r ran) disdel.Record {
	t.Helper()
	var rec disdel.Record
	if err := json.Unmarshal([]byte(r.out), &rec); err != nil {
		t.Fatalf("no record: %v: %v", err, r)
	}
	return rec
}

// weights is a checksum of the tensors of a record's model: the file's metadata has the job's id.
func (d disdelIn) weights(t *testing.T, rec disdel.Record) string {
	t.Helper()
	if rec.Model == nil {
		t.Fatalf("%s ended as %v without a model: %v", rec.ID, rec.Status, rec.Failure)
	}
	data, err := os.ReadFile(filepath.Join(d.home, "models", rec.Model.Path))
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	for _, tensor := range f.Tensors {
		fmt.Fprintln(sum, tensor.Name, tensor.Shape)
		sum.Write(tensor.Data)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// job writes a job file on the digits and returns its path.
func (d disdelIn) job(t *testing.T, name, rest string) string {
	t.Helper()
	text := fmt.Sprintf(`apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: %s}
model: {name: digits-cnn}
data: {source: "dataset://digits"}
%s`, name, rest)
	file := filepath.Join(d.home, name+".yaml")
	if err := errors.Join(os.MkdirAll(d.home, 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return file
}

// shortJob is a job of a few seconds; rounds are epochs of two workers.
func shortJob(epochs int) string {
	return fmt.Sprintf(`training: {epochs: %d, batchSize: 32, optimizer: {adam: {learningRate: 0.001}}}
distribution: {workers: 2, sync: epoch}
reliability: {checkpointEvery: 1, retries: {limit: 1000, perWorker: 1000, backoff: {initial: 20ms, max: 500ms}}}
`, epochs)
}

// newHome is a home with the digits in it.
func newHome(t *testing.T) disdelIn {
	t.Helper()
	d := disdelIn{path: program(t), home: filepath.Join(t.TempDir(), "home")}
	if r := d.run(t, patience, "dataset", "add", "digits", "-q"); r.code != 0 {
		t.Fatal(r)
	}
	return d
}

// program is the built disdel: make robust builds it.
func program(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/disdel")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: make build", err)
	}
	return path
}
