package infer

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset/text"
	"github.com/disdel/disdel/estimator"
)

// Continued is a text and what a language model adds to it.
type Continued struct {
	Text         string `json:"text"`
	Continuation string `json:"continuation"`
	Tokens       int    `json:"tokens"` // of the continuation
}

// Bounds of a question to a language model.
const (
	DefaultTokens = 64 // that are added
	mostTokens    = 4096
	mostTexts     = 64
)

// Continue lets a language model add tokens to texts. It returns Invalid for a model of another kind or without a
// tokenizer. It returns Invalid, too, for a text without tokens and for values of how that are out of range. A failure
// of the action comes with its activations.
func (s *Predictor) Continue(ctx context.Context, t *Model, texts []string, how disdel.Continuation) (
	out []Continued, ran []disdel.Activation, err error,
) {
	bad := func(hint, format string, args ...any) ([]Continued, []disdel.Activation, error) {
		return nil, nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "continue with " + t.Ref(), Msg: fmt.Sprintf(format, args...), Hint: hint,
		}
	}
	if how.Tokens == 0 {
		how.Tokens = DefaultTokens
	}
	switch {
	case !t.Graph.PredictsTokens():
		return bad("ask it without a number of tokens and a temperature",
			"the model is no language model, and continues no text")
	case t.texts == nil:
		return bad("train a model on a data set that was added with --text-files", "the model has no tokenizer")
	case how.Tokens < 1 || how.Tokens > mostTokens:
		return bad("ask for fewer, and continue the result", "%d tokens are asked for, not 1 to %d", how.Tokens, mostTokens)
	case how.Temperature < 0 || math.IsNaN(how.Temperature) || math.IsInf(how.Temperature, 0):
		return bad("0 takes the most probable token, 1 draws as the model says", "the temperature is %v",
			how.Temperature)
	case how.TopK < 0:
		return bad("0 takes all tokens", "top-k is %d", how.TopK)
	case !(how.TopP >= 0 && how.TopP <= 1):
		return bad("0 takes all tokens", "top-p is %v, not 0 to 1", how.TopP)
	case len(texts) == 0:
		return bad(`give a line of text in UTF-8, or JSON: {"inputs": ["..."]}`, "there is no text")
	case len(texts) > mostTexts:
		return bad("ask for fewer at once", "there are %d texts, and a question may have %d", len(texts), mostTexts)
	}
	tokenizer, err := t.texts()
	if err != nil {
		return nil, nil, err
	}
	tokens := make([][]int32, len(texts))
	for i, one := range texts {
		tokens[i] = t.lastTokens(tokenizer, one)
		if len(tokens[i]) == 0 {
			return bad("give it at least a word", "text %d is empty", i)
		}
	}
	if end, ok := tokenizer.ID(text.End); ok {
		token := int32(end) //nolint:gosec // a token
		how.End = &token
	}
	q, end, err := s.newQuery(ctx, t, estimator.Input{
		Graph: t.Graph, BatchSize: 1, Rows: 1, SampleBytes: rowBytes(t), Continues: true,
	})
	if err != nil {
		return nil, nil, err
	}
	defer end()
	q.request.Texts, q.request.Continuation = tokens, how
	var result Result
	res, err := q.run(ctx, 0, func(int) disdel.InferRequest { return q.request }, &result)
	if err == nil && len(res.Continued) != len(texts) {
		err = &disdel.Error{Kind: disdel.Internal, Op: "infer", Msg: "an action did not continue each text"}
	}
	if err != nil {
		return nil, result.Actions, err
	}
	for i, added := range res.Continued {
		before := tokenizer.Decode(tokens[i])
		all := tokenizer.Decode(append(tokens[i], added...)) // a letter may begin in one and end in the other
		rest := strings.TrimPrefix(all, strings.TrimRight(before, "\uFFFD"))
		out = append(out, Continued{Text: texts[i], Continuation: rest, Tokens: len(added)})
	}
	return out, result.Actions, nil
}

// lastTokens are the last tokens of a text, as many as a row has. The end of the text is none of them.
func (t *Model) lastTokens(tokenizer *text.Tokenizer, one string) []int32 {
	tokens := tokenizer.Encoder().Append(nil, one, true)
	if end, ok := tokenizer.ID(text.End); ok && len(tokens) > 0 && int(tokens[len(tokens)-1]) == end {
		tokens = tokens[:len(tokens)-1]
	}
	return tokens[max(0, len(tokens)-t.Graph.Input().Len()):]
}
