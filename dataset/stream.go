package dataset

import (
	"context"

	"github.com/disdel/disdel"
)

// addStream stores a data set whose rows come as a stream. write writes its chunks, or with dry only works out what
// they would be, and returns the manifest. Who is interrupted, or whose rows turn out to be wrong, has added nothing
// and changed nothing.
func (s *Store) addStream(ctx context.Context, name string, overwrite bool, write func(dry bool) (Manifest, error)) (
	Manifest, error,
) {
	old, err := s.Manifest(ctx, name)
	kind := disdel.KindOf(err)
	if err != nil && kind != disdel.NotFound && kind != disdel.Corrupt {
		return Manifest{}, err
	}
	if kind != disdel.NotFound { // see whether anything is to be done, and whether it can be
		m, err := write(true)
		switch {
		case err != nil:
			return m, err
		case kind == disdel.UnknownKind && old.Checksum() == m.Checksum():
			return m, nil
		case !overwrite:
			return m, taken(name, kind == disdel.UnknownKind)
		}
		if err := s.beginAdd(ctx, name); err != nil {
			return m, err
		}
	}
	m, err := write(false)
	if err != nil {
		if kind == disdel.NotFound { // chunks without a manifest would be nobody's
			_ = s.forget(context.WithoutCancel(ctx), name) // the next one of that name would replace what is left
		}
		return m, err
	}
	return m, s.endAdd(ctx, &m)
}

// forget takes away the chunks of a data set that came to nothing.
func (s *Store) forget(ctx context.Context, name string) error {
	keys, err := s.keys(ctx, name)
	if err != nil {
		return err
	}
	return s.delete(ctx, keys)
}
