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
	return s.writeContent(ctx, "program", programKey, archive)
}

// writeContent stores data under its checksum.
func (s *Store) writeContent(ctx context.Context, what string, keyOf func(sum string) (string, error), data []byte) (
	string, error,
) {
	digest := sha256.Sum256(data)
	sum := checksum(digest[:])
	key, err := keyOf(sum)
	if err != nil {
		return "", err
	}
	return sum, blobs.Wrap(blobs.WriteAll(ctx, s.bucket, key, data), "store "+what, key)
}

// readContent reads what writeContent stored, up to maximum bytes.
func (s *Store) readContent(ctx context.Context, what, key, sum string, maximum int64) ([]byte, error) {
	data, err := blobs.ReadUpTo(ctx, s.bucket, key, maximum)
	if err != nil {
		return nil, blobs.Wrap(err, "read "+what, key)
	}
	digest := sha256.Sum256(data)
	if got := checksum(digest[:]); got != sum {
		return nil, &disdel.Error{
			Kind: disdel.Corrupt, Op: "read " + what, Msg: fmt.Sprintf("%s has checksum %s, not %s", key, got, sum),
			Hint: "the file was changed; submit the job again",
		}
	}
	return data, nil
}

// ReadProgram reads the archive of a Python program. It returns NotFound if the store lacks it, and Corrupt if its
// content does not have the digest.
func (s *Store) ReadProgram(ctx context.Context, code string) ([]byte, error) {
	key, err := programKey(code)
	if err != nil {
		return nil, err
	}
	return s.readContent(ctx, "program", key, code, MaxProgram)
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
func programKey(code string) (string, error) { return contentKey("code", code, ".zip") }

// contentKey is where a folder has the file of a digest.
func contentKey(folder, sum, ext string) (string, error) {
	digest, ok := strings.CutPrefix(sum, "sha256:")
	if raw, err := hex.DecodeString(digest); !ok || err != nil || len(raw) != sha256.Size {
		return "", &disdel.Error{Kind: disdel.Invalid, Op: "find file", Msg: fmt.Sprintf("%q is no digest", sum)}
	}
	return path.Join(folder, digest+ext), nil
}

// maxTokenizer is the largest tokenizer.json, in bytes.
const maxTokenizer = 64 << 20

func tokenizerKey(sum string) (string, error) { return contentKey("tokenizers", sum, ".json") }

// WriteTokenizer stores the tokenizer.json of a data set of text for the models that are trained on it, under its
// checksum, which it returns. Writing the same file again is harmless.
func (s *Store) WriteTokenizer(ctx context.Context, file []byte) (sum string, err error) {
	return s.writeContent(ctx, "tokenizer", tokenizerKey, file)
}

// maxOrigin bounds what an export to a hub needs: small files, and the vectors that a network does not have.
const maxOrigin = 256 << 20

func originKey(sum string) (string, error) { return contentKey("origins", sum, ".safetensors") }

// HubFiles reads what a model of a hub has besides its weights. A missing file of either kind is NotFound; it also
// returns Corrupt if a file does not have its checksum.
func (s *Store) HubFiles(ctx context.Context, m *Model) (f HubFiles, err error) {
	if m.Data.Tokenizer != "" {
		if f.Tokenizer, err = s.ReadTokenizer(ctx, m.Data.Tokenizer); err != nil {
			return f, err
		}
	}
	if m.Origin == "" {
		return f, nil
	}
	key, err := originKey(m.Origin)
	if err != nil {
		return f, err
	}
	f.Origin, err = s.readContent(ctx, "origin of a model", key, m.Origin, maxOrigin)
	return f, err
}

// maxTable is the largest description of a table's columns, in bytes.
const maxTable = 64 << 20

func tableKey(sum string) (string, error) { return contentKey("tables", sum, ".json") }

// WriteTable stores the description of a table's columns, see dataset.Table, for the models that are trained on it, under
// its checksum, which it returns. Writing the same description again is harmless.
func (s *Store) WriteTable(ctx context.Context, description []byte) (sum string, err error) {
	return s.writeContent(ctx, "description of columns", tableKey, description)
}

// ReadTable reads the description of a table's columns with a checksum. It returns Invalid, NotFound, and Corrupt if its
// content does not have the checksum.
func (s *Store) ReadTable(ctx context.Context, sum string) ([]byte, error) {
	key, err := tableKey(sum)
	if err != nil {
		return nil, err
	}
	return s.readContent(ctx, "description of columns", key, sum, maxTable)
}

// ReadTokenizer reads the tokenizer.json with a checksum. It returns Invalid, NotFound, and Corrupt if its content does
// not have the checksum.
func (s *Store) ReadTokenizer(ctx context.Context, sum string) ([]byte, error) {
	key, err := tokenizerKey(sum)
	if err != nil {
		return nil, err
	}
	return s.readContent(ctx, "tokenizer", key, sum, maxTokenizer)
}
