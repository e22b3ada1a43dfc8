package dataset

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

func memory(t testing.TB) *Store {
	t.Helper()
	s, err := OpenStore(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// plant writes a manifest as an earlier version did, or somebody with an editor: without a checksum beside it.
func plant(t testing.TB, s *Store, name string, data []byte) {
	t.Helper()
	_ = s.bucket.Delete(ctx, sumKey(name))
	if err := blobs.WriteAll(ctx, s.bucket, manifestKey(name), data); err != nil {
		t.Fatal(err)
	}
}

// edited is a manifest with some of its fields set: paths are dotted, numbers are places in lists.
func edited(t testing.TB, m Manifest, edit func(*Manifest)) []byte {
	t.Helper()
	m.Train.Chunks, m.Sample = slices.Clone(m.Train.Chunks), slices.Clone(m.Sample)
	edit(&m)
	return m.encode()
}

// A manifest is not believed: what its numbers cannot be is refused by name, with what is wrong, and nothing is read by
// it.
func TestManifestsThatLieAreRefused(t *testing.T) {
	s := memory(t)
	m, err := s.Add(ctx, someInput("digits", 1797, 0), false)
	if err != nil {
		t.Fatal(err)
	}
	for want, edit := range map[string]func(*Manifest){
		"train.rows is 5797, and its chunks have 1797": func(m *Manifest) { m.Train.Rows = 5797 },
		"train.rows is -1": func(m *Manifest) { m.Train.Rows = -1 },
		"train.rows is " +
			"1000000000000000": func(m *Manifest) { m.Train.Rows = 1e15; m.Train.Chunks[0].Rows = 1e15 },
		"train.rows is 0": func(m *Manifest) { m.Train = Part{} },
		"digits/train-00000.safetensors has 1797 rows": func(m *Manifest) { m.Train.Rows = 1796 },
		"digits/train-00000.safetensors has -5 rows":   func(m *Manifest) { m.Train.Chunks[0].Rows = -5 },
		"test.rows is -3":                                  func(m *Manifest) { m.Test.Rows = -3 },
		"test.rows is 5, and its chunks have 0":            func(m *Manifest) { m.Test.Rows = 5 },
		"sample is [1 8 -8]":                               func(m *Manifest) { m.Sample = []int{1, 8, -8} },
		"sample is [1 0 4]":                                func(m *Manifest) { m.Sample = []int{1, 0, 4} },
		"sample is [4]":                                    func(m *Manifest) { m.Sample = []int{4} },
		"sample is []":                                     func(m *Manifest) { m.Sample = nil },
		"sample is [3037000500 3037000500 4]":              func(m *Manifest) { m.Sample = []int{3037000500, 3037000500, 4} },
		"sample is [4294967296 4294967296 1]":              func(m *Manifest) { m.Sample = []int{1 << 32, 1 << 32, 1} },
		"has 14512 bytes, and 1797 rows take about 115008": func(m *Manifest) { m.Sample = []int{1, 5, 12} },
		`dtype is "F64", neither U8 nor F32`:               func(m *Manifest) { m.DType = "F64" },
		"take about 35940":                                 func(m *Manifest) { m.DType = "F32" },
		"classes is 0":                                     func(m *Manifest) { m.Classes = 0 },
		"classes is -10":                                   func(m *Manifest) { m.Classes = -10 },
		"11 class names for 10 classes":                    func(m *Manifest) { m.ClassNames = make([]string, 11) },
		"scale is 0 and offset":                            func(m *Manifest) { m.Scale = 0 },
		`chunk 0 of train is "fashion-mnist/train-00000.safetensors", not digits/train-00000.safetensors`: func(m *Manifest) {
			m.Train.Chunks[0].Key = "fashion-mnist/train-00000.safetensors"
		},
		`"../../etc/passwd"`:              func(m *Manifest) { m.Train.Chunks[0].Key = "../../etc/passwd" },
		`has checksum "sha256:beef"`:      func(m *Manifest) { m.Train.Chunks[0].Checksum = "sha256:beef" },
		"has -1 bytes":                    func(m *Manifest) { m.Train.Chunks[0].Size = -1 },
		"bytes, and 1797 rows take about": func(m *Manifest) { m.Train.Chunks[0].Size = math.MaxInt64 },
		"it has no apiVersion":            func(m *Manifest) { m.APIVersion = "" },
		`it is that of "other"`:           func(m *Manifest) { m.Name = "other" },
	} {
		plant(t, s, "digits", edited(t, m, edit))
		_, err := s.Manifest(ctx, "digits")
		if !errors.Is(err, disdel.Corrupt) || !strings.Contains(err.Error(), "the manifest of digits is damaged") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want Corrupt with %q", err, want)
		}
		if _, err := s.ReadTrain(ctx, disdel.DataRef{Name: "digits"}, disdel.RowRange{End: 10}); !errors.Is(err,
			disdel.Corrupt) {
			t.Errorf("%s: read: %v, want Corrupt", want, err)
		}
	}
	for _, text := range []string{
		"", "null", "{}", "[]", `{"train": {"rows": 1e400}}`, `{"scale": 1e400}`,
		strings.Repeat("[", 1e5), `{"name": "digits"} x`,
	} {
		plant(t, s, "digits", []byte(text))
		if _, err := s.Manifest(ctx, "digits"); !errors.Is(err, disdel.Corrupt) || disdel.AsError(err).Hint == "" {
			t.Errorf("%.20q: %v, want Corrupt with a hint", text, err)
		}
	}
}

// A manifest of another version is not called damaged, although its fields have other types: both versions are named.
func TestAManifestOfAnotherVersionIsRefused(t *testing.T) {
	s := memory(t)
	plant(t, s, "digits", []byte(`{"apiVersion": "disdel/v9", "name": ["digits"], "train": 7}`))
	_, err := s.Manifest(ctx, "digits")
	if !errors.Is(err, disdel.Conflict) || !strings.Contains(err.Error(),
		`digits was written by another version of disdel: `+
			`its apiVersion is "disdel/v9", and this program reads disdel/v1`) {
		t.Errorf("got %v, want Conflict with both versions", err)
	}
}

// Data sets of earlier versions have no checksum beside their manifest, and are read as before.
func TestManifestsWithoutAChecksumAreRead(t *testing.T) {
	s := memory(t)
	m, err := s.Add(ctx, someInput("old", 20, 5), false)
	if err != nil {
		t.Fatal(err)
	}
	plant(t, s, "old", m.encode())
	got, err := s.Manifest(ctx, "old")
	if err != nil || got.Checksum() != m.Checksum() {
		t.Fatalf("%v, checksum %s, want %s", err, got.Checksum(), m.Checksum())
	}
	if _, err := s.ReadTrain(ctx, disdel.DataRef{Name: "old", Checksum: m.Checksum()},
		disdel.RowRange{End: 20}); err != nil {
		t.Error(err)
	}
}

// What no rule can tell from the truth is told by the checksum beside the manifest: another scale, one class more.
func TestEditedAndSwappedManifestsAreRefused(t *testing.T) {
	s := memory(t)
	m, err := s.Add(ctx, someInput("a", 20, 0), false)
	if err != nil {
		t.Fatal(err)
	}
	other := someInput("a", 20, 0)
	other.Title = "another"
	twin, err := memory(t).Add(ctx, other, false)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"scale":   edited(t, m, func(m *Manifest) { m.Scale = 0.0005 }),
		"classes": edited(t, m, func(m *Manifest) { m.Classes = 11 }),
		"a space": append(m.encode(), ' '),
		"swapped": twin.encode(),
	} {
		if err := blobs.WriteAll(ctx, s.bucket, manifestKey("a"), data); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Manifest(ctx, "a"); !errors.Is(err, disdel.Corrupt) ||
			!strings.Contains(err.Error(), "its checksum is not the one beside it") {
			t.Errorf("%s: %v, want Corrupt", name, err)
		}
	}
	// Bit by bit, none passes.
	for i := range m.encode() {
		data := m.encode()
		data[i] ^= 1
		if err := blobs.WriteAll(ctx, s.bucket, manifestKey("a"), data); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Manifest(ctx, "a"); !errors.Is(err, disdel.Corrupt) {
			t.Fatalf("bit %d: %v, want Corrupt", 8*i, err)
		}
	}
	// The hint of all of these works.
	if _, err := s.Add(ctx, someInput("a", 20, 0), false); !errors.Is(err, disdel.Conflict) ||
		!strings.Contains(err.Error(), "it is damaged") {
		t.Errorf("add: %v, want Conflict", err)
	}
	if _, err := s.Add(ctx, someInput("a", 20, 0), true); err != nil {
		t.Error(err)
	}
	if got, err := s.Manifest(ctx, "a"); err != nil || got.Checksum() != m.Checksum() {
		t.Errorf("after it was added again: %v", err)
	}
}

// Chunks are held against the manifest, too: a row that no chunk fills is an error, and never zeros with the label 0.
func TestShardsAreFilledOrRefused(t *testing.T) {
	for _, split := range []disdel.Split{{Train: 0.8, Validation: 0.2, Seed: 1}, {}} {
		s := memory(t)
		in := someInput("a", 20, 0)
		if split == (disdel.Split{}) {
			in = someInput("a", 20, 4)
		}
		m, err := s.Add(ctx, in, false)
		if err != nil {
			t.Fatal(err)
		}
		ref := disdel.DataRef{Name: "a", Checksum: m.Checksum(), Split: split}
		key := m.Train.Chunks[0].Key
		good, err := blobs.ReadAll(ctx, s.bucket, key)
		if err != nil {
			t.Fatal(err)
		}
		for name, breaks := range map[string]func() error{
			"missing": func() error { return s.bucket.Delete(ctx, key) },
			"shorter": func() error { return blobs.WriteAll(ctx, s.bucket, key, good[:len(good)-8]) },
			"longer":  func() error { return blobs.WriteAll(ctx, s.bucket, key, append(slices.Clone(good), 0)) },
		} {
			if err := breaks(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.ReadTrain(ctx, ref, disdel.RowRange{End: 16}); !errors.Is(err, disdel.Corrupt) ||
				!strings.Contains(err.Error(), key) {
				t.Errorf("%s: %v, want Corrupt that names the chunk", name, err)
			}
		}
		if err := blobs.WriteAll(ctx, s.bucket, key, good); err != nil {
			t.Fatal(err)
		}
		// A chunk whose checksum is right, of other rows than the manifest says.
		var other Samples
		for name, want := range map[string]string{
			"labels": "the label of its row 3 is 10, and there are 10 classes",
			"shape":  "it holds U8 [20 2 2 1]",
		} {
			other = someInput("a", 20, 0).Train
			other.Labels = slices.Clone(other.Labels)
			if name == "labels" {
				other.Labels[3] = 10
			} else {
				other.Shape = []int{2, 2, 1}
			}
			file := chunkOf(t, &other)
			if err := blobs.WriteAll(ctx, s.bucket, key, file); err != nil {
				t.Fatal(err)
			}
			lie := m
			lie.Train.Chunks = []Chunk{{Key: key, Rows: 20, Size: disdel.Bytes(len(file)), Checksum: checksum(file)}}
			plant(t, s, "a", lie.encode())
			ref.Checksum = lie.Checksum()
			if _, err := s.ReadTrain(ctx, ref, disdel.RowRange{End: 16}); !errors.Is(err, disdel.Corrupt) ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want Corrupt with %q", name, err, want)
			}
		}
	}
	if err := unfilled("a", 3, 5); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("%v, want Corrupt", err)
	}
}

// chunkOf is the file of some rows, whatever is wrong with them.
func chunkOf(t testing.TB, x *Samples) []byte {
	t.Helper()
	shape := append([]int{x.Len()}, x.Shape...)
	values := safetensors.Tensor{Name: "x", DType: safetensors.U8, Shape: shape, Data: x.U8}
	if x.U8 == nil {
		values = safetensors.FromFloat32s("x", shape, x.F32)
	}
	var labels []byte
	for _, y := range x.Labels {
		labels = binary.LittleEndian.AppendUint32(labels, uint32(y))
	}
	var out bytes.Buffer
	err := safetensors.Write(&out, safetensors.File{Tensors: []safetensors.Tensor{
		values, {Name: "y", DType: safetensors.I32, Shape: []int{x.Len()}, Data: labels},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A split comes with a request; shares that are none are refused.
func TestSplitsAreShares(t *testing.T) {
	s := memory(t)
	m, err := s.Add(ctx, someInput("a", 20, 0), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, split := range []disdel.Split{
		{Train: -1},
		{Train: 2},
		{Train: math.NaN()},
		{Train: math.Inf(1)},
		{Train: 0.5, Validation: -0.5},
	} {
		if _, err := s.ReadTrain(ctx, disdel.DataRef{Name: "a", Checksum: m.Checksum(), Split: split},
			disdel.RowRange{End: 1}); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%+v: %v, want Invalid", split, err)
		}
		if i := m.Info(split); i.Train < 0 || i.HeldOut < 0 || i.Train+i.HeldOut != 20 {
			t.Errorf("%+v: %d and %d rows", split, i.Train, i.HeldOut)
		}
	}
}

// Remove goes by the names that Add gives, whatever a manifest says, and leaves what is not its own.
func TestRemoveDeletesItsOwnKeysAlone(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenStore(ctx, "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := s.Add(ctx, someInput("a", 20, 5), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(ctx, someInput("ab", 20, 5), false); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	plant(t, s, "a", edited(t, m, func(m *Manifest) { m.Train.Chunks[0].Key = "ab/train-00000.safetensors" }))
	r, err := s.Remove(ctx, "a")
	if err != nil || r.Files != 3 || r.Size == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got, _ := filepath.Glob(dir + "/a/*"); len(got) != 1 {
		t.Errorf("left of a: %v, want the notes", got)
	}
	if got, _ := filepath.Glob(dir + "/ab/*"); len(got) != 4 {
		t.Errorf("left of ab: %v, want all", got)
	}
	if r, err := s.Remove(ctx, "ab"); err != nil || r.Files != 4 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ab")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the empty folder stays: %v", err)
	}
	if _, err := s.Remove(ctx, "ab"); !errors.Is(err, disdel.NotFound) {
		t.Errorf("again: %v, want NotFound", err)
	}
}

// Replacing a data set leaves nothing of the one before.
func TestAnOverwrittenSetLeavesNoChunks(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenStore(ctx, "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, test := range []int{5, 0} {
		if _, err := s.Add(ctx, someInput("a", 20, test), true); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := filepath.Glob(dir + "/a/*"); len(got) != 3 {
		t.Errorf("%v, want manifest, checksum and a chunk", got)
	}
}

// One damaged data set does not hide the others.
func TestListNamesWhatItCannotRead(t *testing.T) {
	s := memory(t)
	for _, name := range []string{"a", "c"} {
		if _, err := s.Add(ctx, someInput(name, 5, 0), false); err != nil {
			t.Fatal(err)
		}
	}
	plant(t, s, "b", []byte("{}"))
	list, err := s.List(ctx)
	if len(list) != 2 || list[0].Name != "a" || list[1].Name != "c" {
		t.Errorf("%+v", list)
	}
	if !errors.Is(err, disdel.Corrupt) || !strings.Contains(err.Error(), "manifest of b") {
		t.Errorf("%v, want Corrupt that names b", err)
	}
}

// allocated runs f and fails if it took more memory than a bound that follows from the size of its input.
func allocated(t *testing.T, input int, f func()) {
	t.Helper()
	before := heapAllocs()
	f()
	if took, most := heapAllocs()-before, uint64(8<<20+200*input); took > most {
		t.Fatalf("%d bytes were allocated for an input of %d, want at most %d", took, input, most)
	}
}

// Whatever a manifest says, it is refused or its numbers can be computed with, and nothing is allocated by them.
func FuzzManifest(f *testing.F) {
	good, err := memory(f).Add(ctx, someInput("a", 9, 3), false)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good.encode())
	f.Add(edited(f, good, func(m *Manifest) { m.Train.Rows = 5797 }))
	f.Add(edited(f, good, func(m *Manifest) { m.Train.Rows = -1 }))
	f.Add(edited(f, good, func(m *Manifest) { m.Train.Rows, m.Train.Chunks[0].Rows = 1e15, 1e15 }))
	f.Add(edited(f, good, func(m *Manifest) { m.Sample = []int{1, 8, -8} }))
	f.Add(edited(f, good, func(m *Manifest) { m.Scale, m.Classes = 0.0000625, 11 }))
	f.Add(edited(f, good, func(m *Manifest) { m.Test = Part{} }))
	f.Add([]byte(`{"train": null}`))
	f.Add(bytes.Replace(good.encode(), []byte(disdel.APIVersion), []byte("1"), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		allocated(t, len(data), func() {
			m, err := readManifest("a", data)
			if err != nil {
				if !errors.Is(err, disdel.Corrupt) && !errors.Is(err, disdel.Conflict) {
					t.Fatalf("%v, want Corrupt, or a manifest of another version", err)
				}
				return
			}
			info := m.Info(disdel.Split{Train: 0.8, Validation: 0.2})
			if info.Train < 0 || info.HeldOut < 0 || info.SampleSize < 1 || m.SampleLen() < 1 {
				t.Fatalf("%+v", info)
			}
			if _, err := json.Marshal(info); err != nil {
				t.Fatal(err)
			}
			for _, p := range []Part{m.Train, m.Test} {
				for _, c := range p.Chunks {
					if !strings.HasPrefix(c.Key, "a/") || c.Rows < 1 {
						t.Fatalf("%+v", c)
					}
				}
			}
			// The one chunk that is there is read by it or refused.
			s := memory(t)
			plant(t, s, "a", data)
			in := someInput("a", 9, 3)
			for part, x := range map[string]*Samples{"train": &in.Train, "test": in.Test} {
				if err := blobs.WriteAll(ctx, s.bucket, chunkKey("a", part, 0), chunkOf(t, x)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := s.ReadTrain(ctx, disdel.DataRef{Name: "a", Checksum: m.Checksum()}, disdel.RowRange{End: info.Train})
			if err == nil && got.Len() != info.Train {
				t.Fatalf("%d rows of %d", got.Len(), info.Train)
			}
		})
	})
}

// heapAllocs is what was allocated so far, without stopping the world for it.
func heapAllocs() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
