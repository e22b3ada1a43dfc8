package modelstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"path"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

// InitialWeights are weights that a job can start from: those of a trained model, or of a file that PutWeights stored.
type InitialWeights struct {
	Ref      string // NAME:vN, or the file's checksum
	Key      string
	Checksum string
	Size     disdel.Bytes
	Arrays   disdel.Weights // names and shapes, without values

	from *Store // that has the file
}

// checksumScheme begins a checksum, which is also the name of stored weights.
const checksumScheme = "sha256:"

// Checksum is the name of a file of weights: "sha256:" and its SHA-256 in hex.
func Checksum(r io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return "", err
	}
	return checksum(sum.Sum(nil)), nil
}

// givenKey is the key of the file with a checksum. It returns Invalid for any other text, which could hide a path.
func givenKey(sum string) (string, error) {
	digits, ok := strings.CutPrefix(sum, checksumScheme)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != sha256.Size || digits != strings.ToLower(digits) {
		return "", &disdel.Error{
			Kind: disdel.Invalid, Op: "find weights", Msg: fmt.Sprintf("%.80q is no checksum", sum),
			Hint: "it is sha256: and 64 lower-case hex digits",
		}
	}
	return path.Join("given", digits+".safetensors"), nil
}

// PutWeights stores a safetensors file of size bytes under its checksum, until RemoveWeights. It returns Invalid for a
// file that is no safetensors file or has another checksum, and stores nothing then. It does not read a file that is
// stored already.
func (s *Store) PutWeights(ctx context.Context, sum string, size int64, r io.Reader) (InitialWeights, error) {
	key, err := givenKey(sum)
	if err != nil {
		return InitialWeights{}, err
	}
	if g, err := s.FindWeights(ctx, sum); err == nil {
		return g, nil
	}
	if err := s.keep(ctx, key, sum, size, r); err != nil {
		return InitialWeights{}, err
	}
	g, err := s.FindWeights(ctx, sum)
	if err != nil {
		s.RemoveWeights(context.WithoutCancel(ctx), sum) //nolint:errcheck // nobody begins with it
	}
	return g, err
}

// keep stores a file with a valid header and the expected checksum.
func (s *Store) keep(ctx context.Context, key, want string, size int64, r io.Reader) error {
	err := blobs.Write(ctx, s.bucket, key, func(out io.Writer) error {
		sum := sha256.New()
		in := io.TeeReader(io.LimitReader(r, size), io.MultiWriter(out, sum))
		if _, _, err := safetensors.Index(in, size); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, in); err != nil {
			return err
		}
		if got := checksum(sum.Sum(nil)); got != want {
			return corrupt(fmt.Sprintf("its checksum is %s, and not %s", got, want))
		}
		return nil
	})
	if disdel.KindOf(err) == disdel.Corrupt {
		return unusable(disdel.AsError(err).Msg)
	}
	return blobs.Wrap(err, "write weights", key)
}

func corrupt(msg string) error {
	return &disdel.Error{Kind: disdel.Corrupt, Op: "read weights", Msg: msg}
}

// unusable is the error for a file that no job can start from.
func unusable(why string) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "take weights", Msg: "this is no file of weights: " + why,
		Hint: "write it with safetensors, in float32: save_file({k: v.float() for k, v in net.state_dict().items()}, FILE)",
	}
}

// FindWeights finds initial weights by NAME, NAME:vN or NAME:TAG of a model, or by the checksum of a stored file. It
// returns the errors of Get, NotFound for a checksum that is not stored, and Invalid for values that are not float32.
func (s *Store) FindWeights(ctx context.Context, ref string) (g InitialWeights, err error) {
	g.from = s
	if strings.HasPrefix(ref, checksumScheme) {
		g.Ref, g.Checksum = ref, ref
		g.Key, err = givenKey(ref)
	} else {
		var m Model
		m, err = s.Get(ctx, ref)
		g.Ref, g.Key, g.Checksum = m.Ref(), m.Path, m.Checksum
	}
	if err != nil {
		return g, err
	}
	r, err := s.bucket.NewReader(ctx, g.Key)
	if err != nil {
		return g, blobs.Wrap(err, "read weights", g.Key)
	}
	defer r.Close()
	f, _, err := safetensors.Index(r, r.Size())
	if err != nil {
		return g, err
	}
	g.Size = disdel.Bytes(r.Size())
	for _, t := range f.Tensors {
		if t.DType == safetensors.F32 {
			g.Arrays = append(g.Arrays, disdel.Tensor{Name: t.Name, Shape: t.Shape})
		} else if !counted(t.Name) {
			return g, unusable(fmt.Sprintf("%s has values of the type %s", t.Name, t.DType))
		}
	}
	return g, nil
}

// counted says whether an array is PyTorch's count of batches, which disdel does not need.
func counted(array string) bool { return strings.HasSuffix(array, "num_batches_tracked") }

// RemoveWeights deletes a file that PutWeights stored. Jobs that started from it have a copy. It returns Invalid and
// NotFound.
func (s *Store) RemoveWeights(ctx context.Context, sum string) error {
	key, err := givenKey(sum)
	if err != nil {
		return err
	}
	if _, err := s.bucket.Size(ctx, key); err != nil { // some buckets delete what is not there
		return blobs.Wrap(err, "remove weights", key)
	}
	return blobs.Wrap(s.bucket.Delete(ctx, key), "remove weights", key)
}

// StoredWeights is a file that PutWeights stored.
type StoredWeights struct {
	Ref     string       `json:"weights"` // its checksum
	Size    disdel.Bytes `json:"sizeBytes"`
	Written time.Time    `json:"written"`
}

// KeptWeights are the files that PutWeights stored.
func (s *Store) KeptWeights(ctx context.Context) ([]StoredWeights, error) {
	var out []StoredWeights
	for o, err := range s.bucket.List(ctx, "given/") {
		if err != nil {
			return out, blobs.Wrap(err, "list weights", "given")
		}
		ref := checksumScheme + strings.TrimSuffix(path.Base(o.Key), ".safetensors")
		if key, err := givenKey(ref); err == nil && key == o.Key {
			out = append(out, StoredWeights{ref, disdel.Bytes(o.Size), o.Written})
		}
	}
	return out, nil
}

// CopyToCheckpoint copies the arrays that takes accepts, one at a time, into a folder of checkpoints as the start of
// the first round. The weights may be those of another Store. It returns Corrupt if the file has changed.
func (s *Store) CopyToCheckpoint(ctx context.Context, g InitialWeights, folder string, takes func(array string) bool) (
	c disdel.Checkpoint, err error,
) {
	r, err := cmp.Or(g.from, s).bucket.NewReader(ctx, g.Key)
	if err != nil {
		return c, blobs.Wrap(err, "read weights", g.Key)
	}
	defer r.Close()
	in, err := newSieve(r, r.Size(), g, takes)
	if err != nil {
		return c, err
	}
	c.Path = path.Join(folder, roundFolder(0), referenceFile)
	c.Checksum, c.Size, err = s.WriteCheckpoint(ctx, c.Path, "", in.taken, in.values)
	return c, err
}

// sieve reads selected arrays of a file in their order, and all bytes for the checksum.
type sieve struct {
	given InitialWeights
	in    io.Reader
	sum   hash.Hash
	taken disdel.Weights // names and shapes
	from  map[string]int64
	at    int64
}

// newSieve reads the header of a file of size bytes.
func newSieve(r io.Reader, size int64, g InitialWeights, takes func(array string) bool) (*sieve, error) {
	s := &sieve{given: g, sum: sha256.New()}
	s.in = io.TeeReader(r, s.sum)
	f, from, err := safetensors.Index(s.in, size)
	if err != nil {
		return nil, err
	}
	s.from = from
	for i, t := range f.Tensors {
		if i == 0 {
			s.at = from[t.Name]
		}
		if t.DType == safetensors.F32 && takes(t.Name) {
			s.taken = append(s.taken, disdel.Tensor{Name: t.Name, Shape: t.Shape})
		}
	}
	return s, nil
}

// values are the values of the selected arrays. After the last array it reads the rest of the file and compares the
// checksum.
func (s *sieve) values(take func(block []float32) error) error {
	for _, t := range s.taken {
		length := int64(4 * lengthOf(t.Shape))
		if _, err := io.CopyN(io.Discard, s.in, s.from[t.Name]-s.at); err != nil {
			return blobs.Wrap(err, "read weights", s.given.Key)
		}
		if err := readBlocks(s.in, length, "read weights", s.given.Key, take); err != nil {
			return err
		}
		s.at = s.from[t.Name] + length
	}
	if _, err := io.Copy(io.Discard, s.in); err != nil {
		return blobs.Wrap(err, "read weights", s.given.Key)
	}
	if got := checksum(s.sum.Sum(nil)); got != s.given.Checksum {
		return changed(s.given.Key, got, s.given.Checksum)
	}
	return nil
}

// lengthOf is the number of values of a shape.
func lengthOf(shape []int) int {
	n := 1
	for _, side := range shape {
		n *= side
	}
	return n
}
