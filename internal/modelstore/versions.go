package modelstore

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// Best is the model with the highest held-out accuracy, of equal ones that with the least loss, then the newest. Models
// that nothing was held out of are not compared; ok is false if none is left.
func Best(list []Model) (best Model, ok bool) {
	for i := range list {
		if m := &list[i]; m.Data.HeldOut > 0 && (!ok || better(m, &best)) {
			best, ok = *m, true
		}
	}
	return best, ok
}

func better(a, b *Model) bool {
	switch {
	case a.Accuracy != b.Accuracy:
		return a.Accuracy > b.Accuracy
	case a.Loss != b.Loss:
		return a.Loss < b.Loss
	default:
		return a.Version > b.Version
	}
}

// Versions returns a name's versions, newest first. Those that cannot be read are left out and named by the error
// beside the others.
func (s *Store) Versions(ctx context.Context, name string) (out []Model, err error) {
	for m, fault := range s.versionsOf(ctx, name) {
		if fault != nil {
			err = errors.Join(err, fault)
			continue
		}
		out = append(out, m)
	}
	return out, err
}

// versionsOf yields the models of Versions one after another, and an error for each one that cannot be read.
func (s *Store) versionsOf(ctx context.Context, name string) iter.Seq2[Model, error] {
	return func(yield func(Model, error) bool) {
		numbers, err := s.versions(ctx, name)
		var tags map[int][]string
		if err == nil {
			tags, err = s.tags(ctx, name)
		}
		if err != nil {
			yield(Model{}, err)
			return
		}
		for _, v := range slices.Backward(numbers) {
			m, err := s.read(ctx, name, v)
			if disdel.KindOf(err) == disdel.NotFound { // removed meanwhile
				continue
			}
			m.Tags = tags[v]
			if !yield(m, err) {
				return
			}
		}
	}
}

// Prune removes a name's oldest versions so that the newest keep remain and, beside them, the best of all, the one that
// the name alone means and those with tags; what cannot be read stays as well. It returns the versions that it removed,
// oldest first, also where one could not be.
func (s *Store) Prune(ctx context.Context, name string, keep int) (removed []Model, err error) {
	numbers, err := s.versions(ctx, name)
	if err != nil || len(numbers) <= max(keep, 1) {
		return nil, err
	}
	newest := numbers[len(numbers)-max(keep, 1)]
	list, _ := s.Versions(ctx, name) // what is damaged is no reason to keep or lose the others
	best, _ := Best(list)
	meant := s.newest(ctx, name, numbers)
	for i := range slices.Backward(list) {
		m := &list[i]
		if m.Version >= newest || m.Version == best.Version || m.Version == meant || len(m.Tags) > 0 {
			continue
		}
		if err := s.remove(ctx, m); err != nil && disdel.KindOf(err) != disdel.NotFound {
			return removed, err
		}
		removed = append(removed, *m)
	}
	return removed, nil
}

// remove deletes the description first: weights without one belong to nobody.
func (s *Store) remove(ctx context.Context, m *Model) error {
	key := descriptionPath(m.Name, m.Version)
	if err := s.bucket.Delete(ctx, key); err != nil {
		return blobs.Wrap(err, "remove model", key)
	}
	if err := s.takeAway(ctx, "remove model", key+sumSuffix); err != nil {
		return err
	}
	return blobs.Wrap(s.bucket.Delete(ctx, m.Path), "remove weights", m.Path)
}
