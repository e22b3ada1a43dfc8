package service

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/scheduler"
)

// The tests are the containers of their platforms.
func TestMain(m *testing.M) {
	if megabytes, err := strconv.Atoi(os.Getenv(ballast)); err == nil {
		hold(megabytes)
	}
	if served, _ := ServeActions(context.Background(), os.Args); served {
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// testProgram is the program that tests start as containers; empty: themselves. Under the race detector each container
// would start and compute many times as long: what actions do is tested by their own package.
var testProgram = os.Getenv("DISDEL_TEST_PROGRAM")

const smallJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: small}
model: {name: digits-cnn}
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 2, batchSize: 64, optimizer: {adam: {learningRate: 0.004}}}
`

func small(t testing.TB, sets ...string) disdel.Job {
	t.Helper()
	file, err := jobfile.Parse("small.yaml", []byte(smallJob), sets)
	if err != nil {
		t.Fatal(err)
	}
	return file.Job
}

// opened is a Service with digits in a home.
func opened(t testing.TB, home string) *Service {
	t.Helper()
	s, err := Open(t.Context(), Config{Program: testProgram, Home: home})
	if err == nil {
		err = s.AddDigits(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func submit(t testing.TB, s *Service, job disdel.Job) *Run {
	t.Helper()
	run, err := s.Submit(t.Context(), Request{Job: job})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// after waits until something of a kind has happened.
func after[T EventData](r *Run) bool {
	for e := range r.Events() {
		if _, ok := e.What.(T); ok {
			return true
		}
	}
	return false
}

// Two jobs at once: each has its own events, one is cancelled and resumed, and the other does not notice.
func TestJobsAtOnceAreSeenAndStoppedByThemselves(t *testing.T) {
	s := opened(t, t.TempDir())
	long, short := submit(t, s, small(t, "training.epochs=300")), submit(t, s, small(t))
	if found, ok := s.Run(long.ID()); !ok || found != long {
		t.Error("a job that runs is not found")
	}
	if !after[RoundEnded](long) {
		t.Fatal("no round of the long job")
	}
	for e := range long.Events() { // who looks sees what he was told, long before it is saved
		round, ok := e.What.(RoundEnded)
		if !ok {
			continue
		}
		rec, err := s.Look(t.Context(), string(long.ID()))
		if err != nil || len(rec.Rounds) <= round.Round.Round || rec.Status != disdel.StatusRunning {
			t.Fatalf("after round %d the record has %d, %v, %v", round.Round.Round, len(rec.Rounds), rec.Status, err)
		}
		if round.Round.Round == 2 {
			break
		}
	}
	if h, err := s.History(t.Context()); err != nil {
		t.Error(err)
	} else if rec, err := h.Get(t.Context(), long.ID()); err != nil || rec.Status != disdel.StatusRunning {
		t.Errorf("the record of a job that runs: %v, %v", rec.Status, err)
	}
	if _, err := s.Resume(t.Context(), ResumeRequest{Job: string(long.ID())}); !errors.Is(err, disdel.Conflict) ||
		!strings.Contains(err.Error(), "this process runs") {
		t.Errorf("a job that runs is taken up: %v", err)
	}
	why := errors.New("enough")
	long.Cancel(why)
	canceled, err := long.Wait(t.Context())
	if err != nil || canceled.Status != disdel.StatusCanceled || !errors.Is(canceled.Failure, why) {
		t.Errorf("%v, %v: %v", err, canceled.Status, canceled.Failure)
	}
	rec, err := short.Wait(t.Context())
	if seen, err := s.Look(t.Context(), string(short.ID())); err != nil || seen.Status != rec.Status ||
		len(seen.Rounds) != len(rec.Rounds) {
		t.Errorf("a look at a job that ended: %v, %v", seen.Status, err)
	}
	if err != nil || rec.Status != disdel.StatusSucceeded || len(rec.Rounds) != 2 {
		t.Errorf("the other one: %v, %v, %d rounds", err, rec.Status, len(rec.Rounds))
	}
	rows, right := 0, 0
	for class := range rec.ByClass.Rows {
		rows, right = rows+rec.ByClass.Rows[class], right+rec.ByClass.Right[class]
	}
	if rows != rec.Data.HeldOut || float64(right)/float64(rows) != rec.Accuracy {
		t.Errorf("%d of %d rows are right by class, %v of %d in all", right, rows, rec.Accuracy, rec.Data.HeldOut)
	}
	for _, r := range []*Run{long, short} {
		seen := slices.Collect(r.Events())
		if _, ok := seen[len(seen)-1].What.(Finished); !ok || !slices.IsSorted(numbers(seen)) {
			t.Errorf("%v is the last of %d events", seen[len(seen)-1], len(seen))
		}
		for _, e := range seen {
			if e.Job != r.ID() {
				t.Errorf("%v among the events of %s", e, r.ID())
			}
		}
	}
	again, err := s.Resume(t.Context(), ResumeRequest{
		Job: string(long.ID()), Sets: []string{"training.earlyStop={metric: loss, target: 1000}"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if rec, err := again.Wait(t.Context()); err != nil || rec.Status != disdel.StatusSucceeded || rec.Resumes != 1 ||
		rec.Rounds[0].Round != 0 {
		t.Errorf("taken up: %v, %v after %d resumes", err, rec.Status, rec.Resumes)
	}
}

// The end of a Service is the end of its jobs, which are told why; what comes later is refused.
func TestCloseStopsWhatRuns(t *testing.T) {
	home := t.TempDir()
	s := opened(t, home)
	run := submit(t, s, small(t, "training.epochs=300"))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	rec, err := run.Wait(t.Context())
	if err != nil || rec.Status != disdel.StatusCanceled || !errors.Is(rec.Failure, errClosed) {
		t.Errorf("%v, %v: %v", err, rec.Status, rec.Failure)
	}
	next := opened(t, home)
	if who, runs, err := next.Runner(t.Context(), run.ID()); runs || err != nil {
		t.Errorf("%s runs it still: %v", who.Text, err)
	}
}

// A job is refused before anything runs: with all of its faults, with the arithmetic, or because its caller went away.
func TestWhatIsRefused(t *testing.T) {
	s := opened(t, t.TempDir())
	var faults *disdel.Faults
	if _, err := s.Submit(t.Context(),
		Request{Job: small(t, "data.source=dataset://none"), Source: Source{Name: "x.yaml"}}); !errors.As(err, &faults) ||
		faults.File != "x.yaml" {
		t.Errorf("a data set that is not there: %v", err)
	}
	if _, err := s.Submit(t.Context(), Request{Job: small(t, "resources.maxMemory=2MB")}); !errors.Is(err,
		disdel.OverLimit) {
		t.Errorf("a job that does not fit: %v", err)
	}
	gone, stop := context.WithCancelCause(t.Context())
	stop(errors.New("gone"))
	if run, err := s.Submit(gone, Request{Job: small(t)}); err == nil {
		run.Cancel(nil)
		t.Errorf("%s is acknowledged to nobody", run.ID())
	}
	if h, err := s.History(t.Context()); err != nil {
		t.Error(err)
	} else if list, err := h.Leases(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("leases of jobs that were never begun: %v, %v", list, err)
	}
	if _, err := Open(t.Context(), Config{}); !errors.Is(err, disdel.Invalid) {
		t.Errorf("no home: %v", err)
	}
}

// Questions are answered without running anything; a job that does not fit can be asked about all the same.
func TestEstimateAnswersQuestions(t *testing.T) {
	s := opened(t, t.TempDir())
	req := Request{Job: small(t)}
	q := Questions{
		Explain: true, MaxMemory: 128 * disdel.MB, Grid: &scheduler.Grid{Workers: []int{1, 2}},
		Against: scheduler.AgainstCost,
	}
	e, err := s.Estimate(t.Context(), req, q)
	if err != nil || e.Plan == nil || e.Explain == nil || e.Fit == nil || len(e.WhatIf.Cells) != 2 || e.Err() != nil {
		t.Fatalf("%+v, %v", e, err)
	}
	req.Job = small(t, "resources.maxMemory=2MB")
	if e, err = s.Estimate(t.Context(), req, Questions{Explain: true}); err != nil || e.Refused == nil ||
		!errors.Is(e.Err(), disdel.OverLimit) {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err = s.Estimate(t.Context(), req, Questions{}); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("%v", err)
	}
}

// Several ask at once for what is not open yet: it is opened once.
func TestPartsAreOpenedOnce(t *testing.T) {
	s := opened(t, t.TempDir())
	var all sync.WaitGroup
	found := make([]Parts, 4)
	for i := range found {
		all.Go(func() {
			var err error
			if found[i], err = s.Parts(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, p := range found[1:] {
		if p.History != found[0].History || p.Executor != found[0].Executor || p.Board != found[0].Board {
			t.Error("there are two")
		}
	}
}
