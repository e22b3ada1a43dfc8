package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/service"
)

// jobText is a job of a name that takes seconds: an epoch is a round, by one worker or two.
func jobText(name string, workers, epochs, batch int) []byte {
	return fmt.Appendf(nil, `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: %s}
model: {name: digits-cnn}
data: {source: "dataset://digits", split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: %d, batchSize: %d, optimizer: {adam: {learningRate: 0.002}}}
distribution: {workers: %d, sync: epoch}
output: {model: disdel-verify}
`, name, epochs, batch, workers)
}

// learned is the accuracy on held-out digits from which on a network has learned something: a guess has 0.1.
const learned = 0.5

// smallJob trains a network with two workers.
func (r *run) smallJob(ctx context.Context) (string, error) {
	if err := r.Service.AddDigits(ctx); err != nil {
		return "", err
	}
	file, err := jobfile.Parse("verify.yaml", jobText("disdel-verify", 2, 4, 32), nil)
	if err != nil {
		return "", err
	}
	job, err := r.Service.Submit(ctx, service.Request{Job: file.Job})
	if err != nil {
		return "", err
	}
	rec, err := job.Wait(ctx)
	if err := succeeded(&rec, err); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d rounds of %d workers, accuracy %.3f", len(rec.Rounds), rec.Plan.Workers, rec.Accuracy), nil
}

// succeeded is why a job is not as it should be.
func succeeded(rec *disdel.Record, err error) error {
	switch {
	case err != nil:
		return err
	case rec.Failure != nil:
		return rec.Failure
	case rec.Status != disdel.StatusSucceeded:
		return fmt.Errorf("job %s is %v", rec.ID, rec.Status)
	case rec.Accuracy < learned:
		return fmt.Errorf("job %s learned nothing: accuracy %.3f", rec.ID, rec.Accuracy)
	}
	return nil
}

// Bounds of the case whose controller is killed: batches so small that a round takes a while, and how soon and how
// often it is looked whether one is over.
const (
	smallBatch   = 8
	lookEvery    = 50 * time.Millisecond
	beginsWithin = 3 * time.Minute
)

// errOver is of a job that was over before its controller could be killed.
var errOver = errors.New("the job was over before its controller could be killed")

// killedController has a process of its own submit a job, kills it after the first round, and resumes the job here. A
// machine that is too fast, or too busy to look, gets a longer job.
func (r *run) killedController(ctx context.Context) (detail string, err error) {
	if r.Program == "" {
		return "", skip("this program cannot start itself")
	}
	for _, rounds := range []int{12, 48} {
		detail, err = r.killAndResume(ctx, rounds)
		if !errors.Is(err, errOver) {
			return detail, err
		}
	}
	return detail, err
}

func (r *run) killAndResume(ctx context.Context, rounds int) (string, error) {
	name := "disdel-verify-" + strings.ToLower(ulid.Make().String())
	id, seen, err := r.submitAndKill(ctx, name, rounds)
	if err != nil {
		return "", err
	}
	again, err := r.Service.Resume(ctx, service.ResumeRequest{Job: string(id)})
	if err != nil {
		return "", err
	}
	rec, err := again.Wait(ctx)
	if err := succeeded(&rec, err); err != nil {
		return "", err
	}
	// A round that ended just before the kill may be missing in the record, and never the last one.
	if n := len(rec.Rounds); rec.Resumes == 0 || n == 0 || rec.Rounds[n-1].Round != rounds-1 {
		return "", fmt.Errorf("job %s was resumed %d times, and does not end with round %d", id, rec.Resumes, rounds)
	}
	return fmt.Sprintf("killed after round %d of %d, resumed and finished", seen, rounds), nil
}

// submitAndKill is the job that another process began, and how many rounds it had when that was killed.
func (r *run) submitAndKill(ctx context.Context, name string, rounds int) (disdel.JobID, int, error) {
	folder, err := os.MkdirTemp("", "disdel-verify-")
	if err != nil {
		return "", 0, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "job.yaml")
	if err := os.WriteFile(file, jobText(name, 1, rounds, smallBatch), 0o600); err != nil {
		return "", 0, err
	}
	var said bytes.Buffer
	child := exec.CommandContext(ctx, r.Program, "submit", file, "--quiet", "--plain")
	child.Env, child.Stderr, child.WaitDelay = r.Environment, &said, time.Second
	if err := child.Start(); err != nil {
		return "", 0, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := child.Wait(); err != nil && ctx.Err() == nil {
			stop(fmt.Errorf("the process that submits the job ended: %w: %s", err, strings.TrimSpace(said.String())))
		}
	}()
	id, seen, err := r.afterARound(ctx, name)
	stop(nil)
	child.Process.Kill() //nolint:errcheck // it may have ended
	<-ended
	return id, seen, err
}

// afterARound waits until a job has a round in its record.
func (r *run) afterARound(ctx context.Context, name string) (id disdel.JobID, rounds int, err error) {
	h, err := r.Service.History(ctx)
	if err != nil {
		return "", 0, err
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for begun := time.Now(); time.Since(begun) < beginsWithin; {
		if id, err = h.Resolve(ctx, name); err == nil {
			rec, err := h.Get(ctx, id)
			switch {
			case err != nil:
				return id, 0, err
			case !rec.Status.Unfinished():
				return id, 0, fmt.Errorf("%w: %s is %v", errOver, id, rec.Status)
			case len(rec.Rounds) > 0:
				return id, len(rec.Rounds), nil
			}
		} else if disdel.KindOf(err) != disdel.NotFound {
			return "", 0, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", 0, context.Cause(ctx)
		}
	}
	return "", 0, fmt.Errorf("the process that submits it had no round after %v", beginsWithin)
}
