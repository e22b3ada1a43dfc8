package text

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/files"
)

// Plain is texts as rows of tokens for a language model. A row begins with the last token of the row before, so each
// token but the first is a target. All rows are full: the last one begins early enough.
type Plain struct {
	Sources []dataset.Source // plain or gzip, in UTF-8; each is one text
	// Tokenizer makes the tokens. nil: one of Vocabulary tokens is trained on the texts.
	Tokenizer  *Tokenizer
	Vocabulary int
	Positions  int // tokens of a row, at least 2
}

// Input returns the rows for dataset.Store.AddDense. It holds all tokens in memory, 4 bytes each. It returns Invalid
// for fewer tokens than one row has, and for files that cannot be read.
func (p Plain) Input(name string) (in dataset.DenseInput, err error) {
	bad := func(hint, format string, args ...any) (dataset.DenseInput, error) {
		return in, &disdel.Error{Kind: disdel.Invalid, Op: "read texts", Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	if p.Positions < 2 || p.Positions > mostPositions {
		return bad("give a number of tokens, such as --positions 128", "rows of %d tokens, not 2 to %d", p.Positions,
			mostPositions)
	}
	texts, err := p.read()
	if err != nil {
		return in, err
	}
	if p.Tokenizer == nil {
		if p.Tokenizer, err = TrainBPE(slices.Values(beginnings(texts)), p.Vocabulary, Padding, End); err != nil {
			return in, err
		}
	}
	var tokens []int32
	e := p.Tokenizer.Encoder()
	for _, text := range texts {
		tokens = e.Append(tokens, text, true)
	}
	if len(tokens) < p.Positions {
		return bad("give more text, or lower --positions", "the texts have %d tokens, and a row has %d", len(tokens),
			p.Positions)
	}
	return dataset.DenseInput{
		Name: name, Shape: []int{1, 1, p.Positions}, Classes: p.Tokenizer.Size(), LabelClasses: true, NextToken: true,
		Tokenizer: p.Tokenizer.JSON(),
		Each:      func(yield func(dataset.DenseRow) error) error { return cutRows(tokens, p.Positions, yield) },
		Understood: dataset.Interpretation{
			Kind: disdel.Counted(len(texts), "plain text"),
			Values: fmt.Sprintf("%d tokens of %d, as whole numbers; the target of each is the next one", p.Positions,
				p.Tokenizer.Size()),
			Rows: (len(tokens) - 1 + p.Positions - 2) / (p.Positions - 1),
			Example: dataset.Example{
				Place: p.Sources[0].Name, Values: []string{shortened(texts[0][:min(len(texts[0]), 500)])},
			},
		},
	}, nil
}

// read reads all texts.
func (p Plain) read() (texts []string, err error) {
	for _, source := range p.Sources {
		text, err := readText(source, math.MaxInt64)
		if err != nil {
			if known := new(disdel.Error); errors.As(err, &known) {
				return nil, err
			}
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "read " + source.Name, Err: err, Hint: "give plain text files, also with gzip",
			}
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// readText is the text of a file of at most so many bytes.
func readText(source dataset.Source, maximum int64) (string, error) {
	file, err := source.Open()
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(skipMark(file), maximum))
	if closing := file.Close(); err == nil {
		err = closing
	}
	switch {
	case err != nil:
		return "", err
	case int64(len(data)) == maximum:
		return "", fmt.Errorf("it is longer than %d MB", maximum>>20)
	case !utf8.Valid(data):
		return "", errors.New("it is no text in UTF-8; if it is in Latin-1: iconv -f latin1 -t utf-8 FILE > OUT")
	}
	return string(data), nil
}

// beginnings are the texts as far as a tokenizer is trained on them.
func beginnings(texts []string) []string {
	budget, out := mostTraining, slices.Clone(texts)
	for i, text := range out {
		out[i] = text[:min(len(text), budget)]
		budget -= len(out[i])
	}
	return out
}

// cutRows yields the rows of tokens.
func cutRows(tokens []int32, positions int, yield func(dataset.DenseRow) error) error {
	row := make([]float32, positions)
	for at := 0; at < len(tokens)-1; at += positions - 1 {
		Fill(row, tokens[min(at, len(tokens)-positions):][:positions])
		if err := yield(dataset.DenseRow{Values: row}); err != nil {
			return err
		}
	}
	return nil
}

// Folder is text files as rows of tokens with a class each. It has a folder for each class, or the folders train, and
// test (or val), with such folders. The files of the second one are held out.
type Folder struct {
	Path       string
	Tokenizer  *Tokenizer // see Table
	Vocabulary int
	Positions  int // tokens of a row; longer files are cut off
}

// textFile is a file of a Folder.
type textFile struct{ path, class string }

// Input returns the rows for dataset.Store.AddDense, one for each file. It returns Invalid, and *disdel.Faults with the
// files that cannot be read.
func (f Folder) Input(name string) (in dataset.DenseInput, err error) {
	root, test := files.TrainAndTest(f.Path)
	r := &rowReader{
		Table: Table{
			Source: dataset.TextSource(root, ""), Text: "text", Label: "class", Tokenizer: f.Tokenizer,
			Vocabulary: f.Vocabulary, Positions: f.Positions,
		},
		classes: map[string]int32{}, inFolder: map[string][]textFile{},
	}
	if r.inFolder[root], err = textFiles(root); err != nil {
		return in, err
	}
	if test != "" {
		source := dataset.TextSource(test, "")
		r.Test = &source
		if r.inFolder[test], err = textFiles(test); err != nil {
			return in, err
		}
	}
	return r.input(name)
}

// textFiles lists the files in the folders of the classes, in the order of their names.
func textFiles(root string) (list []textFile, err error) {
	classes, err := files.Subfolders(root)
	if err != nil {
		return nil, err
	}
	for _, class := range classes {
		err := filepath.WalkDir(filepath.Join(root, class), func(path string, d fs.DirEntry, err error) error {
			switch hidden := strings.HasPrefix(d.Name(), "."); {
			case err != nil:
				return err
			case hidden && d.IsDir():
				return fs.SkipDir
			case !hidden && !d.IsDir():
				list = append(list, textFile{path, class})
			}
			return nil
		})
		if err != nil {
			return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + root, Err: err, Hint: "check the folder"}
		}
	}
	if len(list) == 0 {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + root, Msg: "its folders have no files",
			Hint: "put the texts of a class into a folder of its name: " + filepath.Join(filepath.Base(root), "good", "1.txt"),
		}
	}
	return list, nil
}

// filesOf reads files as rows.
func filesOf(list []textFile) iter.Seq2[document, error] {
	return func(yield func(document, error) bool) {
		for _, file := range list {
			text, err := readText(dataset.FileSource(file.path), longestLine)
			if known := new(disdel.Error); errors.As(err, &known) {
				err = cmp.Or(known.Err, errors.New(known.Msg))
			}
			if err != nil {
				err = &lineError{path: file.path, error: err}
			}
			if !yield(document{text, file.class, file.path}, err) {
				return
			}
		}
	}
}
