package faults

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
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
)

// process is a disdel that runs a job.
type process struct {
	home     string
	cmd      *exec.Cmd
	out, err bytes.Buffer
	done     chan struct{}
	fail     error
}

func (r *Rig) start(home string, args ...string) *process {
	p := &process{home: home, cmd: r.command(home, append(args, "-o", "json", "-q")...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if p.fail = p.cmd.Start(); p.fail != nil {
		close(p.done)
		return p
	}
	go func() {
		p.fail = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

// errNotAccepted is a job that disdel was killed before it had accepted: there is nothing to lose.
var errNotAccepted = errors.New("the job was not accepted")

// errSucceeded is a job that disdel was killed after: all that was left was to say so.
var errSucceeded = errors.New("the job has succeeded")

// wait returns what the job came to, and its record.
func (p *process) wait() (res result, rec disdel.Record, err error) {
	<-p.done
	if p.fail != nil {
		return res, rec, p.failure()
	}
	if err := json.Unmarshal(p.out.Bytes(), &rec); err != nil {
		return res, rec, err
	}
	if rec.Model == nil {
		return res, rec, fmt.Errorf("%s ended as %v without a model", rec.ID, rec.Status)
	}
	sum, err := weightsOf(filepath.Join(p.home, "models", rec.Model.Path))
	return result{sum, rec.Accuracy}, rec, err
}

// failure is what a disdel said that did not come to a record: its error is the last line, in JSON.
func (p *process) failure() error {
	var reply struct{ Code disdel.Code }
	lines := bytes.Split(bytes.TrimSpace(p.err.Bytes()), []byte{'\n'})
	_ = json.Unmarshal(lines[len(lines)-1], &reply) // what is no JSON is no error of disdel's, and is told as it stands
	switch reply.Code {
	case disdel.CodeNoJob: // of "@last": none was accepted
		return errNotAccepted
	case disdel.CodeSucceeded:
		return errSucceeded
	}
	return fmt.Errorf("%w: %s", p.fail, bytes.TrimSpace(p.err.Bytes()))
}

// runs waits for d and tells whether the process still runs.
func (p *process) runs(d time.Duration) bool {
	select {
	case <-p.done:
		return false
	case <-time.After(d):
		return true
	}
}

// weightsOf is a checksum of a file's tensors: its metadata has the job's id.
func weightsOf(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, t := range f.Tensors {
		fmt.Fprintln(sum, t.Name, t.Shape)
		sum.Write(t.Data)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
