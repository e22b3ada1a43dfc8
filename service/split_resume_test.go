package service

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// stopAfter stops a job once it has ended so many more rounds, and returns its record.
func stopAfter(t *testing.T, run *Run, rounds int) disdel.Record {
	t.Helper()
	for e := range run.Events() {
		if _, ok := e.What.(RoundEnded); ok {
			if rounds--; rounds == 0 {
				break
			}
		}
	}
	run.Cancel(errors.New("enough"))
	rec, err := run.Wait(t.Context())
	if err != nil || rec.Status != disdel.StatusCanceled || rec.Checkpoint == nil {
		t.Fatalf("%v, %v: %v at %+v", err, rec.Status, rec.Failure, rec.Checkpoint)
	}
	return rec
}

// A job that is stopped twice at drawn rounds, and resumed, comes to the bits of one that was not stopped.
func TestAJobInThreePartsComesToTheSameBits(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 39))
	draw := func(of ...string) string { return of[rng.IntN(len(of))] }
	sets := []string{
		"reliability.checkpointEvery=1", draw("distribution.workers=1", "distribution.workers=2", "distribution.workers=3"),
		"distribution.aggregation.optimizer=" + draw("average", "reset", "keep"),
		"training.optimizer=" + draw("{sgd: {learningRate: 0.1, momentum: 0.9}}", "{adam: {learningRate: 0.004}}"),
		draw("training.clipNorm=1", "data.augment={flip: true}", "training.validateEvery=2"),
	}
	t.Logf("seed %d: %q", seed, sets)
	s := opened(t, t.TempDir())
	first := submit(t, s, small(t, append(sets, "training.epochs=300")...))
	done := stopAfter(t, first, 1+rng.IntN(3))
	second, err := s.Resume(t.Context(), ResumeRequest{Job: string(first.ID())})
	if err != nil {
		t.Fatal(err)
	}
	was := stopAfter(t, second, 1+rng.IntN(3))
	if len(was.Rounds) <= len(done.Rounds) {
		t.Errorf("%d rounds after %d", len(was.Rounds), len(done.Rounds))
	}
	epochs := fmt.Sprintf("training.epochs=%d", len(was.Rounds)+2)
	third, err := s.Resume(t.Context(), ResumeRequest{Job: string(first.ID()), Sets: []string{epochs}})
	if err != nil {
		t.Fatal(err)
	}
	rec := passed(t, third)
	whole := passed(t, submit(t, s, small(t, append(sets, epochs)...)))
	if rec.Resumes != 2 || len(rec.Rounds) != len(whole.Rounds) {
		t.Errorf("%d resumes, %d rounds, %d undisturbed", rec.Resumes, len(rec.Rounds), len(whole.Rounds))
	}
	if !sameWeights(learned(t, s, *whole.Model), learned(t, s, *rec.Model)) {
		t.Error("it came to other weights than a job that was not stopped")
	}
}
