package modelstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

// A checkpoint is a folder for each round, FOLDER/000012/, with the reference that the round starts from and, of jobs
// whose workers keep state of their own, a file for each worker. Beside each file stands its checksum, written last: a
// file without one was never finished, and one of another checksum is damaged.
const (
	referenceFile = "reference.safetensors"
	sumSuffix     = ".sha256"
	noteKey       = "note"
)

// WriteCheckpoint writes tensors and a note about them under a key of a checkpoint, like WriteWeights.
func (s *Store) WriteCheckpoint(ctx context.Context, key, note string, shapes disdel.Weights, values Values) (
	checksum string, size disdel.Bytes, err error,
) {
	checksum, size, err = s.WriteWeights(ctx, key, shapes, map[string]string{"format": "pt", noteKey: note}, values)
	if err != nil {
		return "", 0, err
	}
	return checksum, size, blobs.Wrap(blobs.WriteAll(ctx, s.bucket, key+sumSuffix, []byte(checksum)), "write checkpoint",
		key)
}

// ReadCheckpoint reads what WriteCheckpoint wrote. It returns NotFound for an unfinished file and Corrupt for a damaged
// one.
func (s *Store) ReadCheckpoint(ctx context.Context, key string) (note string, w disdel.Weights, err error) {
	want, err := blobs.ReadAll(ctx, s.bucket, key+sumSuffix)
	if err != nil {
		return "", nil, blobs.Wrap(err, "read checkpoint", key)
	}
	data, err := blobs.ReadAll(ctx, s.bucket, key)
	if err != nil {
		return "", nil, blobs.Wrap(err, "read checkpoint", key)
	}
	sum := sha256.Sum256(data)
	if got := checksum(sum[:]); got != string(want) {
		return "", nil, notThatCheckpoint(key, got, want)
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		return "", nil, err
	}
	w, err = safetensors.ToWeights(f)
	return f.Metadata[noteKey], w, err
}

func notThatCheckpoint(key, got string, want []byte) error {
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "read checkpoint", Msg: fmt.Sprintf("%s has checksum %s, not %.80q", key, got, want),
		Hint: "disdel resume takes the checkpoint before it",
	}
}

// ReadCheckpointTo is ReadCheckpoint for one tensor at a time. It calls begin with the note; begin returns the function
// that takes the tensors in their order, or nil to stop. The data of a tensor is valid until take returns. The checksum
// is known only at the end: take may have been called before Corrupt is returned.
func (s *Store) ReadCheckpointTo(ctx context.Context, key string,
	begin func(note string) (take func(disdel.Tensor) error, err error),
) error {
	want, err := blobs.ReadAll(ctx, s.bucket, key+sumSuffix)
	if err != nil {
		return blobs.Wrap(err, "read checkpoint", key)
	}
	r, err := s.bucket.NewReader(ctx, key)
	if err != nil {
		return blobs.Wrap(err, "read checkpoint", key)
	}
	defer r.Close()
	sum, all := sha256.New(), false
	err = safetensors.Read(io.TeeReader(r, sum), r.Size(),
		func(meta map[string]string) (func(safetensors.Tensor) error, error) {
			take, err := begin(meta[noteKey])
			if err != nil || take == nil {
				return nil, err
			}
			all = true
			return func(t safetensors.Tensor) error {
				values, err := safetensors.Float32s(t)
				if err != nil {
					return err
				}
				return take(disdel.Tensor{Name: t.Name, Shape: t.Shape, Data: values})
			}, nil
		})
	if got := checksum(sum.Sum(nil)); err == nil && all && got != string(want) {
		return notThatCheckpoint(key, got, want)
	}
	return err
}

// blockBytes is how much of a file is in memory when it is read in blocks.
const blockBytes = 1 << 20

// ReadCheckpointValues reads the values of all tensors of a checkpoint in a row, in blocks, like Values. It returns
// NotFound for an unfinished file, and Corrupt for a damaged one or one with other tensors than like. The checksum is
// known only at the end: take may have been called before Corrupt is returned.
func (s *Store) ReadCheckpointValues(ctx context.Context, key string, like disdel.Weights,
	take func(block []float32) error,
) error {
	return s.scanCheckpoint(ctx, key, func(f safetensors.File, in io.Reader) error {
		if err := sameTensors(f, like); err != nil {
			return &disdel.Error{Kind: disdel.Corrupt, Op: "read checkpoint", Msg: fmt.Sprintf("%s: %v", key, err)}
		}
		return readBlocks(in, sizeOf(f), "read checkpoint", key, take)
	})
}

// scanCheckpoint calls use with the header of a checkpoint and a reader of the values, and compares the checksum.
func (s *Store) scanCheckpoint(ctx context.Context, key string, use func(safetensors.File, io.Reader) error) error {
	want, err := blobs.ReadAll(ctx, s.bucket, key+sumSuffix)
	if err != nil {
		return blobs.Wrap(err, "read checkpoint", key)
	}
	got, broken, err := s.scan(ctx, "read checkpoint", key, use)
	if err == nil && got != string(want) {
		return notThatCheckpoint(key, got, want)
	}
	return cmp.Or(err, broken)
}

// scan calls use with the header of a file and a reader of the values, and returns the checksum. broken is why the
// header cannot be read.
func (s *Store) scan(ctx context.Context, op, key string, use func(safetensors.File, io.Reader) error) (sum string,
	broken, err error,
) {
	r, err := s.bucket.NewReader(ctx, key)
	if err != nil {
		return "", nil, blobs.Wrap(err, op, key)
	}
	defer r.Close()
	hash := sha256.New()
	in := io.TeeReader(r, hash)
	f, _, broken := safetensors.Index(in, r.Size())
	if broken == nil {
		if err := use(f, in); err != nil {
			return "", nil, err
		}
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return "", nil, blobs.Wrap(err, op, key)
	}
	return checksum(hash.Sum(nil)), broken, nil
}

// sizeOf is the number of bytes of a file's values.
func sizeOf(f safetensors.File) (bytes int64) {
	for _, t := range f.Tensors {
		bytes += int64(t.DType.Size()) * int64(lengthOf(t.Shape))
	}
	return bytes
}

// sameTensors checks that a file has the tensors of like, in their order. A file may have tensors without values at
// other places.
func sameTensors(f safetensors.File, like disdel.Weights) error {
	remaining := slices.DeleteFunc(slices.Clone(like), func(t disdel.Tensor) bool { return lengthOf(t.Shape) == 0 })
	for _, t := range f.Tensors {
		if lengthOf(t.Shape) == 0 {
			continue
		}
		if t.DType != safetensors.F32 || len(remaining) == 0 ||
			t.Name != remaining[0].Name || !slices.Equal(t.Shape, remaining[0].Shape) {
			return fmt.Errorf("tensor %q of %s %v is not the network's", t.Name, t.DType, t.Shape)
		}
		remaining = remaining[1:]
	}
	if len(remaining) > 0 {
		return fmt.Errorf("it has no tensor %q", remaining[0].Name)
	}
	return nil
}

// readBlocks reads so many bytes of float32 values in blocks. op and key are for an error of reading.
func readBlocks(in io.Reader, bytes int64, op, key string, take func(block []float32) error) error {
	buffer := make([]byte, min(bytes, blockBytes))
	for bytes > 0 {
		data := buffer[:min(bytes, blockBytes)]
		if _, err := io.ReadFull(in, data); err != nil {
			return blobs.Wrap(err, op, key)
		}
		values, err := safetensors.Float32s(safetensors.Tensor{DType: safetensors.F32, Data: data})
		if err != nil {
			return err
		}
		if err := take(values); err != nil {
			return err
		}
		bytes -= int64(len(data))
	}
	return nil
}

// NewestCheckpoint finds the newest undamaged checkpoint below a folder. passed names the damaged files that it
// skipped. It returns NotFound if there is no such checkpoint.
func (s *Store) NewestCheckpoint(ctx context.Context, folder string) (c disdel.Checkpoint, passed []string, err error) {
	rounds, err := s.rounds(ctx, folder)
	if err != nil {
		return c, nil, err
	}
	for _, r := range slices.Backward(rounds) {
		key, err := s.damaged(ctx, path.Join(folder, roundFolder(r)))
		switch disdel.KindOf(err) {
		case disdel.UnknownKind:
			return s.checkpoint(ctx, r, key, passed)
		case disdel.Corrupt:
			passed = append(passed, key)
		case disdel.NotFound:
		default:
			return c, passed, err
		}
	}
	return c, passed, &disdel.Error{Kind: disdel.NotFound, Op: "find checkpoint", Msg: "there is none below " + folder}
}

// damaged reads a whole checkpoint, in blocks. It returns the key of its reference, or the key of a damaged file with the error. A
// worker's unfinished file is no damage: the round continued without this worker.
func (s *Store) damaged(ctx context.Context, folder string) (string, error) {
	reference := path.Join(folder, referenceFile)
	whole := func(safetensors.File, io.Reader) error { return nil }
	if err := s.scanCheckpoint(ctx, reference, whole); err != nil {
		return reference, err
	}
	for o, err := range s.bucket.List(ctx, folder+"/") {
		if err != nil {
			return folder, blobs.Wrap(err, "list checkpoint", folder)
		}
		if o.Key == reference || !strings.HasSuffix(o.Key, ".safetensors") {
			continue
		}
		if err := s.scanCheckpoint(ctx, o.Key, whole); err != nil && disdel.KindOf(err) != disdel.NotFound {
			return o.Key, err
		}
	}
	return reference, nil
}

func (s *Store) checkpoint(ctx context.Context, round int, key string, passed []string) (disdel.Checkpoint, []string,
	error,
) {
	sum, err := blobs.ReadAll(ctx, s.bucket, key+sumSuffix)
	if err != nil {
		return disdel.Checkpoint{}, passed, blobs.Wrap(err, "read checkpoint", key)
	}
	size, err := s.bucket.Size(ctx, key)
	if err != nil {
		return disdel.Checkpoint{}, passed, blobs.Wrap(err, "read checkpoint", key)
	}
	return disdel.Checkpoint{Round: round, Path: key, Checksum: string(sum), Size: disdel.Bytes(size)}, passed, nil
}

func roundFolder(round int) string { return fmt.Sprintf("%06d", round) }

// rounds are the rounds that have a folder, oldest first.
func (s *Store) rounds(ctx context.Context, folder string) ([]int, error) {
	names, err := s.bucket.Folders(ctx, folder+"/")
	if err != nil {
		return nil, blobs.Wrap(err, "list checkpoints", folder)
	}
	var out []int
	for _, name := range names {
		if r, err := strconv.Atoi(name); err == nil {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return out, nil
}

// PruneCheckpoints deletes all but the newest keep rounds below a folder. With given it also keeps round 0, which has
// weights that no later round has: those of frozen layers.
func (s *Store) PruneCheckpoints(ctx context.Context, folder string, keep int, given bool) error {
	rounds, err := s.rounds(ctx, folder)
	if given && len(rounds) > 0 && rounds[0] == 0 {
		rounds = rounds[1:]
	}
	if err != nil || len(rounds) <= keep {
		return err
	}
	for _, r := range rounds[:len(rounds)-keep] {
		if err := s.Discard(ctx, path.Join(folder, roundFolder(r))); err != nil {
			return err
		}
	}
	return nil
}

// Discard deletes everything below a folder. Missing files are no error, because two processes may discard at once.
func (s *Store) Discard(ctx context.Context, folder string) error {
	for o, err := range s.bucket.List(ctx, folder+"/") {
		if err != nil {
			return blobs.Wrap(err, "discard", folder)
		}
		if err := s.deleteIfThere(ctx, "discard", o.Key); err != nil {
			return err
		}
	}
	return s.removeFolder(folder)
}

// removeFolder removes the folders that a bucket on files leaves behind.
func (s *Store) removeFolder(folder string) error {
	if s.folder == "" {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(s.folder, filepath.FromSlash(folder))); err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "discard", Msg: folder, Err: err}
	}
	return nil
}
