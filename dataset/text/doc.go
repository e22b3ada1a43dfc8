// Package text turns text into tokens and back, and learns tokens from text.
//
// It reads the file tokenizer.json of the library "tokenizers" (byte-level BPE, as in GPT-2 and Llama 3, and
// WordPiece, as in BERT), and writes it for tokenizers that were trained here. For the same file and text, the tokens
// are those of that library. A file with parts that are not known here is refused with the names of these parts.
//
// BPE is the byte-pair encoding of Sennrich et al. (arXiv 1508.07909). Its byte-level form is that of GPT-2.
// WordPiece is the longest-match-first search of BERT (arXiv 1810.04805).
package text
