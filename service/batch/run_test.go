package batch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service"
)

// The tests are the containers of their platforms.
func TestMain(m *testing.M) {
	if served, _ := service.ServeActions(context.Background(), os.Args); served {
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const smallJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: small}
model: {name: digits-cnn}
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 2, batchSize: 64, optimizer: {adam: {learningRate: 0.004}}}
`

// opened is a service with digits, and a pool that has room for one gang of smallJob.
func opened(t testing.TB, home string) *service.Service {
	t.Helper()
	s, err := service.Open(t.Context(), service.Config{Home: home, Pool: 600 * disdel.MB})
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

func read(t testing.TB, text string, sets ...string) []Job {
	t.Helper()
	list, wrong := Read([]File{{Name: "jobs.yaml", Text: []byte(text)}}, sets, service.Request{Origin: &disdel.Origin{}})
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return list
}

// Jobs of a batch stand in the one queue: where the pool has room for one they run one after another. One that fails on
// the way stops no other, and neither does one that is refused.
func TestABatchRunsInOneQueue(t *testing.T) {
	s := opened(t, t.TempDir())
	list := read(t, smallJob+"matrix: {training.epochs: [1, 2]}\n---\n"+
		smallJob+"reliability: {deadline: 1s}\nmatrix: {training.epochs: [1000]}\n---\n"+
		smallJob+"resources: {memory: 900MB}\n")
	if wrong := Check(t.Context(), In(s), list[:3]); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	waited := 0
	sum, err := Start(t.Context(), In(s), Config{Jobs: list, Observe: func(v *View) {
		waited = max(waited, v.Now.Waiting)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Counts != (Counts{Succeeded: 2, Failed: 2}) || waited == 0 || len(sum.Jobs) != 4 || sum.Makespan <= 0 {
		t.Errorf("%+v, %d waited", sum.Counts, waited)
	}
	if sum.Pool.MostReserved > 600*disdel.MB || sum.Pool.MostReserved == 0 || sum.Pool.ReservedGBs <= 0 {
		t.Errorf("reserved %v of a pool of 600 MB", sum.Pool.MostReserved)
	}
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range sum.Jobs {
		if r.Job == "" {
			continue
		}
		rec, err := h.Get(t.Context(), r.Job)
		if err != nil || rec.Status != r.Status || rec.CostGBs != r.CostGBs || rec.Origin.File != "" {
			t.Errorf("%s: %v, %v, the record says %v", r.Name, r.Status, err, rec.Status)
		}
	}
	if best, ok := sum.Jobs[0].Result(); !ok || best.Accuracy == nil || sum.Jobs[0].Status != disdel.StatusSucceeded {
		t.Errorf("the best is %+v", sum.Jobs[0])
	}
}

// Cancelled in the middle, a batch has every job cancelled, those too that wait, and comes back with all of them.
func TestACanceledBatchCancelsEveryJob(t *testing.T) {
	s := opened(t, t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	sum, err := Start(ctx, In(s), Config{
		Jobs: read(t, smallJob+"matrix: {training.epochs: [300, 301, 302]}\n"), Observe: func(v *View) {
			if v.Rows[0].Rounds > 0 && v.Now.Waiting == 2 {
				cancel(why)
			}
		},
	})
	if !errors.Is(err, disdel.Canceled) || !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if sum.Counts != (Counts{Canceled: 3}) {
		t.Fatalf("%+v", sum.Counts)
	}
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range sum.Jobs {
		if rec, err := h.Get(t.Context(), r.Job); err != nil || rec.Status != disdel.StatusCanceled {
			t.Errorf("%s: %v, %v", r.Name, rec.Status, err)
		}
	}
}

// All that is wrong is told at once, each file's faults together: of files, of data sets, and of plans.
func TestACheckTellsAllThatIsWrong(t *testing.T) {
	s := opened(t, t.TempDir())
	bad := File{Name: "bad.yaml", Text: []byte(strings.Replace(smallJob, "batchSize: 64", "batchSize: none", 1) +
		"matrix: {data.source: [\"dataset://nothing\", \"dataset://digits\"], training.epochs: [1, 2]}\n")}
	other := File{Name: "other.yaml", Text: []byte(strings.Replace(smallJob, "digits-cnn", "digits-cn", 1))}
	list, faults := Read([]File{bad, other}, nil, service.Request{})
	wrong := Check(t.Context(), In(s), list, faults...)
	var got []string
	for _, err := range wrong {
		var f *disdel.Faults
		if !errors.As(err, &f) {
			t.Fatal(err)
		}
		for _, one := range f.Faults {
			got = append(got, fmt.Sprintf("%s:%d %s", f.File, one.Line, one.Path))
		}
	}
	const want = "bad.yaml:6 training.batchSize, bad.yaml:7 data.source, other.yaml:4 model.name"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("%s", text)
	}
	wrong = Check(t.Context(), In(s), read(t, smallJob+"distribution: {workers: 12}\n---\n"+smallJob))
	if len(wrong) != 0 { // it runs in waves
		t.Error(wrong)
	}
	wrong = Check(t.Context(), In(s), read(t, smallJob+"resources: {memory: 900MB}\n---\n"+smallJob))
	if len(wrong) != 1 || !errors.Is(wrong[0], disdel.OverLimit) || !strings.Contains(wrong[0].Error(), "plan small") {
		t.Errorf("%v", wrong)
	}
}
