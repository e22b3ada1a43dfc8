package modelstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

// commit keeps a version with an accuracy, measured on 100 rows.
func commit(t testing.TB, s *Store, i int, accuracy float64) Model {
	t.Helper()
	m := write(t, s, disdel.JobID(fmt.Sprintf("job-%d", i)))
	m.Accuracy, m.Data.HeldOut = accuracy, 100
	m, err := s.Commit(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func encoded(t testing.TB, m Model, edit func(*Model)) []byte {
	t.Helper()
	m.Network.Input = slices.Clone(m.Network.Input)
	edit(&m)
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A description is not believed: what its numbers cannot be is refused by name before anything is computed with them.
func TestDescriptionsThatLieAreRefused(t *testing.T) {
	s, dir := open(t)
	m := commit(t, s, 1, 0.5)
	file := filepath.Join(dir, descriptionPath("m", 1))
	if err := os.Remove(file + sumSuffix); err != nil { // as an earlier version wrote it
		t.Fatal(err)
	}
	for want, edit := range map[string]func(*Model){
		"network.input is [1 0 8]":                           func(m *Model) { m.Network.Input = []int{1, 0, 8} },
		"network.input is [-1 8 8]":                          func(m *Model) { m.Network.Input = []int{-1, 8, 8} },
		"network.input is [4294967296 4294967296 1]":         func(m *Model) { m.Network.Input = []int{1 << 32, 1 << 32, 1} },
		"network.input is []":                                func(m *Model) { m.Network.Input = nil },
		"network.classes is 0":                               func(m *Model) { m.Network.Classes = 0 },
		"11 labels for 10 classes":                           func(m *Model) { m.Labels = make([]string, 11) },
		"accuracy is 1.5":                                    func(m *Model) { m.Accuracy = 1.5 },
		`it is that of "other", version 1`:                   func(m *Model) { m.Name = "other" },
		`it is that of "m", version 7`:                       func(m *Model) { m.Version = 7 },
		`its weights are "../../etc/passwd"`:                 func(m *Model) { m.Path = "../../etc/passwd" },
		`its weights are "weights/m/../other/x.safetensors"`: func(m *Model) { m.Path = "weights/m/../other/x.safetensors" },
		`its weights are "weights/other/x.safetensors"`:      func(m *Model) { m.Path = "weights/other/x.safetensors" },
		`its weights have checksum "none"`:                   func(m *Model) { m.Checksum = "none" },
		"it has no apiVersion":                               func(m *Model) { m.APIVersion = "" },
		"inputs go from 2 to 1":                              func(m *Model) { m.Inputs = &Range{2, 1} },
		"a count is below 0":                                 func(m *Model) { m.Data.HeldOut = -1 },
	} {
		if err := os.WriteFile(file, encoded(t, m, edit), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Get(ctx, "m:v1")
		if !errors.Is(err, disdel.Corrupt) || !strings.Contains(err.Error(), "the description of m:v1 is damaged") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want Corrupt with %q", err, want)
		}
	}
	for _, text := range []string{"", "null", "[]", "{}", `{"accuracy": 1e400}`, strings.Repeat("[", 1e5)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(ctx, "m"); !errors.Is(err, disdel.Corrupt) || disdel.AsError(err).Hint == "" {
			t.Errorf("%.20q: %v, want Corrupt with a hint", text, err)
		}
	}
}

// A description of another version is not called damaged, although its fields have other types: both versions are
// named.
func TestADescriptionOfAnotherVersionIsRefused(t *testing.T) {
	s, dir := open(t)
	commit(t, s, 1, 0.5)
	file := filepath.Join(dir, descriptionPath("m", 1))
	text := []byte(`{"apiVersion": "disdel/v9", "name": ["m"], "network": 7}`)
	if err := errors.Join(os.Remove(file+sumSuffix), os.WriteFile(file, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get(ctx, "m:v1")
	if !errors.Is(err, disdel.Conflict) || !strings.Contains(err.Error(),
		`m:v1 was written by another version of disdel: `+
			`its apiVersion is "disdel/v9", and this program reads disdel/v1`) {
		t.Errorf("got %v, want Conflict with both versions", err)
	}
}

// What no rule can tell from the truth is told by the checksum beside the description; models of earlier versions have
// none.
func TestEditedDescriptionsAreRefused(t *testing.T) {
	s, dir := open(t)
	m := commit(t, s, 1, 0.5)
	file := filepath.Join(dir, descriptionPath("m", 1))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 1
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(ctx, "m"); !errors.Is(err, disdel.Corrupt) {
			t.Fatalf("byte %d: %v, want Corrupt", i, err)
		}
	}
	if err := errors.Join(os.WriteFile(file, data, 0o600), os.Remove(file+sumSuffix)); err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(ctx, "m")
	if diff := cmp.Diff(m, got); err != nil || diff != "" {
		t.Errorf("without a checksum: %v (-want +got):\n%s", err, diff)
	}
}

// One damaged description does not hide the others, nor do files of other people's.
func TestListNamesWhatItCannotRead(t *testing.T) {
	s, dir := open(t)
	commit(t, s, 1, 0.5)
	commit(t, s, 2, 0.5)
	for name, text := range map[string]string{
		"models/m/v00001.json": "{}", "models/m/notes.json": "x", "models/.hidden/v00001.json": "{}",
		"models/m/v00003.json.tmp":       "{}",
		"models/..__0x2f__x/v00001.json": "{}", "models/m/v2.json": "{}", "models/M/v00001.json": "{}",
		"models/m/v00000.json": "{}",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.List(ctx)
	if len(list) != 1 || list[0].Ref() != "m:v2" {
		t.Errorf("%+v", list)
	}
	if !errors.Is(err, disdel.Corrupt) || strings.Count(err.Error(), "damaged") != 1 ||
		!strings.Contains(err.Error(), "m:v1") {
		t.Errorf("%v, want Corrupt that names m:v1 alone", err)
	}
	if m, err := s.Get(ctx, "m"); err != nil || m.Version != 2 {
		t.Errorf("newest: %d, %v", m.Version, err)
	}
}

// output.keep never removes the best version, and says what it removes.
func TestPruneKeepsTheBest(t *testing.T) {
	s, dir := open(t)
	var removed []string
	for i, accuracy := range []float64{0.4, 0.9, 0.6, 0.9, 0.1, 0.2, 0.3} {
		commit(t, s, i, accuracy)
		list, err := s.Prune(ctx, "m", 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			removed = append(removed, list[i].Ref())
		}
	}
	// v4 has v2's accuracy and is newer.
	if diff := cmp.Diff([]string{"m:v1", "m:v2", "m:v3", "m:v5"}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	list, err := s.Versions(ctx, "m")
	var left []string
	for i := range list {
		left = append(left, list[i].Ref())
	}
	if diff := cmp.Diff([]string{"m:v7", "m:v6", "m:v4"}, left); err != nil || diff != "" {
		t.Errorf("left: %v (-want +got):\n%s", err, diff)
	}
	if best, ok := Best(list); !ok || best.Version != 4 {
		t.Errorf("best: %d, %t", best.Version, ok)
	}
	for _, pattern := range []string{"/models/m/*.json", "/models/m/*.sha256", "/weights/m/*"} {
		if files, _ := filepath.Glob(dir + pattern); len(files) != 3 {
			t.Errorf("%s: %v", pattern, files)
		}
	}
	// Who asks for one that was removed is told so.
	_, err = s.Get(ctx, "m:v3")
	if want := "m:v3 was removed: a later job's output.keep left v4, v6, v7"; !errors.Is(err, disdel.NotFound) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want NotFound with %q", err, want)
	}
	if _, err := s.Get(ctx, "m:v9"); !errors.Is(err, disdel.NotFound) ||
		!strings.Contains(err.Error(), "there is no m:v9 yet") {
		t.Errorf("got %v, want NotFound", err)
	}
}

// Models that nothing was held out of are not compared: their accuracy says nothing.
func TestBestIsOfThoseThatWereMeasured(t *testing.T) {
	failed := Model{Accuracy: 1, Data: disdel.DataInfo{HeldOut: 9}, Evaluated: new(false)} // its last evaluation failed
	if _, ok := Best([]Model{failed}); ok {
		t.Error("a model that was not evaluated is the best")
	}
	if _, ok := Best([]Model{{Accuracy: 1}}); ok {
		t.Error("a model without held-out rows is the best")
	}
	measured := func(version int, accuracy, loss float64) Model {
		m := Model{Accuracy: accuracy, Loss: loss, Data: disdel.DataInfo{HeldOut: 10}}
		m.Version = version
		return m
	}
	for want, list := range map[int][]Model{
		1: {measured(1, 0.9, 1), measured(2, 0.8, 0.1), {Accuracy: 1}},
		2: {measured(1, 0.9, 1), measured(2, 0.9, 0.5)},
		3: {measured(3, 0.9, 1), measured(2, 0.9, 1)},
	} {
		if best, ok := Best(list); !ok || best.Version != want {
			t.Errorf("v%d, want v%d", best.Version, want)
		}
	}
}

// Versions are ranked by the metric of the newest one, in its direction. Those without its value come last.
func TestVersionsAreRankedByTheirMetric(t *testing.T) {
	classes := disdel.DataInfo{HeldOut: 10, Classes: 10}
	texts := disdel.DataInfo{HeldOut: 10, NextToken: true}
	for name, c := range map[string]struct {
		ranked string
		data   disdel.DataInfo
		a, b   disdel.Scores // b is better, and its accuracy is lower
	}{
		"top 5":      {disdel.MetricTop5, classes, disdel.Scores{Top5: new(0.8)}, disdel.Scores{Top5: new(0.9)}},
		"unmeasured": {disdel.MetricTop5, classes, disdel.Scores{}, disdel.Scores{Top5: new(0.1)}},
		"perplexity": {"", texts, disdel.Scores{Perplexity: 9}, disdel.Scores{Perplexity: 7}},
	} {
		a := Model{RankedBy: c.ranked, Data: c.data, Accuracy: 0.7, Loss: 1, Scores: c.a}
		b := Model{RankedBy: c.ranked, Data: c.data, Accuracy: 0.6, Loss: 2, Scores: c.b}
		a.Version, b.Version = 1, 2
		for _, list := range [][]Model{{a, b}, {b, a}} {
			if best, ok := Best(list); !ok || best.Version != 2 {
				t.Errorf("%s: v%d is the best, want v2", name, best.Version)
			}
		}
	}
}

func TestVersionsAreListedInShort(t *testing.T) {
	for want, versions := range map[string][]int{"v3": {3}, "v1, v2": {1, 2}, "v1, v3 to v5, v9": {1, 3, 4, 5, 9}} {
		if got := listed(versions); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Whatever a description says, it is refused or its numbers can be computed with, and nothing is allocated by them.
func FuzzDescription(f *testing.F) {
	m := Model{
		APIVersion: disdel.APIVersion,
		ModelRef: disdel.ModelRef{
			Name: "m", Version: 1, Path: "weights/m/j.safetensors",
			Checksum: checksum(make([]byte, 32)),
		},
	}
	m.Network = disdel.Network{Name: "mlp", Input: []int{1, 8, 8}, Classes: 10}
	f.Add(encoded(f, m, func(*Model) {}))
	for _, input := range [][]int{{1, 0, 8}, {4294967296, 4294967296, 1}, {-1, 8, 8}} {
		f.Add(encoded(f, m, func(m *Model) { m.Network.Input = input }))
	}
	f.Add(encoded(f, m, func(m *Model) { m.Path = "../x"; m.Labels = []string{"a\x1b[2J"} }))
	f.Add(encoded(f, m, func(m *Model) { m.APIVersion = "1" }))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := heapAllocs()
		m, err := readDescription("m", 1, data)
		if took, most := heapAllocs()-before, uint64(1<<20+200*len(data)); took > most {
			t.Fatalf("%d bytes were allocated for %d", took, len(data))
		}
		if err != nil {
			if !errors.Is(err, disdel.Corrupt) && !errors.Is(err, disdel.Conflict) {
				t.Fatalf("%v, want Corrupt, or a description of another version", err)
			}
			return
		}
		if n := m.Network; len(n.Input) == 0 || slices.Min(n.Input) < 1 || n.Classes < 1 || len(m.Labels) > n.Classes ||
			m.Ref() != "m:v1" {
			t.Fatalf("%+v", m)
		}
	})
}

// heapAllocs is what was allocated so far, without stopping the world for it.
func heapAllocs() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
