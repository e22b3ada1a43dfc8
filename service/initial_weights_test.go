package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/safetensors"
)

// still are steps too short to change a weight: what comes of a job is what it began with.
var still = []string{"training.epochs=1", "training.optimizer={sgd: {learningRate: 1.0e-30}}"}

// passed is the record of a job that succeeded.
func passed(t *testing.T, run *Run) disdel.Record {
	t.Helper()
	rec, err := run.Wait(t.Context())
	if err != nil || rec.Status != disdel.StatusSucceeded {
		t.Fatalf("%v, %v: %v", err, rec.Status, rec.Failure)
	}
	return rec
}

// learned are those of a model.
func learned(t *testing.T, s *Service, ref disdel.ModelRef) disdel.Weights {
	t.Helper()
	models, err := s.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := models.ReadWeights(t.Context(), ref.Path, ref.Checksum)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// sameWeights tells whether two models have the same arrays: cmp takes 20 times as long for it.
func sameWeights(a, b disdel.Weights) bool {
	return slices.EqualFunc(a, b, func(x, y disdel.Tensor) bool {
		return x.Name == y.Name && slices.Equal(x.Shape, y.Shape) && slices.Equal(x.Data, y.Data)
	})
}

// put puts weights beside the models, as whoever has a file does.
func put(t *testing.T, s *Service, w disdel.Weights) string {
	t.Helper()
	var file bytes.Buffer
	if err := safetensors.Write(&file, safetensors.FromWeights(w, nil)); err != nil {
		t.Fatal(err)
	}
	models, err := s.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum, err := modelstore.Checksum(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	g, err := models.PutWeights(t.Context(), sum, int64(file.Len()), &file)
	if err != nil || g.Ref != sum {
		t.Fatalf("%+v, %v", g, err)
	}
	return sum
}

// A job begins with the weights of a model or of a file, whatever is sent between its workers and whatever of the
// optimiser is averaged; layers that are excepted are drawn.
func TestAJobBeginsWithGivenWeights(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir())
	base := passed(t, submit(t, s, small(t)))
	want := learned(t, s, *base.Model)
	for _, sets := range [][]string{
		{"model.init.weights=small:v1"},
		{"model.init.weights=small:best", "distribution.aggregation={wire: bfloat16, optimizer: average}"},
		{"model.init.weights=" + put(t, s, want), "distribution.sync={every: 1}"},
	} {
		rec := passed(t, submit(t, s, small(t, append(append([]string{"metadata.name=next"}, still...), sets...)...)))
		if got := learned(t, s, *rec.Model); !sameWeights(want, got) {
			t.Errorf("%v: the weights are others", sets)
		}
		if name := rec.Job.Model.Init.Weights; name != "small:v1" && !strings.HasPrefix(name, "sha256:") {
			t.Errorf("%v: the record says %q, which may mean something else tomorrow", sets, name)
		}
	}
	last := want[len(want)-1].Name
	layer := strings.TrimSuffix(last, ".bias")
	for _, set := range []string{"model.init.except=" + layer, "model.init.replaceHead=true"} {
		other := passed(t, submit(t, s, small(t, append([]string{
			"metadata.name=head", "model.init.weights=small:v1", set,
		}, still...)...)))
		for i, v := range learned(t, s, *other.Model) {
			if same := slices.Equal(want[i].Data, v.Data); same == strings.HasPrefix(v.Name, layer+".") {
				t.Errorf("%s: %s is the same: %v", set, v.Name, same)
			}
		}
	}
}

// Frozen layers have the given bits in the end, however many workers train and whatever they send; others learn. The
// job names the layers themselves, so that a job that continues it freezes the same ones.
func TestFrozenLayersKeepTheGivenWeights(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir())
	base := passed(t, submit(t, s, small(t)))
	want := learned(t, s, *base.Model)
	layer := strings.TrimSuffix(want[len(want)-1].Name, ".bias")
	check := func(what string, rec disdel.Record) {
		for i, v := range learned(t, s, *rec.Model) {
			if same := slices.Equal(want[i].Data, v.Data); same == strings.HasPrefix(v.Name, layer+".") {
				t.Errorf("%s: %s is the same: %v", what, v.Name, same)
			}
		}
	}
	for _, sets := range [][]string{
		{"distribution.workers=1"},
		{"distribution.workers=3"},
		{"distribution.workers=3", "distribution.aggregation={wire: bfloat16, optimizer: keep}"},
		{"distribution.workers=3", "distribution.aggregation={wire: int8, optimizer: keep}"},
		{"distribution.workers=2", "distribution.sync={every: 1}"},
	} {
		rec := passed(t, submit(t, s, small(t, append([]string{
			"metadata.name=frozen", "model.init.weights=small:v1", "model.init.replaceHead=true", "model.init.freeze='*'",
			"training.epochs=2",
		}, sets...)...)))
		check(strings.Join(sets, " "), rec)
		if f := rec.Job.Model.Init.Freeze; f == "*" || f == "" {
			t.Errorf("%v: the record freezes %q", sets, f)
		}
	}
}

// What does not fit is told all at once, with its place, beside everything else that is wrong; nothing is kept of a job
// that was refused.
func TestWeightsThatDoNotFitAreTold(t *testing.T) {
	s := opened(t, t.TempDir())
	base := passed(t, submit(t, s, small(t)))
	w := learned(t, s, *base.Model)
	w[0].Shape, w[1].Name = append([]int{1}, w[0].Shape...), "other.bias"
	job := small(t, "metadata.name=next", "data.checksum=sha256:"+strings.Repeat("0", 64))
	for weights, parts := range map[string][]string{
		put(t, s, w): {w[0].Name + " is", "the network has no other.bias", "there are no weights for "},
		"none":       {`no trained model "none"`}, "small:v7": {"small:v7"}, "a b": {"is no model"},
		"/etc/passwd.safetensors":           {"not read here"},
		"sha256:" + strings.Repeat("0", 64): {"there are no weights sha256:0"}, "sha256:../x": {"is no checksum"},
	} {
		job.Model.Init.Weights = weights
		where := func(path string) (int, int) { return len(path), 1 }
		_, err := s.Submit(t.Context(), Request{Job: job, Source: Source{Name: "x.yaml", Locate: where}})
		var faults *disdel.Faults
		if !errors.As(err, &faults) || faults.File != "x.yaml" || len(faults.Faults) != len(parts)+1 {
			t.Errorf("%s: %v", weights, err)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(fmt.Sprint(faults.Faults), part) {
				t.Errorf("%s: nothing of %q in %v", weights, part, faults.Faults)
			}
		}
		if f := faults.Faults[len(faults.Faults)-1]; f.Path != controller.InitialPath || f.Line != len(f.Path) {
			t.Errorf("%s: %+v", weights, f)
		}
	}
}

// A job that was stopped before its first round was over continues with the weights that it was given, although their
// model is no more.
func TestGivenWeightsOutliveTheirModel(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir())
	passed(t, submit(t, s, small(t)))
	given := []string{"metadata.name=next", "model.init.weights=small:v1"}
	stopped := submit(t, s, small(t, append(given, "training.epochs=300")...))
	stopped.Cancel(errors.New("enough"))
	if rec, err := stopped.Wait(t.Context()); err != nil || rec.Status != disdel.StatusCanceled {
		t.Fatalf("%v, %v", err, rec.Status)
	}
	whole := passed(t, submit(t, s, small(t, append(given, "training.epochs=3")...)))
	models, err := s.Models(t.Context())
	if err == nil {
		_, err = models.Remove(t.Context(), "small:v1")
	}
	if err != nil {
		t.Fatal(err)
	}
	run, err := s.Resume(t.Context(), ResumeRequest{Job: string(stopped.ID()), Sets: []string{"training.epochs=3"}})
	if err != nil {
		t.Fatal(err)
	}
	rec := passed(t, run)
	if !sameWeights(learned(t, s, *whole.Model), learned(t, s, *rec.Model)) {
		t.Error("it came to other weights")
	}
}

// A job whose training sees images otherwise in every epoch comes to the same bits when it was stopped and taken up
// again.
func TestAnAugmentedJobGoesOnToTheSameBits(t *testing.T) {
	s := opened(t, t.TempDir())
	// Without a number of workers, the later job could get another plan: it has the first one's measured times.
	two := "distribution.workers=2"
	augmented := []string{"data.augment={crop: 1, flip: true}", "reliability.checkpointEvery=1", two}
	stopped := submit(t, s, small(t, append(augmented, "training.epochs=300")...))
	if !after[RoundEnded](stopped) {
		t.Fatal("no round is over")
	}
	stopped.Cancel(errors.New("enough"))
	was, err := stopped.Wait(t.Context())
	if err != nil || was.Status != disdel.StatusCanceled || was.Checkpoint == nil {
		t.Fatalf("%v, %v at %+v", err, was.Status, was.Checkpoint)
	}
	epochs := fmt.Sprintf("training.epochs=%d", len(was.Rounds)+2)
	run, err := s.Resume(t.Context(), ResumeRequest{Job: string(stopped.ID()), Sets: []string{epochs}})
	if err != nil {
		t.Fatal(err)
	}
	rec := passed(t, run)
	if rec.Resumes != 1 || len(rec.Rounds) != len(was.Rounds)+2 {
		t.Errorf("%d resumes, %d rounds after %d", rec.Resumes, len(rec.Rounds), len(was.Rounds))
	}
	got := learned(t, s, *rec.Model)
	whole := passed(t, submit(t, s, small(t, append(augmented, epochs)...)))
	if !sameWeights(learned(t, s, *whole.Model), got) {
		t.Error("it came to other weights than one that was not stopped")
		for _, r := range []*disdel.Record{&was, &rec, &whole} {
			t.Logf("%d rounds, %d workers, losses %+v, adjustments %+v, stages %+v", len(r.Rounds), r.Plan.Workers, r.Losses,
				r.Adjustments, r.Stages)
		}
	}
	plain := passed(t, submit(t, s, small(t, epochs, two)))
	if sameWeights(learned(t, s, *plain.Model), got) {
		t.Error("images that are moved and mirrored change nothing")
	}
}

// A job with adapters or frozen layers has the same bits after it was stopped and resumed, with one worker and with
// several. In its model, which has the base's names, only given weights with an adapter have changed.
func TestAdaptersAndFrozenLayersGoOnToTheSameBits(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir())
	base := passed(t, submit(t, s, small(t)))
	given := learned(t, s, *base.Model)
	head := strings.TrimSuffix(given[len(given)-1].Name, ".bias")
	for how, sets := range map[string][]string{
		"adapters, three workers": {"model.lora={rank: 2}", "distribution.workers=3"},
		"frozen, one worker":      {"model.init.freeze='*'", "distribution.workers=1"},
	} {
		sets = append(sets, "metadata.name=tuned", "model.init.weights=small:v1", "model.init.replaceHead=true",
			"reliability.checkpointEvery=1")
		stopped := submit(t, s, small(t, append(sets, "training.epochs=300")...))
		if !after[RoundEnded](stopped) {
			t.Fatal("no round is over")
		}
		stopped.Cancel(errors.New("enough"))
		was, err := stopped.Wait(t.Context())
		if err != nil || was.Status != disdel.StatusCanceled || was.Checkpoint == nil {
			t.Fatalf("%s: %v, %v at %+v", how, err, was.Status, was.Checkpoint)
		}
		epochs := fmt.Sprintf("training.epochs=%d", len(was.Rounds)+2)
		run, err := s.Resume(t.Context(), ResumeRequest{Job: string(stopped.ID()), Sets: []string{epochs}})
		if err != nil {
			t.Fatal(how, err)
		}
		got := learned(t, s, *passed(t, run).Model)
		whole := passed(t, submit(t, s, small(t, append(sets, epochs)...)))
		if !sameWeights(learned(t, s, *whole.Model), got) {
			t.Errorf("%s: it came to other weights than one that was not stopped", how)
		}
		adapted := whole.Job.Model.LoRA != nil
		for i, v := range got {
			isHead := strings.HasPrefix(v.Name, head+".")
			trained := isHead || adapted && strings.HasPrefix(v.Name, "fc") && strings.HasSuffix(v.Name, ".weight")
			if v.Name != given[i].Name || trained == slices.Equal(given[i].Data, v.Data) {
				t.Errorf("%s: %s was %s, and has changed: %v", how, v.Name, given[i].Name, !trained)
			}
		}
	}
}

// Another process makes a job ready that was accepted: with the copy that it has, or, where that is lost, with another.
func TestABeginningIsFoundAgain(t *testing.T) {
	s := opened(t, t.TempDir())
	passed(t, submit(t, s, small(t)))
	ctx := context.Background()
	p, err := s.newPlanner(ctx, newJobID(), Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.resolveRequest(ctx, Request{Job: small(t, "model.init.weights=small")})
	if err != nil {
		t.Fatal(err)
	}
	first, err := p.copyInitial(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again, err := p.initialCheckpoint(ctx, r)
		if err != nil || again.Path != first.Path || again.Checksum != first.Checksum {
			t.Errorf("%+v, %v instead of %+v", again, err, first)
		}
		p.discardInitial(ctx)
	}
}
