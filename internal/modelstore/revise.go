package modelstore

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// newest is the version that a name alone means: the newest that learned something, or of which nobody knows; the
// newest of all where none did.
func (s *Store) newest(ctx context.Context, name string, versions []int) int {
	for _, v := range slices.Backward(versions) {
		m, err := s.Get(ctx, fmt.Sprintf("%s:v%d", name, v))
		if err != nil || m.Learned == nil || *m.Learned {
			return v
		}
	}
	return versions[len(versions)-1]
}

// Revise describes a version anew: what was found out about it after it was made. Its weights stay as they are.
func (s *Store) Revise(ctx context.Context, m Model) error {
	m.Tags = nil // which are files of their own
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "describe model", Msg: m.Name, Err: err}
	}
	key := descriptionPath(m.Name, m.Version)
	// Without a checksum beside it a description is as good as one of an earlier version; with another's it is damaged.
	if err := s.takeAway(ctx, "describe model", key+sumSuffix); err != nil {
		return err
	}
	if err := blobs.WriteAll(ctx, s.bucket, key, data); err != nil {
		return blobs.Wrap(err, "describe model", key)
	}
	sum := sha256.Sum256(data)
	return blobs.Wrap(blobs.WriteAll(ctx, s.bucket, key+sumSuffix, []byte(checksum(sum[:])+"\n")), "describe model", key)
}
