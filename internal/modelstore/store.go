package modelstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"sort"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

// Model describes one version of a trained model. It is all that is needed to use it again.
type Model struct {
	APIVersion string `json:"apiVersion"`
	disdel.ModelRef
	Job      disdel.JobID    `json:"job"`
	Created  time.Time       `json:"created"`
	Network  disdel.Network  `json:"network"`
	Data     disdel.DataInfo `json:"data"`
	Accuracy float64         `json:"accuracy"` // held-out
	Loss     float64         `json:"loss"`     // held-out
	Epochs   int             `json:"epochs"`
	Workers  int             `json:"workers"`
	Labels   []string        `json:"labels,omitempty"` // class names, where the data set has them

	Learned   *bool    `json:"learned,omitempty"`   // whether training came to anything; nil: not known
	Evaluated *bool    `json:"evaluated,omitempty"` // nil: it was, as far as there are held-out rows
	Warnings  []string `json:"warnings,omitempty"`  // what there is to say against it
}

// Ref prints NAME:vN.
func (m *Model) Ref() string { return fmt.Sprintf("%s:v%d", m.Name, m.Version) }

// Store is a bucket of models. It is safe for concurrent use.
type Store struct {
	bucket *blob.Bucket
	folder string // see blobs.Folder
}

// Open opens the models at a blob URL. Errors are those of blobs.Open.
func Open(ctx context.Context, url string) (*Store, error) {
	b, err := blobs.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return &Store{bucket: b, folder: blobs.Folder(url)}, nil
}

// Close frees the bucket.
func (s *Store) Close() error { return s.bucket.Close() }

// WeightsPath is where a job's final weights go.
func WeightsPath(name string, job disdel.JobID) string {
	return path.Join("weights", name, string(job)+".safetensors")
}

func descriptionPath(name string, version int) string {
	return fmt.Sprintf("models/%s/v%05d.json", name, version)
}

// WriteWeights writes weights as safetensors and returns the file's sha256 ("sha256:" and hex) and size. Writing the same
// weights again is harmless.
func (s *Store) WriteWeights(ctx context.Context, key string, w disdel.Weights, meta map[string]string) (string, disdel.Bytes, error) {
	out, err := s.bucket.NewWriter(ctx, key, nil)
	if err != nil {
		return "", 0, blobs.Wrap(err, "write weights", key)
	}
	sum, size := sha256.New(), new(counter)
	err = safetensors.Write(io.MultiWriter(out, sum, size), safetensors.FromWeights(w, meta))
	if err = errors.Join(err, out.Close()); err != nil {
		return "", 0, blobs.Wrap(err, "write weights", key)
	}
	return checksum(sum.Sum(nil)), disdel.Bytes(*size), nil
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func checksum(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// ReadWeights reads weights and refuses a file whose sha256 is not want (Corrupt).
func (s *Store) ReadWeights(ctx context.Context, key, want string) (disdel.Weights, error) {
	data, err := s.readAll(ctx, key)
	if err != nil {
		return nil, blobs.Wrap(err, "read weights", key)
	}
	sum := sha256.Sum256(data)
	if got := checksum(sum[:]); got != want {
		return nil, changed(key, got, want)
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		return nil, err
	}
	return safetensors.ToWeights(f)
}

// readAll reads a key into memory of its size: what grows on the way takes twice as much.
func (s *Store) readAll(ctx context.Context, key string) ([]byte, error) {
	r, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, r.Size())
	_, err = io.ReadFull(r, data)
	return data, err
}

// CopyWeights copies the file of weights as it is and returns Corrupt if its sha256 is not want.
func (s *Store) CopyWeights(ctx context.Context, w io.Writer, key, want string) error {
	r, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return blobs.Wrap(err, "read weights", key)
	}
	defer r.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), r); err != nil {
		return blobs.Wrap(err, "copy weights", key)
	}
	if got := checksum(sum.Sum(nil)); got != want {
		return changed(key, got, want)
	}
	return nil
}

func changed(key, got, want string) error {
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "read weights", Msg: fmt.Sprintf("%s has checksum %s, not %s", key, got, want),
		Hint: "the file was changed after training; use another version of the model",
	}
}

// Commit gives m the next free version of its name and writes its description, then removes the oldest versions so that
// keep remain.
func (s *Store) Commit(ctx context.Context, m Model, keep int) (Model, error) {
	versions, err := s.versions(ctx, m.Name)
	if err != nil {
		return m, err
	}
	m.APIVersion = disdel.APIVersion
	m.Version = 1
	if n := len(versions); n > 0 {
		m.Version = versions[n-1] + 1
	}
	for {
		err := s.describe(ctx, m)
		if err == nil {
			break
		}
		if disdel.KindOf(err) != disdel.Conflict {
			return m, err
		}
		m.Version++ // another job took it first
	}
	return m, s.prune(ctx, m.Name, append(versions, m.Version), keep)
}

func (s *Store) describe(ctx context.Context, m Model) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "describe model", Msg: m.Name, Err: err}
	}
	key := descriptionPath(m.Name, m.Version)
	return blobs.Create(ctx, s.bucket, s.folder, key, data)
}

func (s *Store) prune(ctx context.Context, name string, versions []int, keep int) error {
	for len(versions) > max(keep, 1) {
		if err := s.remove(ctx, name, versions[0]); err != nil && disdel.KindOf(err) != disdel.NotFound {
			return err
		}
		versions = versions[1:]
	}
	return nil
}

// remove deletes the description first: weights without one belong to nobody.
func (s *Store) remove(ctx context.Context, name string, version int) error {
	m, err := s.read(ctx, descriptionPath(name, version))
	if err != nil {
		return err
	}
	key := descriptionPath(name, version)
	if err := s.bucket.Delete(ctx, key); err != nil {
		return blobs.Wrap(err, "remove model", key)
	}
	return blobs.Wrap(s.bucket.Delete(ctx, m.Path), "remove weights", m.Path)
}

// Get finds NAME (its newest version that learned something, see newest) or NAME:vN. It returns NotFound with the names there are.
func (s *Store) Get(ctx context.Context, ref string) (Model, error) {
	name, version, err := parseRef(ref)
	if err != nil {
		return Model{}, err
	}
	versions, err := s.versions(ctx, name)
	if err != nil {
		return Model{}, err
	}
	if version == 0 && len(versions) > 0 {
		version = s.newest(ctx, name, versions)
	}
	m, err := s.read(ctx, descriptionPath(name, version))
	if disdel.KindOf(err) == disdel.NotFound {
		return m, &disdel.Error{
			Kind: disdel.NotFound, Op: "find model", Msg: fmt.Sprintf("no trained model %q", ref),
			Hint: "disdel model list",
		}
	}
	return m, err
}

// parseRef splits NAME:vN; version 0 is the newest.
func parseRef(ref string) (name string, version int, err error) {
	name, v, ok := strings.Cut(ref, ":")
	if ok {
		version, err = strconv.Atoi(strings.TrimPrefix(v, "v"))
	}
	if err != nil || ok && version < 1 || name == "" || strings.ContainsAny(name, "/\\") {
		return "", 0, &disdel.Error{
			Kind: disdel.Invalid, Op: "find model", Msg: fmt.Sprintf("%q is no model", ref),
			Hint: "write NAME or NAME:vN",
		}
	}
	return name, version, nil
}

func (s *Store) read(ctx context.Context, key string) (Model, error) {
	data, err := s.bucket.ReadAll(ctx, key)
	if err != nil {
		return Model{}, blobs.Wrap(err, "read model", key)
	}
	var m Model
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&m); err != nil {
		return m, &disdel.Error{Kind: disdel.Corrupt, Op: "read model", Msg: key, Err: err}
	}
	return m, nil
}

// versions lists a name's versions, oldest first.
func (s *Store) versions(ctx context.Context, name string) ([]int, error) {
	var out []int
	err := s.each(ctx, "models/"+name+"/", func(key string) error {
		v, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(path.Base(key), "v"), ".json"))
		if err == nil {
			out = append(out, v)
		}
		return nil
	})
	sort.Ints(out)
	return out, err
}

// List returns every model, by name and newest version first.
func (s *Store) List(ctx context.Context) ([]Model, error) {
	var out []Model
	err := s.each(ctx, "models/", func(key string) error {
		m, err := s.read(ctx, key)
		if err == nil {
			out = append(out, m)
		}
		return err
	})
	sort.Slice(out, func(i, j int) bool {
		if out[i].Name != out[j].Name {
			return out[i].Name < out[j].Name
		}
		return out[i].Version > out[j].Version
	})
	return out, err
}

func (s *Store) each(ctx context.Context, prefix string, f func(key string) error) error {
	keys, err := s.keys(ctx, prefix)
	for tries := 0; disdel.KindOf(err) == disdel.NotFound && tries < listTries; tries++ {
		keys, err = s.keys(ctx, prefix)
	}
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := f(key); err != nil {
			return err
		}
	}
	return nil
}

// listTries bounds how often a listing starts again. A folder is listed name by name, and a description that is just being
// written has a temporary name that is gone a moment later; the listing then fails with NotFound.
const listTries = 100

// keys lists the descriptions under prefix.
func (s *Store) keys(ctx context.Context, prefix string) ([]string, error) {
	var out []string
	it := s.bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		obj, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, blobs.Wrap(err, "list models", prefix)
		}
		if strings.HasSuffix(obj.Key, ".json") {
			out = append(out, obj.Key)
		}
	}
}
