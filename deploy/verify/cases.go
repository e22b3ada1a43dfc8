package verify

import (
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/service"
)

// short is the timeout of probes that end at once.
const short = disdel.Millis(time.Minute)

// protocol creates, reads, changes, invokes and removes an action.
func (r *run) protocol(ctx context.Context) (string, error) {
	wanted := executor.DeployedAction{
		Name: "protocol", Kind: disdel.RuntimeKind, Image: r.Image, Main: string(disdel.TaskProbe), Code: "disdel",
		Memory: r.limits.MinMemory, Timeout: time.Duration(min(short, r.limits.MaxTimeout)),
		Annotations: map[string]any{"description": "of disdel verify"},
	}
	if r.Image != "" {
		wanted.Kind = "blackbox"
	}
	if err := r.executor.PutPackage(ctx, executor.Deployment{Package: r.pkg}); err != nil {
		return "", err
	}
	var versions []string
	for range 2 {
		if err := r.executor.PutAction(ctx, r.pkg, wanted); err != nil {
			return "", err
		}
		is, err := r.executor.Deployment(ctx, r.pkg)
		if err != nil {
			return "", err
		}
		if err := same(wanted, is); err != nil {
			return "", err
		}
		versions = append(versions, is.Actions[0].Version)
	}
	if versions[0] == versions[1] {
		return "", fmt.Errorf("an action that was replaced kept its version %s", versions[0])
	}
	if err := r.invokeTwice(ctx, wanted); err != nil {
		return "", err
	}
	if err := r.executor.RemoveAction(ctx, r.pkg, wanted.Name); err != nil {
		return "", err
	}
	err := r.executor.RemoveAction(ctx, r.pkg, wanted.Name)
	if disdel.KindOf(err) != disdel.NotFound {
		return "", fmt.Errorf("an action that was removed is answered with %w", err)
	}
	return fmt.Sprintf("made, read, replaced (%s), invoked and removed", strings.Join(versions, ", then ")), nil
}

func same(wanted executor.DeployedAction, is executor.Deployment) error {
	if len(is.Actions) != 1 {
		return fmt.Errorf("a package with one action lists %d", len(is.Actions))
	}
	got := is.Actions[0]
	if got.Memory != wanted.Memory || got.Timeout != wanted.Timeout || got.Main != wanted.Main ||
		got.Annotations["description"] != wanted.Annotations["description"] {
		return fmt.Errorf("an action came back as %+v", got)
	}
	return nil
}

// invokeTwice invokes an action without blocking and with blocking, and compares the records.
func (r *run) invokeTwice(ctx context.Context, d executor.DeployedAction) error {
	inv := disdel.Invocation{
		ID: "verify/protocol", Task: disdel.TaskProbe, Action: disdel.ActionName(r.pkg + "/" + d.Name), Attempt: 1,
		Limits: disdel.Limits{Memory: d.Memory, Timeout: disdel.Millis(d.Timeout)},
	}
	a, err := r.invoke(ctx, inv, disdel.ProbeRequest{})
	switch {
	case err != nil:
		return err
	case a.Failure != nil:
		return a.Failure
	case !a.Cold || a.Duration <= 0 || a.End.Before(a.Start):
		return fmt.Errorf("the first record says: cold %v, %v from %v to %v", a.Cold, time.Duration(a.Duration), a.Start,
			a.End)
	}
	inv.Params = json.RawMessage("{}")
	id, err := r.executor.InvokeBlocking(ctx, inv)
	if err != nil {
		return err
	}
	if a, err = r.executor.Wait(ctx, inv, id); err != nil {
		return err
	}
	var res disdel.ProbeResult
	if err := json.Unmarshal(a.Result, &res); err != nil || res.Processors < 1 {
		return fmt.Errorf("a blocking invocation's record has %s", a.Result)
	}
	return nil
}

// refusals asks for more than the platform's limits.
func (r *run) refusals(ctx context.Context) (string, error) {
	over := []disdel.Limits{
		{Memory: r.limits.MaxMemory + disdel.MB, Timeout: r.limits.MinTimeout},
		{Memory: r.limits.MinMemory, Timeout: r.limits.MaxTimeout + disdel.Millis(time.Second)},
	}
	for _, l := range over {
		plan := disdel.ActionPlan{Task: disdel.TaskProbe, Name: disdel.ActionName(r.pkg + "/over"), Limits: l}
		err := r.executor.Prepare(ctx, r.pkg, []disdel.ActionPlan{plan})
		if disdel.KindOf(err) != disdel.OverLimit {
			return "", fmt.Errorf("%v and %v are answered with %w, and not refused for the limit", l.Memory,
				time.Duration(l.Timeout), err)
		}
	}
	return fmt.Sprintf("more than %v and more than %v are refused", r.limits.MaxMemory,
		time.Duration(r.limits.MaxTimeout)), nil
}

// outOfMemory lets an action allocate twice its memory.
func (r *run) outOfMemory(ctx context.Context) (string, error) {
	inv, err := r.action(ctx, "memory", short)
	if err != nil {
		return "", err
	}
	a, err := r.invoke(ctx, inv, disdel.ProbeRequest{Touch: 2 * inv.Limits.Memory})
	switch {
	case err != nil:
		return "", err
	case a.Outcome == disdel.OutcomeOutOfMemory:
		return strings.Join(a.Evidence, "; "), nil
	case a.Outcome.Failed():
		return "", fmt.Errorf("it was ended, and taken for %v: %s", a.Outcome, strings.Join(a.Evidence, "; "))
	default:
		return "", fmt.Errorf("an action of %v took twice that, and nothing ended it", inv.Limits.Memory)
	}
}

// ignoreDeadlineFor is how long an action runs beyond a deadline of a few seconds.
const (
	deadline          = disdel.Millis(3 * time.Second)
	ignoreDeadlineFor = disdel.Millis(time.Minute)
)

// timeout lets an action ignore its deadline.
func (r *run) timeout(ctx context.Context) (string, error) {
	inv, err := r.action(ctx, "timeout", deadline)
	if err != nil {
		return "", err
	}
	a, err := r.invoke(ctx, inv, disdel.ProbeRequest{Deaf: true, Hold: ignoreDeadlineFor})
	switch {
	case err != nil:
		return "", err
	case a.Outcome != disdel.OutcomeTimeout:
		return "", fmt.Errorf("an action that goes on beyond its %v is taken for %v: %s",
			time.Duration(inv.Limits.Timeout), a.Outcome, strings.Join(a.Evidence, "; "))
	}
	return fmt.Sprintf("ended after %v of %v", time.Duration(a.Duration), time.Duration(inv.Limits.Timeout)), nil
}

// maxQuotaTried is the largest quota that is tried: a larger one would fill a cluster's whole pool.
const maxQuotaTried = 40

// throttle asks for more concurrent activations than the namespace may have.
func (r *run) throttle(ctx context.Context) (string, error) {
	maximum := r.limits.Concurrent
	if q, err := r.executor.Quotas(ctx); err == nil && q.Concurrent > 0 {
		maximum = q.Concurrent
	}
	if maximum == 0 || maximum > maxQuotaTried {
		return "", skip("%d activations at once are allowed, and up to %d are tried", maximum, maxQuotaTried)
	}
	board, store, err := r.Service.Board(ctx)
	if err != nil {
		return "", err
	}
	inv, err := r.action(ctx, "throttle", short)
	if err != nil {
		return "", err
	}
	probes := disdel.JobID("job-" + strings.ToLower(ulid.Make().String()))
	defer board.Sweep(context.WithoutCancel(ctx), probes) //nolint:errcheck // every key expires
	var accepted []disdel.ActivationID
	var refusal error
	for i := range maximum + maximum/2 + 2 {
		ask := disdel.ProbeRequest{Probes: probes, Member: i, Store: &store, Hold: inv.Limits.Timeout * 4 / 5}
		if inv.Params, err = json.Marshal(ask); err != nil {
			return "", err
		}
		id, err := r.executor.InvokeOnce(ctx, inv)
		if err != nil {
			refusal = err
			break
		}
		accepted = append(accepted, id)
	}
	if err := board.Cancel(ctx, probes); err != nil {
		return "", err
	}
	for _, id := range accepted {
		if _, err := r.executor.Wait(ctx, inv, id); err != nil {
			return "", err
		}
	}
	e := disdel.AsError(refusal)
	if refusal == nil || e.Code != disdel.CodeQuotaConcurrent && e.Code != disdel.CodeQuotaMinute {
		return "", fmt.Errorf("%d were taken where %d are allowed; then: %w", len(accepted), maximum, refusal)
	}
	return fmt.Sprintf("%d were taken, the next one was refused and told to come later", len(accepted)), nil
}

// lostContainer lets an action's process end without an answer, and invokes the action again.
func (r *run) lostContainer(ctx context.Context) (string, error) {
	inv, err := r.action(ctx, "lost", short)
	if err != nil {
		return "", err
	}
	a, err := r.invoke(ctx, inv, disdel.ProbeRequest{Exit: true})
	if err != nil {
		return "", err
	}
	if !a.Outcome.Failed() || a.Outcome == disdel.OutcomeApplicationError {
		return "", fmt.Errorf("a process that ended without an answer is taken for %v", a.Outcome)
	}
	again, err := r.invoke(ctx, inv, disdel.ProbeRequest{})
	switch {
	case err != nil:
		return "", err
	case again.Failure != nil:
		return "", again.Failure
	}
	return fmt.Sprintf("told as %v; the next activation had a container of its own", a.Outcome), nil
}

// jobText is a job that takes seconds; each epoch is a round.
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

// minAccuracy is the accuracy on held-out digits that shows learning; guessing has 0.1.
const minAccuracy = 0.5

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

// succeeded returns why a job is not as expected, or nil.
func succeeded(rec *disdel.Record, err error) error {
	switch {
	case err != nil:
		return err
	case rec.Failure != nil:
		return rec.Failure
	case rec.Status != disdel.StatusSucceeded:
		return fmt.Errorf("job %s is %v", rec.ID, rec.Status)
	case rec.Accuracy < minAccuracy:
		return fmt.Errorf("job %s learned nothing: accuracy %.3f", rec.ID, rec.Accuracy)
	}
	return nil
}

// Settings of the case with a killed controller. Small batches make a round long enough to observe.
const (
	smallBatch   = 8
	lookEvery    = 50 * time.Millisecond
	beginsWithin = 3 * time.Minute
)

// errOver is the error of a job that ended before its controller could be killed.
var errOver = errors.New("the job was over before its controller could be killed")

// killedController starts a process that submits a job, kills it after the first round, and resumes the job here. If
// the job ends too early, it tries a longer one.
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
	// A round that ended just before the kill may be missing in the record, but not the last round.
	if n := len(rec.Rounds); rec.Resumes == 0 || n == 0 || rec.Rounds[n-1].Round != rounds-1 {
		return "", fmt.Errorf("job %s was resumed %d times, and does not end with round %d", id, rec.Resumes, rounds)
	}
	return fmt.Sprintf("killed after round %d of %d, resumed and finished", seen, rounds), nil
}

// submitAndKill returns the job that another process started, and its number of rounds when that process was killed.
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
	var output bytes.Buffer
	child := exec.CommandContext(ctx, r.Program, "submit", file, "--quiet", "--plain")
	child.Env, child.Stderr, child.WaitDelay = r.Environment, &output, time.Second
	if err := child.Start(); err != nil {
		return "", 0, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := child.Wait(); err != nil && ctx.Err() == nil {
			stop(fmt.Errorf("the process that submits the job ended: %w: %s", err, strings.TrimSpace(output.String())))
		}
	}()
	id, seen, err := r.waitForRound(ctx, name)
	stop(nil)
	child.Process.Kill() //nolint:errcheck // it may have ended
	<-ended
	return id, seen, err
}

// waitForRound waits until a job's record has a round.
func (r *run) waitForRound(ctx context.Context, name string) (id disdel.JobID, rounds int, err error) {
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
