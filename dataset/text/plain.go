package text

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
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
		file, err := source.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(skipMark(file))
		if closing := file.Close(); err == nil {
			err = closing
		}
		if err == nil && !utf8.Valid(data) {
			err = errors.New("it is no text in UTF-8")
		}
		if err != nil {
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "read " + source.Name, Err: err, Hint: "give plain text files, also with gzip",
			}
		}
		texts = append(texts, string(data))
	}
	return texts, nil
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
