package modelstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

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
	disdel.Scores
	RankedBy string   `json:"rankedBy,omitempty"` // metric of Best, if it is not the one of the data
	Epochs   int      `json:"epochs"`
	Workers  int      `json:"workers"`
	Labels   []string `json:"labels,omitempty"` // class names, where the data set has them
	Inputs   *Range   `json:"inputs,omitempty"` // what the network has seen; models of earlier versions do not say

	Learned   *bool    `json:"learned,omitempty"`   // whether training came to anything; nil: not known
	Evaluated *bool    `json:"evaluated,omitempty"` // nil: it was, as far as there are held-out rows
	Warnings  []string `json:"warnings,omitempty"`  // what there is to say against it

	// Adapter is how the adapters that are merged into the weights were trained; nil: there are none, or an earlier
	// version of disdel trained them.
	Adapter *disdel.LoRA `json:"adapter,omitempty"`

	// Origin is the checksum of what an export to a hub needs, of models that came from a hub.
	Origin string `json:"origin,omitempty"`

	Tags []string `json:"tags,omitempty"` // that mean it, where versions are listed
}

// Range is the least and the greatest value of the inputs that a network was trained on, or of a sample of them.
type Range struct {
	Low  float32 `json:"low"`
	High float32 `json:"high"`
}

// Ref prints NAME:vN.
func (m *Model) Ref() string { return fmt.Sprintf("%s:v%d", m.Name, m.Version) }

// Store is a bucket of models. It is safe for concurrent use.
type Store struct {
	bucket blobs.Bucket
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

// Close frees what the store holds, which is nothing today.
func (s *Store) Close() error { return nil }

// deleteIfThere deletes a key. A key that does not exist is no error, because buckets disagree on that.
func (s *Store) deleteIfThere(ctx context.Context, op, key string) error {
	err := blobs.Wrap(s.bucket.Delete(ctx, key), op, key)
	if disdel.KindOf(err) == disdel.NotFound {
		return nil
	}
	return err
}

// DiscardFile deletes one file of the store. A missing file is no error.
func (s *Store) DiscardFile(ctx context.Context, key string) error {
	return s.deleteIfThere(ctx, "discard", key)
}

// WeightsPath is where a job's final weights go.
func WeightsPath(name string, job disdel.JobID) string {
	return path.Join("weights", name, string(job)+".safetensors")
}

func descriptionPath(name string, version int) string {
	return fmt.Sprintf("models/%s/v%05d.json", name, version)
}

// Values produces the values of all tensors of a file in a row. It calls take with blocks of any length, which are
// valid until take returns, and returns the first error of take.
type Values func(take func(block []float32) error) error

// ArrayValues produces the values of n arrays that read returns one at a time. Each is valid until the next call.
func ArrayValues(n int, read func(i int) []float32) Values {
	return func(take func([]float32) error) error {
		for i := range n {
			if err := take(read(i)); err != nil {
				return err
			}
		}
		return nil
	}
}

// WriteWeights writes weights as safetensors and returns the file's sha256 ("sha256:" and hex) and size. shapes has
// names and shapes; its data is ignored. Nothing is written if values fails. Writing the same weights again is
// harmless.
func (s *Store) WriteWeights(ctx context.Context, key string, shapes disdel.Weights, meta map[string]string,
	values Values,
) (string, disdel.Bytes, error) {
	sum, size := sha256.New(), new(counter)
	var fault error // of values, not of the bucket
	err := blobs.Write(ctx, s.bucket, key, func(out io.Writer) error {
		return safetensors.WriteValues(io.MultiWriter(out, sum, size), shapes, meta, func(take func([]float32) error) error {
			var written error
			err := values(func(block []float32) error {
				written = take(block)
				return written
			})
			if written == nil {
				fault = err
			}
			return err
		})
	})
	if fault == nil && disdel.KindOf(err) == disdel.Invalid { // values that do not fit their shapes
		fault = err
	}
	if fault != nil {
		return "", 0, fault
	}
	if err != nil {
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

// ReadWeights reads weights. It returns Corrupt if the sha256 of the file is not want. All weights are views of one
// array, the content of the file.
func (s *Store) ReadWeights(ctx context.Context, key, want string) (disdel.Weights, error) {
	data, err := blobs.ReadAll(ctx, s.bucket, key)
	if err != nil {
		return nil, lost(blobs.Wrap(err, "read weights", key))
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

// ReadWeightValues reads the values of all weights of a file in a row, in blocks. It returns Corrupt if the file has
// other tensors than like or its sha256 is not want. The sha256 is known only at the end: take may have been called
// before.
func (s *Store) ReadWeightValues(ctx context.Context, key, want string, like disdel.Weights,
	take func(block []float32) error,
) error {
	const op = "read weights"
	got, broken, err := s.scan(ctx, op, key, func(f safetensors.File, in io.Reader) error {
		if err := sameTensors(f, like); err != nil {
			return &disdel.Error{Kind: disdel.Corrupt, Op: op, Msg: fmt.Sprintf("%s: %v", key, err)}
		}
		return readBlocks(in, sizeOf(f), op, key, take)
	})
	if err == nil && got != want {
		return changed(key, got, want)
	}
	return lost(cmp.Or(err, broken))
}

// lost says what to do about weights that are not there.
func lost(err error) error {
	var e *disdel.Error
	if errors.As(err, &e) && e.Kind == disdel.NotFound {
		e.Hint = "use another version of the model: disdel model list"
	}
	return err
}

// CopyWeights copies the file of weights unchanged. It returns Corrupt if its sha256 is not want.
func (s *Store) CopyWeights(ctx context.Context, w io.Writer, key, want string) error {
	r, err := s.bucket.NewReader(ctx, key)
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

// Commit gives m the next free version of its name and writes its description.
func (s *Store) Commit(ctx context.Context, m Model) (Model, error) {
	versions, err := s.versions(ctx, m.Name)
	if err != nil {
		return m, err
	}
	last, err := s.number(ctx, lastKey(m.Name))
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return m, err
	}
	m.APIVersion = disdel.APIVersion
	for _, v := range append(versions, last) {
		m.Version = max(m.Version, v+1)
	}
	for {
		err := s.describe(ctx, m)
		if disdel.KindOf(err) != disdel.Conflict {
			return m, err
		}
		m.Version++ // another job took it first
	}
}

// HubFiles are what a model of a hub has besides its weights.
type HubFiles struct {
	Tokenizer []byte // tokenizer.json; nil: none
	Origin    []byte // what an export to a hub needs, see export.HubModel; nil: the model came from no hub
}

// Add stores a model that no job has trained: its files and weights, then its description as the next version of its
// name.
func (s *Store) Add(ctx context.Context, m Model, weights disdel.Weights, files HubFiles) (_ Model, err error) {
	if files.Tokenizer != nil {
		if m.Data.Tokenizer, err = s.WriteTokenizer(ctx, files.Tokenizer); err != nil {
			return m, err
		}
	}
	if files.Origin != nil {
		if m.Origin, err = s.writeContent(ctx, "origin of a model", originKey, files.Origin); err != nil {
			return m, err
		}
	}
	m.Path = WeightsPath(m.Name, disdel.JobID(fmt.Sprintf("import-%d", m.Created.UnixNano())))
	m.Checksum, m.Size, err = s.WriteWeights(ctx, m.Path, weights, nil,
		ArrayValues(len(weights), func(i int) []float32 { return weights[i].Data }))
	if err != nil {
		return m, err
	}
	return s.Commit(ctx, m)
}

// describe writes a description, then its checksum beside it.
func (s *Store) describe(ctx context.Context, m Model) error {
	m.Tags = nil // which are files of their own
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "describe model", Msg: m.Name, Err: err}
	}
	key := descriptionPath(m.Name, m.Version)
	if err := blobs.Wrap(s.bucket.Create(ctx, key, data), "create", key); err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	return blobs.Wrap(blobs.WriteAll(ctx, s.bucket, key+sumSuffix, []byte(checksum(sum[:])+"\n")), "describe model", key)
}

// Get finds NAME, NAME:vN or NAME:TAG. NAME alone is the newest version that learned something. It returns NotFound
// with the versions that exist, and Corrupt for a description that Commit did not write.
func (s *Store) Get(ctx context.Context, ref string) (Model, error) {
	name, version, tag, err := parseRef(ref)
	if err != nil {
		return Model{}, err
	}
	versions, err := s.versions(ctx, name)
	if err == nil && tag != "" && len(versions) > 0 {
		version, err = s.tagged(ctx, name, tag)
	}
	if err != nil {
		return Model{}, err
	}
	if version == 0 && len(versions) > 0 {
		version = s.newest(ctx, name, versions)
	}
	if !slices.Contains(versions, version) {
		return Model{}, missing(name, version, versions)
	}
	m, err := s.read(ctx, name, version)
	switch disdel.KindOf(err) {
	case disdel.NotFound:
		return m, missing(name, version, slices.DeleteFunc(versions, func(v int) bool { return v == version }))
	case disdel.Corrupt: // which one can be removed
		m.Name, m.Version = name, version
	}
	return m, err
}

// missing says why a version does not exist. Versions count up and are never reused, so that a version below the newest
// was removed.
func missing(name string, version int, versions []int) error {
	e := &disdel.Error{Kind: disdel.NotFound, Op: "find model", Hint: "disdel model list"}
	switch n := len(versions); {
	case n == 0:
		e.Msg = fmt.Sprintf("no trained model %q", name)
	case version < versions[n-1]:
		e.Msg = fmt.Sprintf("%s:v%d was removed: a later job's output.keep left %s", name, version, listed(versions))
		e.Hint = fmt.Sprintf("use one of these, and give a larger output.keep to keep more; %s alone is the newest", name)
	default:
		e.Msg = fmt.Sprintf("there is no %s:v%d yet, only %s", name, version, listed(versions))
	}
	return e
}

// listed prints versions in short: "v3, v8 to v12".
func listed(versions []int) string {
	var parts []string
	for i := 0; i < len(versions); {
		j := i
		for j+1 < len(versions) && versions[j+1] == versions[j]+1 {
			j++
		}
		switch {
		case j > i+1:
			parts = append(parts, fmt.Sprintf("v%d to v%d", versions[i], versions[j]))
		case j > i:
			parts = append(parts, fmt.Sprintf("v%d", versions[i]), fmt.Sprintf("v%d", versions[j]))
		default:
			parts = append(parts, fmt.Sprintf("v%d", versions[i]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// parseRef splits NAME:vN and NAME:TAG. For NAME alone the version is 0 and the tag is empty.
func parseRef(ref string) (name string, version int, tag string, err error) {
	name, versionText, named := strings.Cut(ref, ":")
	switch {
	case !named:
	case numbered().MatchString(versionText):
		version, err = strconv.Atoi(strings.TrimPrefix(versionText, "v"))
		if version < 1 {
			name = ""
		}
	case tagForm().MatchString(versionText):
		tag = versionText
	default:
		name = ""
	}
	if err != nil || !nameForm().MatchString(name) {
		return "", 0, "", &disdel.Error{
			Kind: disdel.Invalid, Op: "find model", Msg: fmt.Sprintf("%q is no model", ref),
			Hint: "write NAME, NAME:vN or NAME:TAG; disdel model list",
		}
	}
	return name, version, tag, nil
}

// read reads and checks the description of a version. Descriptions of early versions of disdel have no checksum beside
// them.
func (s *Store) read(ctx context.Context, name string, version int) (Model, error) {
	key := descriptionPath(name, version)
	data, gone := blobs.ReadUpTo(ctx, s.bucket, key, largestDescription)
	if gone = blobs.Wrap(gone, "read model", key); gone != nil && disdel.KindOf(gone) != disdel.NotFound {
		return Model{}, gone
	}
	want, err := blobs.ReadUpTo(ctx, s.bucket, key+sumSuffix, largestDescription)
	if err = blobs.Wrap(err, "read model", key); err != nil && disdel.KindOf(err) != disdel.NotFound {
		return Model{}, err
	}
	switch {
	case gone != nil && err != nil:
		return Model{}, gone
	case gone != nil:
		return Model{}, broken(name, version, nil, "it is missing, and its checksum is there")
	}
	if sum := sha256.Sum256(data); err == nil && strings.TrimSpace(string(want)) != checksum(sum[:]) {
		return Model{}, broken(name, version, nil, "its checksum is not the one beside it")
	}
	return readDescription(name, version, data)
}

// versions lists a name's versions, oldest first.
func (s *Store) versions(ctx context.Context, name string) ([]int, error) {
	var out []int
	err := s.each(ctx, "models/"+name+"/", func(_ string, version int) { out = append(out, version) })
	slices.Sort(out)
	return slices.Compact(out), err
}

// List returns every model, by name, newest version first. The error names the models that cannot be read; the list
// leaves them out.
func (s *Store) List(ctx context.Context) (out []Model, err error) {
	for m, fault := range s.All(ctx) {
		if fault != nil {
			err = errors.Join(err, fault)
			continue
		}
		out = append(out, m)
	}
	return out, err
}

// All yields the models of List one after another. It yields an error for each model that cannot be read.
func (s *Store) All(ctx context.Context) iter.Seq2[Model, error] {
	return func(yield func(Model, error) bool) {
		var names []string
		if err := s.each(ctx, "models/", func(name string, _ int) { names = append(names, name) }); err != nil {
			yield(Model{}, err)
			return
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			for m, err := range s.versionsOf(ctx, name) {
				if !yield(m, err) {
					return
				}
			}
		}
	}
}

// each calls f for the descriptions under prefix and for their checksums, one of which may be lost. It ignores other
// files.
func (s *Store) each(ctx context.Context, prefix string, f func(name string, version int)) error {
	keys, err := s.keys(ctx, prefix)
	if err != nil {
		return err
	}
	for _, key := range keys {
		key = strings.TrimSuffix(key, sumSuffix)
		part := keyForm().FindStringSubmatch(key)
		if part == nil || !nameForm().MatchString(part[1]) {
			continue
		}
		if version, err := strconv.Atoi(part[2]); err == nil && version > 0 && descriptionPath(part[1], version) == key {
			f(part[1], version)
		}
	}
	return nil
}

// keys lists the descriptions under prefix, and their checksums.
func (s *Store) keys(ctx context.Context, prefix string) ([]string, error) {
	var out []string
	for obj, err := range s.bucket.List(ctx, prefix) {
		if err != nil {
			return nil, blobs.Wrap(err, "list models", prefix)
		}
		if strings.HasSuffix(strings.TrimSuffix(obj.Key, sumSuffix), ".json") {
			out = append(out, obj.Key)
		}
	}
	return out, nil
}
