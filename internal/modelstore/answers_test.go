package modelstore

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// answered writes answers in pieces of so many values.
func answered(values []float32, piece int) func(put func([]float32) error) error {
	return func(put func([]float32) error) error {
		for some := range slices.Chunk(values, piece) {
			if err := put(some); err != nil {
				return err
			}
		}
		return nil
	}
}

// Answers come back bit by bit, in whatever pieces they were written, and damaged ones not at all.
func TestAnswersComeBack(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), "file://"+dir)
	if err == nil {
		err = s.WantAnswers(t.Context(), "answers/a")
	}
	if err != nil {
		t.Fatal(err)
	}
	of := AnswersHeader{Classes: 2, Labels: []int32{1, 0, -1}, Notes: map[string]string{"part": "all"}}
	values := []float32{0.25, 0.75, 1e-40, 0, 0.5, 0.5}
	for _, piece := range []int{2, 4, 6} {
		ref, err := s.WriteAnswers(t.Context(), "answers/a/0.safetensors", of, answered(values, piece))
		if err != nil || ref.Rows != 3 {
			t.Fatalf("%+v, %v", ref, err)
		}
		got, err := s.ReadAnswers(t.Context(), ref, 2, 1)
		want := Answers{Labels: of.Labels, Probabilities: values, Classes: []int32{1, 0, 0}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("in pieces of %d: %v (-want +got)\n%s", piece, err, diff)
		}
		ref.Checksum = "sha256:00"
		if _, err := s.ReadAnswers(t.Context(), ref, 2, 1); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("others than those that were told: %v", err)
		}
	}
	sparse := AnswersHeader{Targets: []float32{3, float32(math.Inf(-1))}}
	ref, err := s.WriteAnswers(t.Context(), "answers/a/1.safetensors", sparse, answered([]float32{2.5, -1}, 1))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.ReadAnswers(t.Context(), ref, 0, 1)
	if diff := cmp.Diff(Answers{Targets: sparse.Targets, Predictions: []float32{2.5, -1}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if _, err := s.ReadAnswers(t.Context(), ref, 2, 1); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("answers of another kind: %v", err)
	}
	late := "answers/a/1-late.safetensors" // of an attempt that was given up
	if _, err := s.WriteAnswers(t.Context(), late, sparse, answered([]float32{2.5, -1}, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.KeepAnswers(t.Context(), "answers/a", []disdel.AnswersRef{ref}); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "answers", "a", "*")); len(left) != 1 {
		t.Errorf("%v is kept, %v", left, err)
	}
	if _, err := s.ReadAnswers(t.Context(), ref, 0, 1); err != nil {
		t.Errorf("answers that are kept: %v", err)
	}
}

// What nobody waits for any more is not written, nor is what is not whole; nothing of it stays.
func TestUnwantedAnswersAreNotWritten(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	of := AnswersHeader{Classes: 1, Labels: []int32{0, 0}}
	write := func(each func(put func([]float32) error) error) error {
		_, err := s.WriteAnswers(t.Context(), "answers/a/0.safetensors", of, each)
		return err
	}
	if err := write(answered([]float32{1, 1}, 1)); !errors.Is(err, disdel.Canceled) {
		t.Errorf("before anybody waits: %v", err)
	}
	if err := s.WantAnswers(t.Context(), "answers/a"); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		each func(put func([]float32) error) error
		want error
	}{
		"too few":  {answered([]float32{1}, 1), disdel.Internal},
		"too many": {answered([]float32{1, 1, 1}, 1), disdel.Internal},
		"broken off": {func(put func([]float32) error) error {
			return errors.Join(put([]float32{1}), broken)
		}, broken},
	} {
		if err := write(c.each); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "answers", "a", "*")); err != nil || len(left) != 1 {
		t.Errorf("%v stays beside the mark that they are wanted, %v", left, err)
	}
	err = write(func(put func([]float32) error) error {
		if err := put([]float32{1, 1}); err != nil {
			return err
		}
		return s.DiscardAnswers(t.Context(), "answers/a")
	})
	if !errors.Is(err, disdel.Canceled) {
		t.Errorf("discarded while they are written: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "answers")); len(left) > 0 {
		t.Errorf("%v stays, %v", left, err)
	}
	if err := s.DiscardAnswers(t.Context(), "answers/a"); err != nil {
		t.Errorf("discarded again: %v", err)
	}
}

// paused is a bucket in which something happens just before a file is there.
type paused struct {
	blobs.Bucket
	before func()
}

func (b paused) NewWriter(ctx context.Context, key string) (io.WriteCloser, error) {
	w, err := b.Bucket.NewWriter(ctx, key)
	return pausedWriter{w, b.before}, err
}

type pausedWriter struct {
	io.WriteCloser
	before func()
}

func (w pausedWriter) Close() error {
	w.before()
	return w.WriteCloser.Close()
}

// Answers that somebody gives up in the moment before their file is there do not stay, whether he keeps others or none.
func TestAnswersGivenUpAtTheLastMomentDoNotStay(t *testing.T) {
	for name, giveUp := range map[string]func(s *Store) error{
		"none is kept": func(s *Store) error { return s.DiscardAnswers(t.Context(), "answers/a") },
		"others are":   func(s *Store) error { return s.KeepAnswers(t.Context(), "answers/a", nil) },
	} {
		bucket, err := blobs.Open(t.Context(), "mem://")
		if err != nil {
			t.Fatal(err)
		}
		s := &Store{bucket: bucket}
		if err := s.WantAnswers(t.Context(), "answers/a"); err != nil {
			t.Fatal(err)
		}
		late := &Store{bucket: paused{bucket, func() {
			if err := giveUp(s); err != nil {
				t.Error(err)
			}
		}}}
		of := AnswersHeader{Classes: 1, Labels: []int32{0}}
		_, err = late.WriteAnswers(t.Context(), "answers/a/0.safetensors", of, answered([]float32{1}, 1))
		if !errors.Is(err, disdel.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		for o, err := range bucket.List(t.Context(), "") {
			t.Errorf("%s: %s stays, %v", name, o.Key, err)
		}
	}
}
