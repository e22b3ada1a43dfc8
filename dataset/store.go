package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// Store has the data sets of a blob URL. It is safe for concurrent use.
type Store struct {
	bucket blobs.Bucket
	folder string // see blobs.Folder
	guard  func(ctx context.Context, name string) error
}

// OpenStore opens the data sets at file:///folder (created if missing), s3://bucket or mem://. Errors: Invalid,
// Unavailable.
func OpenStore(ctx context.Context, url string) (*Store, error) {
	b, err := blobs.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return &Store{bucket: b, folder: blobs.Folder(url)}, nil
}

// Guard sets a check that runs before the content of a data set is replaced. If it returns an error, the data set stays
// as it is, and the call that adds returns that error. Guard must be called before the store is used.
func (s *Store) Guard(check func(ctx context.Context, name string) error) { s.guard = check }

// Close releases the store; so far it does nothing.
func (s *Store) Close() error { return nil }

func manifestKey(name string) string { return path.Join(name, "manifest.json") }

// sumKey is the key of the manifest's checksum. Data sets of earlier versions have none.
func sumKey(name string) string { return manifestKey(name) + ".sha256" }

// chunkBytes is the approximate size of a chunk: large enough for one read, small enough to be in memory besides a
// shard.
const chunkBytes = 4 << 20

// rowsOfChunk is how many rows of so many stored bytes a full chunk has; their labels come on top. The estimator
// counts a chunk like this.
func rowsOfChunk(sample int) int { return max(1, chunkBytes/max(sample, 1)) }

// Samples are rows in memory, for Add.
type Samples struct {
	Shape  []int  // [channels height width]
	U8     []byte // one of U8 and F32 has the rows' values
	F32    []float32
	Labels []int32
}

// Len is the number of rows.
func (x *Samples) Len() int { return len(x.Labels) }

// Input is a data set to add.
type Input struct {
	Name, Title, License string
	Classes              int // 0: the largest label plus 1
	ClassNames           []string
	Scale, Offset        float32
	Train                Samples
	Test                 *Samples // nil: none
}

// Add stores a data set in memory. It changes nothing if the same data set exists; other data under the same name is
// a Conflict unless overwrite is set. The manifest is written last: an interrupted Add has added nothing.
func (s *Store) Add(ctx context.Context, in Input, overwrite bool) (Manifest, error) {
	m, err := in.manifest()
	if err != nil {
		return m, err
	}
	dense := in.dense(m)
	if err := dense.check(); err != nil {
		return m, err
	}
	return s.addStream(ctx, in.Name, overwrite, func(dry bool) (Manifest, error) {
		out, err := s.writeDense(ctx, &dense, dry)
		out.Scale, out.Offset, out.LabelClasses = m.Scale, m.Offset, false
		// Add gets class numbers: they are no values to predict.
		out.LabelClasses = out.NumericTarget() != "" || out.NumericClasses() != ""
		return out, err
	})
}

func nameTaken(name string, whole bool) error {
	e := &disdel.Error{
		Kind: disdel.Conflict, Op: "add data set", Msg: fmt.Sprintf("there is another data set %q", name),
		Hint: "add --overwrite to replace it, or choose another NAME",
	}
	if !whole {
		e.Msg = fmt.Sprintf("there is a data set %q already, and it is damaged", name)
	}
	return e
}

// beginAdd removes the old manifest's checksum, so that no manifest is ever beside another's checksum.
func (s *Store) beginAdd(ctx context.Context, name string) error {
	err := blobs.Wrap(s.bucket.Delete(ctx, sumKey(name)), "replace data set", name)
	if disdel.KindOf(err) == disdel.NotFound {
		return nil
	}
	return err
}

// endAdd writes the encoded manifest, then its checksum, and removes the files of an earlier data set of that name.
func (s *Store) endAdd(ctx context.Context, m *Manifest, data []byte) error {
	for _, w := range []struct {
		key  string
		data []byte
	}{{manifestKey(m.Name), data}, {sumKey(m.Name), []byte(checksum(data) + "\n")}} {
		if err := blobs.WriteAll(ctx, s.bucket, w.key, w.data); err != nil {
			return blobs.Wrap(err, "write manifest", w.key)
		}
	}
	own := map[string]bool{manifestKey(m.Name): true, sumKey(m.Name): true, tokenizerKey(m.Name): m.Tokenizer != ""}
	for _, p := range []Part{m.Train, m.Test} {
		for _, c := range p.Chunks {
			own[c.Key] = true
		}
	}
	keys, err := s.keys(ctx, m.Name)
	if err != nil {
		return err
	}
	return s.delete(ctx, slices.DeleteFunc(keys, func(key string) bool { return own[key] }))
}

func (in *Input) manifest() (Manifest, error) {
	m := Manifest{
		APIVersion: disdel.APIVersion, Name: in.Name, Title: in.Title, License: in.License, Sample: in.Train.Shape,
		Classes: in.Classes, ClassNames: in.ClassNames, Scale: in.Scale, Offset: in.Offset, DType: "U8",
	}
	if in.Train.U8 == nil {
		m.DType = "F32"
	}
	if m.Scale == 0 {
		m.Scale = 1
	}
	if err := checkName(in.Name); err != nil {
		return m, err
	}
	for _, x := range []*Samples{&in.Train, in.Test} {
		if x == nil {
			continue
		}
		if err := x.check(&m); err != nil {
			return m, err
		}
		if in.Classes == 0 {
			for _, y := range x.Labels {
				m.Classes = max(m.Classes, int(y)+1)
			}
		}
	}
	return m, nil
}

func (x *Samples) check(m *Manifest) error {
	bad := func(format string, args ...any) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "add data set " + m.Name, Msg: fmt.Sprintf(format, args...)}
	}
	values := len(x.F32)
	if m.DType == "U8" {
		values = len(x.U8)
	}
	if x.Len() == 0 || fmt.Sprint(x.Shape) != fmt.Sprint(m.Sample) || len(x.Shape) != 3 ||
		!bounded(x.Shape, largestSample) {
		return bad("%d rows of shape %v, and every part needs rows of one shape [channels height width]", x.Len(), x.Shape)
	}
	if values != x.Len()*m.SampleLen() {
		return bad("%d values do not make %d rows of %v", values, x.Len(), x.Shape)
	}
	if i := slices.IndexFunc(x.F32, func(v float32) bool { return !finite(v) }); i >= 0 {
		return bad("row %d holds %g, which is no value to learn from", i/m.SampleLen(), x.F32[i])
	}
	for i, y := range x.Labels {
		if y < 0 || m.Classes > 0 && int(y) >= m.Classes {
			return bad("the label of row %d is %d, and there are %d classes", i, y, m.Classes)
		}
	}
	return nil
}

// Manifest reads a data set's manifest. It returns NotFound with the command that adds the data set, and Corrupt for
// a manifest that Add did not write: one with another checksum, or with invalid numbers.
func (s *Store) Manifest(ctx context.Context, name string) (Manifest, error) {
	if err := checkName(name); err != nil {
		return Manifest{}, err
	}
	for again := false; ; again = true {
		data, err := s.readKey(ctx, manifestKey(name))
		gone := errors.Is(err, fs.ErrNotExist)
		if err != nil && !gone {
			return Manifest{}, blobs.Wrap(err, "read data set", name)
		}
		sum, err := s.readKey(ctx, sumKey(name))
		alone := errors.Is(err, fs.ErrNotExist)
		switch {
		case err != nil && !alone:
			return Manifest{}, blobs.Wrap(err, "read data set", name)
		case gone && alone:
			return Manifest{}, missing(name)
		case !gone && (alone || strings.TrimSpace(string(sum)) == checksum(data)):
			return readManifest(name, data)
		case again && gone:
			return Manifest{}, broken(name, nil, "it is missing, and its checksum is there")
		case again: // at the first time it may have been replaced meanwhile
			return Manifest{}, broken(name, nil, "its checksum is not the one beside it")
		}
	}
}

func missing(name string) error {
	hint := "disdel dataset list; or add it: disdel dataset add " + name + " --csv FILE; " +
		"other files: disdel dataset add --help"
	if slices.Contains(Known(), name) {
		hint = "disdel dataset add " + name
	}
	return &disdel.Error{
		Kind: disdel.NotFound, Op: "read data set", Msg: fmt.Sprintf("there is no data set %q", name),
		Hint: hint,
	}
}

// readKey reads a manifest or its checksum, at most largestManifest bytes.
func (s *Store) readKey(ctx context.Context, key string) ([]byte, error) {
	return blobs.ReadUpTo(ctx, s.bucket, key, largestManifest)
}

// List returns every data set by name. Those that cannot be read are omitted and named by the error.
func (s *Store) List(ctx context.Context) (out []Manifest, err error) {
	for m, fault := range s.All(ctx) {
		if fault != nil {
			err = errors.Join(err, fault)
			continue
		}
		out = append(out, m)
	}
	return out, err
}

// All yields the data sets of List one after another, and an error for each one that cannot be read.
func (s *Store) All(ctx context.Context) iter.Seq2[Manifest, error] {
	return func(yield func(Manifest, error) bool) {
		var names []string
		for obj, err := range s.bucket.List(ctx, "") {
			if err != nil {
				yield(Manifest{}, blobs.Wrap(err, "list data sets", ""))
				return
			}
			name, file, _ := strings.Cut(obj.Key, "/")
			if checkName(name) == nil && rank(name, name+"/"+file) < 2 {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			m, err := s.Manifest(ctx, name)
			if disdel.KindOf(err) == disdel.NotFound { // removed meanwhile
				continue
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// Removed is the result of Remove.
type Removed struct {
	Name  string       `json:"name"`
	Files int          `json:"files"`
	Size  disdel.Bytes `json:"sizeBytes"`
}

// Remove deletes a data set, its manifest and checksum first. It uses the keys that Add creates, not the manifest:
// nothing else is deleted, and a damaged data set can be removed.
func (s *Store) Remove(ctx context.Context, name string) (Removed, error) {
	r := Removed{Name: name}
	if err := checkName(name); err != nil {
		return r, err
	}
	keys, size, err := s.listOwn(ctx, name)
	if err != nil {
		return r, err
	}
	if len(keys) == 0 {
		return r, missing(name)
	}
	slices.SortStableFunc(keys, func(a, b string) int { return rank(name, a) - rank(name, b) })
	if err := s.delete(ctx, keys); err != nil {
		return r, err
	}
	if s.folder != "" {
		_ = os.Remove(filepath.Join(s.folder, name)) // fails if it has other files
	}
	r.Files, r.Size = len(keys), size
	return r, nil
}

// rank puts the checksum first, as a checksum without its manifest is damage. Without both there is no data set.
func rank(name, key string) int {
	switch key {
	case sumKey(name):
		return 0
	case manifestKey(name):
		return 1
	default:
		return 2
	}
}

var chunkForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(train|test)-\d{5,}\.safetensors$`)
})

// listOwn lists the keys that belong to a data set of that name, and their total size.
func (s *Store) listOwn(ctx context.Context, name string) (keys []string, size disdel.Bytes, err error) {
	for obj, err := range s.bucket.List(ctx, name+"/") {
		if err != nil {
			return nil, 0, blobs.Wrap(err, "list data set", name)
		}
		file := strings.TrimPrefix(obj.Key, name+"/")
		if rank(name, obj.Key) < 2 || file == tokenizerFile || chunkForm().MatchString(file) {
			keys, size = append(keys, obj.Key), size+disdel.Bytes(obj.Size)
		}
	}
	return keys, size, nil
}

func (s *Store) keys(ctx context.Context, name string) ([]string, error) {
	keys, _, err := s.listOwn(ctx, name)
	return keys, err
}

func (s *Store) delete(ctx context.Context, keys []string) error {
	for _, k := range keys {
		if err := blobs.Wrap(s.bucket.Delete(ctx, k), "remove data set", k); err != nil &&
			disdel.KindOf(err) != disdel.NotFound {
			return err
		}
	}
	return nil
}

// addStream stores a data set whose rows come as a stream. write writes its chunks, or with dry only computes them,
// and returns the manifest. An interrupted or failed call changes nothing.
func (s *Store) addStream(ctx context.Context, name string, overwrite bool, write func(dry bool) (Manifest, error)) (
	Manifest, error,
) {
	old, err := s.Manifest(ctx, name)
	kind := disdel.KindOf(err)
	if err != nil && kind != disdel.NotFound && kind != disdel.Corrupt {
		return Manifest{}, err
	}
	if kind != disdel.NotFound { // check whether there is anything to do, and whether it is valid
		m, err := write(true)
		switch {
		case err != nil:
			return m, err
		case kind == disdel.UnknownKind && old.Checksum() == m.Checksum():
			return m, nil
		case !overwrite:
			return m, nameTaken(name, kind == disdel.UnknownKind)
		}
		if s.guard != nil {
			if err := s.guard(ctx, name); err != nil {
				return m, err
			}
		}
		if err := s.beginAdd(ctx, name); err != nil {
			return m, err
		}
	}
	m, err := write(false)
	var data []byte
	if err == nil {
		data = m.encode()
		err = m.checkStored(len(data))
	}
	if err != nil {
		if kind == disdel.NotFound { // chunks without a manifest belong to no data set
			_ = s.forget(context.WithoutCancel(ctx), name) // a later data set of that name replaces what is left
		}
		return m, err
	}
	return m, s.endAdd(ctx, &m, data)
}

// forget removes the chunks of a failed data set.
func (s *Store) forget(ctx context.Context, name string) error {
	keys, err := s.keys(ctx, name)
	if err != nil {
		return err
	}
	return s.delete(ctx, keys)
}
