package modelstore

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// wantedFile stands beside answers for as long as somebody waits for them.
const wantedFile = "wanted"

// WantAnswers has answers below a folder be wanted: none are written before.
func (s *Store) WantAnswers(ctx context.Context, folder string) error {
	key := path.Join(folder, wantedFile)
	return blobs.Wrap(blobs.WriteAll(ctx, s.bucket, key, nil), "ask for answers", key)
}

// EndAnswers has no more answers be written below a folder, by actions that nobody waits for any more.
func (s *Store) EndAnswers(ctx context.Context, folder string) error {
	return s.takeAway(ctx, "end answers", path.Join(folder, wantedFile))
}

// KeepAnswers is EndAnswers of a folder where nothing but these answers stays: an attempt that somebody gave up may
// have come to its end all the same, and answers are read by their folder too.
func (s *Store) KeepAnswers(ctx context.Context, folder string, kept []disdel.AnswersRef) error {
	if err := s.EndAnswers(ctx, folder); err != nil {
		return err
	}
	for o, err := range s.bucket.List(ctx, folder+"/") {
		if err != nil {
			return blobs.Wrap(err, "keep answers", folder)
		}
		if slices.ContainsFunc(kept, func(r disdel.AnswersRef) bool { return r.Key == o.Key }) {
			continue
		}
		if err := s.takeAway(ctx, "keep answers", o.Key); err != nil {
			return err
		}
	}
	return nil
}

// DiscardAnswers deletes all answers below a folder, and has none be written later.
func (s *Store) DiscardAnswers(ctx context.Context, folder string) error {
	if err := s.EndAnswers(ctx, folder); err != nil {
		return err
	}
	return s.Discard(ctx, folder)
}

// wanted returns Canceled unless somebody waits for answers under a key.
func (s *Store) wanted(ctx context.Context, key string) error {
	_, err := s.bucket.Size(ctx, path.Join(path.Dir(key), wantedFile))
	if err = blobs.Wrap(err, "write answers", key); disdel.KindOf(err) == disdel.NotFound {
		return &disdel.Error{Kind: disdel.Canceled, Op: "write answers", Msg: "nobody waits for them any more"}
	}
	return err
}

// unlessLate takes a file back that was written while somebody gave its answers up: he ends that they are wanted and
// then looks for files, so that either he has seen this one, or it is seen here that they are wanted no more.
func (s *Store) unlessLate(ctx context.Context, key string) error {
	err := s.wanted(ctx, key)
	if err != nil {
		err = errors.Join(err, s.takeAway(context.WithoutCancel(ctx), "write answers", key))
	}
	return err
}
