package text

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Rows of plain texts are full, and each begins with the last token of the row before: every token but the first is a
// target. Only the last row may begin earlier.
func TestRowsOfPlainTextsOverlapByOneToken(t *testing.T) {
	words := strings.Repeat("the quick brown fox. ", 20)
	for _, positions := range []int{2, 7, 16, 64} {
		for cut := range 8 {
			text := words[:len(words)-cut]
			in, err := Plain{
				Sources:    []dataset.Source{dataset.TextSource("a.txt", text), dataset.TextSource("b.txt", "\ufeffEnd.")},
				Vocabulary: 270, Positions: positions,
			}.Input("set")
			if err != nil {
				t.Fatal(err)
			}
			tokenizer := read(t, in.Tokenizer)
			e := tokenizer.Encoder()
			want := e.Append(e.Append(nil, text, true), "End.", true)
			var got []int32
			rows := 0
			err = in.Each(func(r dataset.DenseRow) error {
				rows++
				begin := max(0, len(got)-1)
				if len(want)-begin < positions { // the last row
					begin = len(want) - positions
				}
				got = got[:begin]
				for _, v := range r.Values {
					got = append(got, int32(v))
				}
				return nil
			})
			if err != nil || tokenizer.Decode(got) != tokenizer.Decode(want) || rows != in.Understood.Rows ||
				in.Classes != tokenizer.Size() || !in.NextToken {
				t.Fatalf("%d positions, cut %d: %d rows, %d of %d tokens, %+v, %v", positions, cut, rows, len(got), len(want),
					in.Understood, err)
			}
		}
	}
}

// Texts that no row can be made of are refused, with a reason.
func TestUnusablePlainTextsAreRefused(t *testing.T) {
	for want, p := range map[string]Plain{
		"not 2 to":     {Sources: []dataset.Source{dataset.TextSource("a", "text")}, Vocabulary: 270, Positions: 1},
		"a row has":    {Sources: []dataset.Source{dataset.TextSource("a", "text")}, Vocabulary: 270, Positions: 50},
		"no text in":   {Sources: []dataset.Source{dataset.TextSource("a", "\xff\xfe")}, Vocabulary: 270, Positions: 8},
		"no such file": {Sources: []dataset.Source{dataset.FileSource("absent.txt")}, Vocabulary: 270, Positions: 8},
	} {
		if _, err := p.Input("set"); !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// folderOf writes files into a new folder.
func folderOf(t *testing.T, texts map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// A file in the folder of a class is a row of that class; those in the folder test are held out. Hidden and empty files
// are no rows.
func TestFilesInFoldersAreRowsOfTheirClass(t *testing.T) {
	root := folderOf(t, map[string]string{
		"train/good/1.txt": "a fine\nfilm", "train/good/more/2": "great",
		"train/bad/1.txt": "\ufeffdull", "train/bad/.swp": "\xff",
		"train/bad/2.txt": "", "test/bad/9.txt": "awful", ".git/x/y": "no",
	})
	in, err := Folder{Path: root, Vocabulary: 300, Positions: 12}.Input("set")
	if err != nil {
		t.Fatal(err)
	}
	tokenizer := read(t, in.Tokenizer)
	var rows []row
	err = in.Each(func(r dataset.DenseRow) error {
		tokens := make([]int32, len(r.Values))
		for i, v := range r.Values {
			tokens[i] = int32(v)
		}
		rows = append(rows, row{tokenizer.Decode(tokens), in.ClassNames[r.Label], r.HeldOut})
		return nil
	})
	want := []row{{"dull", "bad", false}, {"a fine\nfilm", "good", false}, {"great", "good", false}, {"awful", "bad", true}}
	if diff := cmp.Diff(want, rows); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if got := in.Understood.Passed; len(got) != 1 || got[0] != "1 row without text and 0 without class" {
		t.Errorf("left out: %q", got)
	}
}

// All files that cannot be read are named at once, and a folder without classes says what is missing.
func TestUnusableFoldersOfTextsAreRefused(t *testing.T) {
	root := folderOf(t, map[string]string{"a/1": "caf\xe9", "a/2": "fine", "b/1": "\x1f\x8bno", "b/2": "too"})
	_, err := Folder{Path: root, Vocabulary: 300, Positions: 8}.Input("set")
	var faults *disdel.Faults
	if !errors.As(err, &faults) || len(faults.Faults) != 2 || faults.Faults[0].Path != filepath.Join(root, "a", "1") ||
		!strings.Contains(faults.Faults[0].Msg, "iconv") {
		t.Errorf("%v", err)
	}
	for want, texts := range map[string]map[string]string{
		"its folders have no files":         {"a/.hidden": "x"},
		"all texts have the class":          {"a/1": "x"},
		"c/1 has the class \"c\", which no": {"train/a/1": "x", "train/b/1": "y", "val/c/1": "z"},
	} {
		_, err := Folder{Path: folderOf(t, texts), Vocabulary: 300, Positions: 8}.Input("set")
		if disdel.KindOf(err) != disdel.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
