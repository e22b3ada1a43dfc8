package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/infer"
	"github.com/disdel/disdel/service/tenant"
)

// gathered keeps what a sink is given, as text: equal texts are equal bits.
type gathered struct {
	head infer.DataHead
	rows []string
	each func() // after every row; nil: nothing
}

func (g *gathered) Begin(head infer.DataHead) error {
	g.head = head
	return nil
}

func (g *gathered) Take(row infer.DataRow) error {
	g.rows = append(g.rows, fmt.Sprintf("%d %d %d %x", row.Row, row.Class, row.Label, row.Probabilities))
	if g.each != nil {
		g.each()
	}
	return nil
}

// firstDifference is where two lists of texts begin to differ.
func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return got[i] + "\nwant\n" + want[i]
		}
	}
	return ""
}

// digitsModel is a Service with a model of digits, a fifth of which its job has held out by lot.
func digitsModel(t *testing.T) (*Service, *infer.Model, disdel.Record) {
	t.Helper()
	s := opened(t, t.TempDir())
	rec := passed(t, submit(t, s, small(t)))
	m, err := s.Trained(t.Context(), "small")
	if err != nil {
		t.Fatal(err)
	}
	return s, m, rec
}

// nothingLeft waits until no answers are beside the models: an action that nobody waits for may be at its end.
func nothingLeft(t *testing.T, s *Service) {
	t.Helper()
	wait.Until(t, "folder without answers", func() bool {
		left, _ := os.ReadDir(filepath.Join(s.cfg.Home, "models", "answers"))
		notes, _ := os.ReadDir(filepath.Join(s.cfg.Home, "models", "waiting"))
		return len(left) == 0 && len(notes) == 0
	})
}

// Actions that read the rows themselves say of each what an action says that gets it with its request, in the order of
// the rows, however many there are; of the part test they come to the accuracy that the job has found.
func TestADataSetIsAnsweredAsItsRowsAre(t *testing.T) {
	t.Parallel()
	s, m, rec := digitsModel(t)
	ctx := t.Context()
	store, err := s.Datasets(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ref := disdel.DataRef{Name: "digits", Checksum: m.Data.Checksum}
	shard, err := store.ReadPart(ctx, ref, disdel.PartAll, disdel.RowRange{End: 1797})
	if err != nil {
		t.Fatal(err)
	}
	rows, places, labels := make([][]float32, shard.Len()), make([]int32, shard.Len()), make([]int32, shard.Len())
	x := make([]float32, shard.Len()*64)
	for i := range rows {
		places[i], rows[i] = int32(i), x[i*64:(i+1)*64]
	}
	shard.Batch(places, x, labels)
	alone, err := s.Infer(ctx, m, rows)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range rows {
		want = append(want, fmt.Sprintf("%d %d %d %x", i, alone.Classes[i], labels[i], alone.Probabilities[i]))
	}
	for _, rowsOfOne := range []int{0, 1797, 301, 100} {
		ask := infer.DataRequest{Dataset: "digits", RowsPerAction: rowsOfOne}
		actions := 4 // a quarter of the rows each
		if rowsOfOne > 0 {
			actions = (1797 + rowsOfOne - 1) / rowsOfOne
		}
		var got gathered
		out, err := s.InferData(ctx, m, ask, &got)
		if err != nil || !slices.Equal(got.rows, want) || len(out.Actions) != actions || got.head.Rows != 1797 {
			t.Fatalf("%d rows an action: %d answers by %d actions, %v\n%s", rowsOfOne, len(got.rows), len(out.Actions), err,
				firstDifference(got.rows, want))
		}
		nothingLeft(t, s)
	}
	var test gathered
	out, err := s.InferData(ctx, m, infer.DataRequest{Dataset: "digits", Part: disdel.PartTest}, &test)
	if err != nil || out.Rows != rec.Data.HeldOut || float64(out.Right)/float64(out.Rows) != rec.Accuracy {
		t.Errorf("%d of %d held-out rows are right, and the job found %v of %d, %v", out.Right, out.Rows, rec.Accuracy,
			rec.Data.HeldOut, err)
	}
	version := infer.DataRequest{Dataset: "digits@" + m.Data.Checksum[:20], Part: disdel.PartTrain}
	out, err = s.InferData(ctx, m, version, &test)
	if err != nil || out.Rows != rec.Data.Train {
		t.Errorf("%d rows to learn from, want %d, %v", out.Rows, rec.Data.Train, err)
	}
	keepsAnswers(t, s, m)
	for _, c := range []struct {
		ask  infer.DataRequest
		want error
	}{
		{infer.DataRequest{Dataset: "nothing"}, disdel.NotFound},
		{infer.DataRequest{Dataset: "digits@sha256:00"}, disdel.Conflict},
		{infer.DataRequest{Dataset: "digits", Part: "half"}, disdel.Invalid},
	} {
		if _, err := s.InferData(ctx, m, c.ask, &test); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.ask, err, c.want)
		}
	}
}

// keepsAnswers has answers stay beside the models: the result lists all of them, and no late action adds to them.
func keepsAnswers(t *testing.T, s *Service, m *infer.Model) {
	t.Helper()
	out, err := s.InferData(t.Context(), m, infer.DataRequest{Dataset: "digits", Keep: true}, nil)
	if err != nil || len(out.Answers) != 4 || !strings.HasPrefix(out.Address, "file://") {
		t.Fatalf("%+v, %v", out, err)
	}
	models, err := s.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, ref := range out.Answers {
		a, err := models.ReadAnswers(t.Context(), ref, 10, 1)
		if err != nil || len(a.Classes) != ref.Rows {
			t.Errorf("%s: %v", ref.Key, err)
		}
		rows += ref.Rows
	}
	folder := filepath.Dir(filepath.Join(s.cfg.Home, "models", out.Answers[0].Key))
	if files, err := os.ReadDir(folder); err != nil || len(files) != 4 || rows != 1797 {
		t.Errorf("%d files of %d rows, %v", len(files), rows, err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
}

// A chunk that is damaged is named with the rows that were to be answered for, and nothing stays of what was answered
// before.
func TestADamagedChunkIsToldAndNothingStays(t *testing.T) {
	t.Parallel()
	s, m, _ := digitsModel(t)
	chunks, err := filepath.Glob(filepath.Join(s.cfg.Home, "datasets", "digits", "train-*.safetensors"))
	if err != nil || len(chunks) == 0 {
		t.Fatal(chunks, err)
	}
	data, err := os.ReadFile(chunks[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(chunks[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = s.InferData(t.Context(), m, infer.DataRequest{Dataset: "digits"}, &gathered{})
	if !errors.Is(err, disdel.Corrupt) || disdel.AsError(err).Hint == "" {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"rows ", "of digits", filepath.Base(chunks[0]), disdel.NotTriedAgain} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	nothingLeft(t, s)
}

// An action that is killed is run again, and the answers are the same.
func TestAKilledActionIsRunAgain(t *testing.T) {
	s, m, _ := digitsModel(t)
	var want, got gathered
	if _, err := s.InferData(t.Context(), m, infer.DataRequest{Dataset: "digits"}, &want); err != nil {
		t.Fatal(err)
	}
	ended, killed := make(chan struct{}), make(chan int, 1)
	before := containers()
	go func() {
		defer close(killed)
		for {
			for _, pid := range containers() {
				if !slices.Contains(before, pid) && syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed <- pid
					return
				}
			}
			select {
			case <-ended:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	out, err := s.InferData(t.Context(), m, infer.DataRequest{Dataset: "digits"}, &got)
	close(ended)
	if pid, ok := <-killed; !ok {
		t.Fatal("no action was killed", pid)
	}
	failed := 0
	for _, a := range out.Actions {
		if a.Outcome != disdel.OutcomeSuccess {
			failed++
		}
	}
	if err != nil || !slices.Equal(got.rows, want.rows) || failed == 0 {
		t.Errorf("%d of %d answers after %d failures, %v", len(got.rows), len(want.rows), failed, err)
	}
	nothingLeft(t, s)
}

// containers are the processes that this one has started as containers.
func containers() []int { return containersOf("self") }

func containersOf(process string) (out []int) {
	tasks, _ := filepath.Glob("/proc/" + process + "/task/*/children")
	for _, file := range tasks {
		text, _ := os.ReadFile(file) // a thread may have ended
		for child := range strings.FieldsSeq(string(text)) {
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if pid, err := strconv.Atoi(child); err == nil && bytes.Contains(line, []byte("\x00runtime\x00")) {
				out = append(out, pid)
			}
			out = append(out, containersOf(child)...)
		}
	}
	return out
}

// Who stops asking gets no further rows, and nothing stays; what a sink returns ends it too.
func TestAnswersThatNobodyWantsAreNotKept(t *testing.T) {
	t.Parallel()
	s, m, _ := digitsModel(t)
	ask := infer.DataRequest{Dataset: "digits", RowsPerAction: 50}
	ctx, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	stopped := gathered{each: func() { stop(enough) }}
	_, err := s.InferData(ctx, m, ask, &stopped)
	if !errors.Is(err, disdel.Canceled) || !errors.Is(err, enough) || len(stopped.rows) > 50 {
		t.Errorf("%d rows, %v", len(stopped.rows), err)
	}
	nothingLeft(t, s)
	ask.Keep = true
	if _, err := s.InferData(t.Context(), m, ask, full{}); !errors.Is(err, disdel.NoSpace) {
		t.Errorf("a sink that takes no more: %v", err)
	}
	nothingLeft(t, s)
}

// full is a sink without room.
type full struct{}

func (full) Begin(infer.DataHead) error { return nil }
func (full) Take(infer.DataRow) error {
	return &disdel.Error{Kind: disdel.NoSpace, Op: "take", Msg: "full"}
}

// An inference that its tenant's quota never has room for is refused before its first line, so that whoever asked a
// server is told by the status of its answer.
func TestAnInferenceThatNeverFitsHasNoFirstLine(t *testing.T) {
	all := pooled(t, t.TempDir(), 1024*disdel.MB, false)
	s := all.Tenant("ann")
	with := func(quota scheduler.Quota) {
		if _, err := all.Tenants().Create(t.Context(), "ann", tenant.RoleSubmit, &quota); err != nil {
			t.Fatal(err)
		}
	}
	with(scheduler.Quota{})
	if err := s.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	passed(t, submit(t, s, small(t)))
	with(scheduler.Quota{Memory: 64 * disdel.MB})
	m, err := s.Trained(t.Context(), "small")
	if err != nil {
		t.Fatal(err)
	}
	var to gathered
	_, err = s.InferData(t.Context(), m, infer.DataRequest{Dataset: "digits"}, &to)
	if !errors.Is(err, disdel.OverLimit) || to.head.Model != "" {
		t.Errorf("%v, after the line of %q", err, to.head.Model)
	}
	if text := err.Error(); strings.Contains(text, "job") || strings.Contains(disdel.AsError(err).Hint, "training.") {
		t.Errorf("%v speaks of a job: %s", err, disdel.AsError(err).Hint)
	}
}
