package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"

	"gocloud.dev/blob"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

// Store is the data sets on a blob URL. It is safe for concurrent use.
type Store struct{ bucket *blob.Bucket }

// OpenStore opens the data sets at file:///folder (made if missing), s3://bucket or mem://. Errors: Invalid, Unavailable.
func OpenStore(ctx context.Context, url string) (*Store, error) {
	b, err := blobs.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return &Store{bucket: b}, nil
}

// Close frees the bucket.
func (s *Store) Close() error { return s.bucket.Close() }

func manifestKey(name string) string { return path.Join(name, "manifest.json") }

// chunkBytes is about how large a chunk is: large enough to read in one go, small enough to hold one beside a shard.
const chunkBytes = 4 << 20

// rowsOfChunk is how many rows of so many stored bytes are in a full chunk; their labels come on top. estimator counts a chunk so.
func rowsOfChunk(sample int) int { return max(1, chunkBytes/max(sample, 1)) }

// Samples are rows in memory: what a reader makes and Add stores.
type Samples struct {
	Shape  []int  // [channels height width]
	U8     []byte // one of U8 and F32 holds rows x Shape values
	F32    []float32
	Labels []int32
}

// Len is the number of rows.
func (x *Samples) Len() int { return len(x.Labels) }

// Input is a data set to add.
type Input struct {
	Name, Title, License string
	Classes              int // 0: the largest label and one
	ClassNames           []string
	Scale, Offset        float32
	Train                Samples
	Test                 *Samples // nil: none
}

// Add stores a data set. Adding what is there already changes nothing; other data under the same name is a Conflict
// unless overwrite is set. The manifest comes last: who is interrupted has added nothing.
func (s *Store) Add(ctx context.Context, in Input, overwrite bool) (Manifest, error) {
	m, err := in.manifest()
	if err != nil {
		return m, err
	}
	write := []struct {
		part *Part
		name string
		data *Samples
	}{{&m.Train, "train", &in.Train}, {&m.Test, "test", in.Test}}
	old, err := s.Manifest(ctx, in.Name)
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return m, err
	}
	exists := err == nil
	for dry := range 2 { // first only the checksums, to see whether anything is to be done
		for _, w := range write {
			if w.data == nil {
				continue
			}
			if *w.part, err = s.addPart(ctx, in.Name, w.name, w.data, dry == 0); err != nil {
				return m, err
			}
		}
		if exists && old.Checksum() == m.Checksum() {
			return m, nil
		}
		if exists && !overwrite {
			return m, &disdel.Error{
				Kind: disdel.Conflict, Op: "add data set", Msg: fmt.Sprintf("there is another data set %q", in.Name),
				Hint: "disdel dataset add --overwrite, or choose another --name",
			}
		}
	}
	key := manifestKey(in.Name)
	return m, blobs.Wrap(s.bucket.WriteAll(ctx, key, m.encode(), nil), "write manifest", key)
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
	if x.Len() == 0 || fmt.Sprint(x.Shape) != fmt.Sprint(m.Sample) || len(x.Shape) != 3 {
		return bad("%d rows of shape %v, and every part needs rows of one shape [channels height width]", x.Len(), x.Shape)
	}
	if values != x.Len()*m.SampleLen() {
		return bad("%d values do not make %d rows of %v", values, x.Len(), x.Shape)
	}
	for i, y := range x.Labels {
		if y < 0 || m.Classes > 0 && int(y) >= m.Classes {
			return bad("the label of row %d is %d, and there are %d classes", i, y, m.Classes)
		}
	}
	return nil
}

func (s *Store) addPart(ctx context.Context, name, part string, x *Samples, dry bool) (Part, error) {
	p := Part{Rows: x.Len()}
	sample := len(x.U8)/x.Len() + 4*(len(x.F32)/x.Len())
	step := rowsOfChunk(sample)
	for at := 0; at < x.Len(); at += step {
		rows := disdel.Rows{Start: at, End: min(at+step, x.Len())}
		data, err := x.chunk(rows)
		if err != nil {
			return p, err
		}
		c := Chunk{Key: fmt.Sprintf("%s/%s-%05d.safetensors", name, part, len(p.Chunks)), Rows: rows.Len(), Size: disdel.Bytes(len(data)), Checksum: checksum(data)}
		if !dry {
			if err := s.bucket.WriteAll(ctx, c.Key, data, nil); err != nil {
				return p, blobs.Wrap(err, "write chunk", c.Key)
			}
		}
		p.Chunks = append(p.Chunks, c)
	}
	return p, nil
}

// chunk is the safetensors file of some rows.
func (x *Samples) chunk(rows disdel.Rows) ([]byte, error) {
	shape := append([]int{rows.Len()}, x.Shape...)
	n := 1
	for _, v := range x.Shape {
		n *= v
	}
	t := safetensors.Tensor{Name: "x", DType: safetensors.U8, Shape: shape}
	if x.U8 != nil {
		t.Data = x.U8[rows.Start*n : rows.End*n]
	} else {
		t = safetensors.FromFloat32s("x", shape, x.F32[rows.Start*n:rows.End*n])
	}
	labels := make([]byte, 0, 4*rows.Len())
	for _, y := range x.Labels[rows.Start:rows.End] {
		labels = append(labels, byte(y), byte(y>>8), byte(y>>16), byte(y>>24))
	}
	var out bytes.Buffer
	err := safetensors.Write(&out, safetensors.File{Tensors: []safetensors.Tensor{
		t, {Name: "y", DType: safetensors.I32, Shape: []int{rows.Len()}, Data: labels},
	}})
	return out.Bytes(), err
}

// Manifest reads a data set's manifest. It returns NotFound with the command that adds the data set.
func (s *Store) Manifest(ctx context.Context, name string) (Manifest, error) {
	var m Manifest
	if err := checkName(name); err != nil {
		return m, err
	}
	data, err := s.bucket.ReadAll(ctx, manifestKey(name))
	if err = blobs.Wrap(err, "read data set", name); disdel.KindOf(err) == disdel.NotFound {
		return m, &disdel.Error{
			Kind: disdel.NotFound, Op: "read data set", Msg: fmt.Sprintf("there is no data set %q", name),
			Hint: "disdel dataset add " + name,
		}
	} else if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil || m.Name != name {
		return m, &disdel.Error{
			Kind: disdel.Corrupt, Op: "read data set", Msg: "the manifest of " + name + " is damaged", Err: err,
			Hint: "disdel dataset add --overwrite " + name,
		}
	}
	return m, nil
}

// List returns every data set by name.
func (s *Store) List(ctx context.Context) ([]Manifest, error) {
	var out []Manifest
	it := s.bucket.List(nil)
	for {
		obj, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
			return out, nil
		}
		if err != nil {
			return nil, blobs.Wrap(err, "list data sets", "")
		}
		name, ok := strings.CutSuffix(obj.Key, "/manifest.json")
		if !ok || checkName(name) != nil {
			continue
		}
		m, err := s.Manifest(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
}

// Remove deletes a data set, its manifest first.
func (s *Store) Remove(ctx context.Context, name string) error {
	m, err := s.Manifest(ctx, name)
	if err != nil {
		return err
	}
	keys := []string{manifestKey(name)}
	for _, p := range []Part{m.Train, m.Test} {
		for _, c := range p.Chunks {
			keys = append(keys, c.Key)
		}
	}
	for _, k := range keys {
		if err := blobs.Wrap(s.bucket.Delete(ctx, k), "remove data set", k); err != nil && disdel.KindOf(err) != disdel.NotFound {
			return err
		}
	}
	return nil
}
