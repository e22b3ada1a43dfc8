package modelstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// MaxProgram is the largest archive of a Python program, in bytes.
const MaxProgram = 8 << 20

// WriteProgram stores the archive of a Python program under its digest, and returns the digest: "sha256:" and hex.
// Writing the same archive again is harmless. It returns OverLimit for an archive above MaxProgram.
func (s *Store) WriteProgram(ctx context.Context, archive []byte) (code string, err error) {
	if len(archive) > MaxProgram {
		return "", &disdel.Error{
			Kind: disdel.OverLimit, Op: "store program",
			Msg:  fmt.Sprintf("the archive has %v, the limit is %v", disdel.Bytes(len(archive)), disdel.Bytes(MaxProgram)),
			Hint: "give a folder without data",
		}
	}
	sum := sha256.Sum256(archive)
	code = checksum(sum[:])
	key, err := programKey(code)
	if err != nil {
		return "", err
	}
	return code, blobs.Wrap(blobs.WriteAll(ctx, s.bucket, key, archive), "store program", key)
}

// ReadProgram reads the archive of a Python program. It returns NotFound if the store lacks it, and Corrupt if its
// content does not have the digest.
func (s *Store) ReadProgram(ctx context.Context, code string) ([]byte, error) {
	key, err := programKey(code)
	if err != nil {
		return nil, err
	}
	archive, err := blobs.ReadUpTo(ctx, s.bucket, key, MaxProgram)
	if err != nil {
		return nil, blobs.Wrap(err, "read program", key)
	}
	sum := sha256.Sum256(archive)
	if got := checksum(sum[:]); got != code {
		return nil, &disdel.Error{
			Kind: disdel.Corrupt, Op: "read program", Msg: fmt.Sprintf("%s has checksum %s, not %s", key, got, code),
			Hint: "the archive was changed; submit the job again",
		}
	}
	return archive, nil
}

// FindProgram returns NotFound if the store lacks the archive of a Python program.
func (s *Store) FindProgram(ctx context.Context, code string) error {
	key, err := programKey(code)
	if err != nil {
		return err
	}
	_, err = s.bucket.Size(ctx, key)
	return blobs.Wrap(err, "find program", key)
}

// HasPrograms tells whether there is any archive of a Python program.
func (s *Store) HasPrograms(ctx context.Context) bool {
	for _, err := range s.bucket.List(ctx, "code/") {
		return err == nil
	}
	return false
}

// RemoveProgram deletes the archive of a Python program. Models and unfinished jobs of the program need it. It returns
// Invalid and NotFound.
func (s *Store) RemoveProgram(ctx context.Context, code string) error {
	if err := s.FindProgram(ctx, code); err != nil { // some buckets delete what is not there
		return err
	}
	key, _ := programKey(code)
	return blobs.Wrap(s.bucket.Delete(ctx, key), "remove program", key)
}

// programKey is where the archive of a digest lies.
func programKey(code string) (string, error) {
	digest, ok := strings.CutPrefix(code, "sha256:")
	if raw, err := hex.DecodeString(digest); !ok || err != nil || len(raw) != sha256.Size {
		return "", &disdel.Error{Kind: disdel.Invalid, Op: "find program", Msg: fmt.Sprintf("%q is no digest", code)}
	}
	return path.Join("code", digest+".zip"), nil
}
