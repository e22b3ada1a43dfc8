package text_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/text"
)

// A tokenizer is learned from texts, and encodes and decodes others.
func ExampleTrainBPE() {
	t, err := text.TrainBPE(slices.Values([]string{"low lower lowest", "new newer newest"}), 262, "<|end|>")
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens := t.Encoder().Append(nil, "lower", false)
	fmt.Println(len(tokens), "tokens:", t.Decode(tokens))
	// Output: 3 tokens: lower
}

func ExampleRead() {
	t, err := text.TrainBPE(slices.Values([]string{"abab"}), 300)
	if err != nil {
		fmt.Println(err)
		return
	}
	same, err := text.Read(bytes.NewReader(t.JSON()))
	if err != nil {
		fmt.Println(err)
		return
	}
	id, known := same.ID("abab")
	fmt.Println(same.Size(), "tokens;", id, known)
	// Output: 258 tokens; 257 true
}

// Rows of a table become rows of tokens for a data set.
func ExampleTable() {
	in, err := text.Table{
		Source: dataset.TextSource("reviews.csv", "review,stars\na good film,5\na bad one,1\n"), Text: "review", Label: "stars",
		Vocabulary: 280, Positions: 16,
	}.Input("reviews")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(in.Shape, in.ClassNames, in.Understood.Kind)
	// Output: [1 1 16] [1 5] CSV with a header; the text is review; the label is stars
}

// Fill pads a short text with token 0.
func ExampleFill() {
	row := make([]float32, 4)
	fmt.Println(text.Fill(row, []int32{7, 8}), row)
	// Output: false [7 8 0 0]
}

// A folder with a folder of texts for each class becomes rows.
func ExampleFolder() {
	root, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	for _, class := range []string{"good", "bad"} {
		folder := filepath.Join(root, class)
		if err := os.Mkdir(folder, 0o700); err != nil {
			fmt.Println(err)
			return
		}
		if err := os.WriteFile(filepath.Join(folder, "1.txt"), []byte("a "+class+" film"), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}
	in, err := text.Folder{Path: root, Vocabulary: 280, Positions: 16}.Input("reviews")
	fmt.Println(in.Shape, in.ClassNames, in.Understood.Kind, err)
	// Output: [1 1 16] [bad good] text files; the label is the file's folder <nil>
}
