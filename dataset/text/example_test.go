package text_test

import (
	"bytes"
	"fmt"
	"slices"

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
