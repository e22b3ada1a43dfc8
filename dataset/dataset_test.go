package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/disdel/disdel"
)

var ctx = context.Background()

// someInput is rows whose values tell where they came from: row r is r, r+1, ... in every value.
func someInput(name string, rows, test int) Input {
	part := func(n, from int) Samples {
		s := Samples{Shape: []int{1, 2, 2}}
		for r := range n {
			s.U8 = append(s.U8, byte(r+from), byte(r+from+1), byte(r+from+2), byte(r+from+3))
			s.Labels = append(s.Labels, int32((r+from)%10))
		}
		return s
	}
	in := Input{Name: name, Classes: 10, Scale: 0.5, Offset: -1, Train: part(rows, 0)}
	if test > 0 {
		t := part(test, 100)
		in.Test = &t
	}
	return in
}

func stores(t *testing.T) map[string]string {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	backend := s3mem.New()
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	if err := backend.CreateBucket("sets"); err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"file": "file://" + t.TempDir() + "/new", "mem": "mem://",
		"s3": "s3://sets?region=x&endpoint=" + server.URL + "&use_path_style=true&response_checksum_validation=when_required",
	}
}

func TestStoresKeepWhatTheyAreGiven(t *testing.T) {
	for name, url := range stores(t) {
		t.Run(name, func(t *testing.T) {
			s, err := OpenStore(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Manifest(ctx, "a"); !errors.Is(err, disdel.NotFound) {
				t.Fatalf("got %v, want NotFound", err)
			}
			m, err := s.Add(ctx, someInput("a", 25, 7), false)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := s.Add(ctx, someInput("a", 25, 7), false); err != nil || again.Checksum() != m.Checksum() {
				t.Errorf("adding it again: %v", err)
			}
			if _, err := s.Add(ctx, someInput("a", 26, 7), false); !errors.Is(err, disdel.Conflict) {
				t.Errorf("other rows under the name: %v, want Conflict", err)
			}
			ref := disdel.DataRef{Name: "a", Checksum: m.Checksum()}
			shard, err := s.ReadTrain(ctx, ref, disdel.RowRange{Start: 5, End: 8})
			if err != nil {
				t.Fatal(err)
			}
			x, y := make([]float32, 8), make([]int32, 2)
			shard.Batch([]int32{2, 0}, x, y)
			// Rows 7 and 5, times 0.5, minus 1.
			if diff := cmp.Diff([]float32{2.5, 3, 3.5, 4, 1.5, 2, 2.5, 3}, x); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]int32{7, 5}, y); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			held, err := s.ReadHeldOut(ctx, ref, disdel.RowRange{End: 7})
			if err != nil || held.Len() != 7 || held.labels[3] != 3 {
				t.Errorf("held out: %v", err)
			}
			if _, err := s.ReadTrain(ctx, ref, disdel.RowRange{Start: 20, End: 26}); !errors.Is(err, disdel.Invalid) {
				t.Errorf("rows that are not there: %v, want Invalid", err)
			}
			ref.Checksum = "sha256:other"
			if _, err := s.ReadTrain(ctx, ref, disdel.RowRange{End: 1}); !errors.Is(err, disdel.Conflict) {
				t.Errorf("another checksum: %v, want Conflict", err)
			}
			if list, err := s.List(ctx); err != nil || len(list) != 1 {
				t.Errorf("list: %d, %v", len(list), err)
			}
			if r, err := s.Remove(ctx, "a"); err != nil || r.Files != 4 {
				t.Errorf("removed %+v, %v", r, err)
			}
			if list, _ := s.List(ctx); len(list) != 0 {
				t.Errorf("%d left after remove", len(list))
			}
		})
	}
}

// A file store leaves nothing but the chunks and the manifest, and refuses a chunk that was changed.
func TestDamagedChunksAreRefusedByName(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenStore(ctx, "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := s.Add(ctx, someInput("a", 9, 0), false)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(dir + "/*/*")
	if len(files) != 3 { // a chunk, the manifest and its checksum
		t.Errorf("files: %v", files)
	}
	name := filepath.Join(dir, m.Train.Chunks[0].Key)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	ref := disdel.DataRef{Name: "a", Checksum: m.Checksum(), Split: disdel.Split{Train: 1}}
	for i := 0; i < len(data); i += 13 {
		bad := bytes.Clone(data)
		bad[i] ^= 4
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadTrain(ctx, ref, disdel.RowRange{End: 9}); !errors.Is(err, disdel.Corrupt) ||
			!strings.Contains(err.Error(), "a/train-00000") {
			t.Fatalf("byte %d: %v, want Corrupt that names the chunk", i, err)
		}
	}
}

func TestNamesCannotLeaveTheStore(t *testing.T) {
	s, err := OpenStore(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"../x", "a/b", "", "A", "..", "a\x00", strings.Repeat("a", 64), "-a"} {
		if _, err := s.Manifest(ctx, name); !errors.Is(err, disdel.Invalid) {
			t.Errorf("manifest %q: %v", name, err)
		}
		if _, err := s.Add(ctx, someInput(name, 2, 0), false); !errors.Is(err, disdel.Invalid) {
			t.Errorf("add %q: %v", name, err)
		}
	}
}

// Without a test part of its own, a set is divided by the seed: every row trains or is held out, never both.
func TestSplitsDivideTheRows(t *testing.T) {
	s, err := OpenStore(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := s.Add(ctx, someInput("a", 50, 0), false)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range int64(5) {
		ref := disdel.DataRef{Name: "a", Checksum: m.Checksum(), Split: disdel.Split{Train: 0.8, Validation: 0.2, Seed: seed}}
		seen := map[byte]int{}
		for i, read := range []func(context.Context, disdel.DataRef, disdel.RowRange) (*Shard, error){
			s.ReadTrain,
			s.ReadHeldOut,
		} {
			shard, err := read(ctx, ref, disdel.RowRange{End: []int{40, 10}[i]})
			if err != nil {
				t.Fatal(err)
			}
			for r := range shard.Len() {
				seen[shard.u8[4*r]]++
			}
		}
		if len(seen) != 50 {
			t.Errorf("seed %d: %d different rows, want 50", seed, len(seen))
		}
	}
}

func TestOrderIsAPermutationFixedByItsNumbers(t *testing.T) {
	a, b := Order(nil, 1, 2, 3, 100), Order(make([]int32, 0, 200), 1, 2, 3, 100)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(a, Order(nil, 1, 3, 3, 100)) || cmp.Equal(a, Order(nil, 1, 2, 4, 100)) ||
		cmp.Equal(a, Order(nil, 2, 2, 3, 100)) {
		t.Error("another epoch, worker or seed has the same order")
	}
	seen := map[int32]bool{}
	for _, v := range a {
		seen[v] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d different rows", len(seen))
	}
}

// The facts that the UCI repository and scikit-learn publish of the digits.
func TestDigitsAreTheDigits(t *testing.T) {
	in, err := Digits()
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]int, 10)
	for _, y := range in.Train.Labels {
		counts[y]++
	}
	if diff := cmp.Diff([]int{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}, counts); diff != "" {
		t.Errorf("rows by class (-want +got):\n%s", diff)
	}
	if in.Train.Len() != 1797 || len(in.Train.U8) != 1797*64 || in.Train.U8[2] != 5 || in.Train.Labels[0] != 0 {
		t.Errorf("%d rows, %d bytes", in.Train.Len(), len(in.Train.U8))
	}
	if !strings.Contains(in.License, "CC BY 4.0") {
		t.Error("the attribution is missing")
	}
}

func idxFile(shape []int, data []byte) []byte {
	out := []byte{0, 0, 8, byte(len(shape))}
	for _, v := range shape {
		out = binary.BigEndian.AppendUint32(out, uint32(v))
	}
	return append(out, data...)
}

func TestIDXFiles(t *testing.T) {
	plain := idxFile([]int{2, 2, 3}, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(plain)
	z.Close()
	for name, file := range map[string][]byte{"plain": plain, "gzip": packed.Bytes()} {
		got, err := ReadIDX(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(IDX{Shape: []int{2, 2, 3}, Data: []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
			got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, file := range map[string][]byte{
		"empty": {}, "header cut": plain[:9], "data cut": plain[:20], "a byte too many": append(bytes.Clone(plain), 0),
		"type": append([]byte{0, 0, 12, 3}, plain[4:]...), "rank": append([]byte{0, 0, 8, 5}, plain[4:]...),
		"empty side": idxFile([]int{1, 0, 7}, nil),
		"overflow":   idxFile([]int{math.MaxUint32, math.MaxUint32, math.MaxUint32}, nil), "gzip cut": packed.Bytes()[:20],
	} {
		if _, err := ReadIDX(bytes.NewReader(file)); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("%s: %v, want Corrupt", name, err)
		}
	}
	x, _ := ReadIDX(bytes.NewReader(plain))
	if _, err := FromIDX(x, IDX{Shape: []int{3}, Data: []byte{0, 1, 2}}, CHW); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("3 labels for 2 images: %v, want Corrupt", err)
	}
}

func TestCSVFaultsNameTheirPlace(t *testing.T) {
	s, err := ReadCSV(strings.NewReader("1,2,0\n3.5,4,1\n"), []int{1, 1, 2})
	if err != nil || s.U8 != nil || s.Len() != 2 || s.F32[2] != 3.5 {
		t.Errorf("%+v, %v", s, err)
	}
	for text, want := range map[string]string{
		"1,2,0\n1,x,0\n": `line 2, column 2: "x"`, "1,2,0\n1,2\n": "line 2 has 2 columns", "1,2,-1\n": `line 1: label "-1"`,
		"1,NaN,0": "column 2", "1,\"2,0": "CSV",
	} {
		if _, err := ReadCSV(strings.NewReader(text), []int{1, 1, 2}); !errors.Is(err, disdel.Corrupt) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want Corrupt with %q", text, err, want)
		}
	}
}

// Other content than the pinned one is refused, wherever it came from.
func TestRecipesCheckWhatTheyRead(t *testing.T) {
	dir := t.TempDir()
	r, ok := FindRecipe("fashion-mnist")
	if !ok {
		t.Fatal("fashion-mnist is not known")
	}
	r.Folders = []string{dir}
	for name := range r.Checksums {
		if err := os.WriteFile(filepath.Join(dir, name), idxFile([]int{1}, []byte{1}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Fetch(ctx, nil); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("got %v, want Corrupt", err)
	}
	server := httptest.NewServer(nil)
	defer server.Close()
	r.Folders, r.URL = nil, server.URL
	_, err := r.Fetch(ctx, server.Client())
	if !errors.Is(err, disdel.Unavailable) ||
		!strings.Contains(disdel.AsError(err).Hint, "apt-get install dataset-fashion-mnist") {
		t.Errorf("got %v, want Unavailable with the advice", err)
	}
}

func TestFashionMNISTOfTheDebianPackage(t *testing.T) {
	r, _ := FindRecipe("fashion-mnist")
	if _, err := os.Stat(r.Folders[0]); err != nil {
		t.Skip("the package dataset-fashion-mnist is not installed")
	}
	in, err := r.Fetch(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if in.Train.Len() != 60000 || in.Test.Len() != 10000 || fmt.Sprint(in.Train.Shape) != "[1 28 28]" {
		t.Errorf("%d and %d rows of %v", in.Train.Len(), in.Test.Len(), in.Train.Shape)
	}
}

func FuzzReaders(f *testing.F) {
	f.Add(idxFile([]int{2}, []byte{1, 2}))
	f.Add([]byte("1,2,0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		ReadIDX(bytes.NewReader(data))
		ReadCSV(bytes.NewReader(data), []int{1, 1, 2})
	})
}
