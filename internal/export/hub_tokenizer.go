package export

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
)

const tokenizerFile = "tokenizer.json"

// readTokenizer reads tokenizer.json, or makes it of vocab.txt (BERT), or of vocab.json and merges.txt (GPT-2).
func (r *hubReader) readTokenizer() ([]byte, error) {
	file, err := r.small(tokenizerFile, mostTokenizer)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	if words, err := r.small("vocab.txt", mostTokenizer); err == nil {
		return wordPieceFile(words, r.origin["tokenizer_config.json"])
	}
	vocabulary, err := r.small("vocab.json", mostTokenizer)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // a model without a tokenizer answers for rows of tokens
	}
	merges, err := r.small("merges.txt", mostTokenizer)
	if err != nil {
		return nil, hubError("the folder has vocab.json and no merges.txt", "fetch the folder again", err)
	}
	return byteBPEFile(vocabulary, merges)
}

type object = map[string]any

// wordPieceFile is the tokenizer.json of BERT's vocab.txt: a token on each line.
func wordPieceFile(words []byte, more string) ([]byte, error) {
	var options struct {
		Lower *bool `json:"do_lower_case"` //nolint:tagliatelle // the hub's name
	}
	if more != "" {
		if err := json.Unmarshal([]byte(more), &options); err != nil {
			return nil, hubError("read tokenizer_config.json", "fetch the folder again", err)
		}
	}
	ids, special := map[string]int{}, []object{}
	for i, line := range strings.Split(strings.TrimSuffix(string(words), "\n"), "\n") {
		token := strings.TrimSuffix(line, "\r")
		ids[token] = i
		if slices.Contains([]string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, token) {
			special = append(special, object{"id": i, "content": token, "special": true})
		}
	}
	for _, token := range []string{"[UNK]", "[CLS]", "[SEP]"} {
		if _, ok := ids[token]; !ok {
			return nil, hubError("vocab.txt has no "+token, "give tokenizer.json", nil)
		}
	}
	return json.Marshal(object{
		"version": "1.0", "added_tokens": special,
		"normalizer": object{
			"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": nil,
			"lowercase": options.Lower == nil || *options.Lower,
		},
		"pre_tokenizer": object{"type": "BertPreTokenizer"},
		"post_processor": object{
			"type": "BertProcessing", "cls": []any{"[CLS]", ids["[CLS]"]}, "sep": []any{"[SEP]", ids["[SEP]"]},
		},
		"decoder": object{"type": "WordPiece", "prefix": "##", "cleanup": true},
		"model": object{
			"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
			"vocab": ids,
		},
	})
}

// byteBPEFile is the tokenizer.json of GPT-2's vocab.json and merges.txt.
func byteBPEFile(vocabulary, merges []byte) ([]byte, error) {
	var ids map[string]int
	if err := json.Unmarshal(vocabulary, &ids); err != nil {
		return nil, hubError("read vocab.json", "fetch the folder again", err)
	}
	pairs := []string{}
	for line := range strings.SplitSeq(string(merges), "\n") {
		if line = strings.TrimSuffix(line, "\r"); line != "" && !strings.HasPrefix(line, "#version") {
			pairs = append(pairs, line)
		}
	}
	special := []object{}
	const end = "<|endoftext|>"
	if id, ok := ids[end]; ok {
		special = append(special, object{"id": id, "content": end, "special": true})
	}
	bytes := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}
	return json.Marshal(object{
		"version": "1.0", "added_tokens": special, "pre_tokenizer": bytes, "post_processor": bytes, "decoder": bytes,
		"model": object{"type": "BPE", "vocab": ids, "merges": pairs},
	})
}
