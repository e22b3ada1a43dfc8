package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
)

// longest is the most words that a sentence of a kind of text is to have.
var longest = map[place]int{comments: 25, help: 25, docs: 25}

// readBanned reads patterns of words and turns that no text is to have, one on a line.
func readBanned(path string) (*regexp.Regexp, error) {
	lines, err := readLines(path)
	if err != nil {
		return nil, err
	}
	return regexp.Compile(`(?i)\b(` + strings.Join(lines, "|") + `)\b`)
}

// measure counts long sentences, banned words and reading ease.
func measure(all []sentence, banned *regexp.Regexp) (out []figure) {
	for _, p := range []place{comments, help, docs} {
		var count, long, bad, words int
		for _, s := range all {
			if s.place != p {
				continue
			}
			count, words = count+1, words+s.words
			if s.words > longest[p] {
				long++
			}
			if banned.MatchString(s.text) {
				bad++
			}
		}
		name := string(p)
		out = append(out,
			figure{name + "_words_mean", rounded(float64(words) / float64(max(1, count))), "words a sentence"},
			figure{name + "_long_pct", rounded(100 * float64(long) / float64(max(1, count))), "% of sentences above 25 words"},
			figure{name + "_banned", float64(bad), "sentences with a banned word"},
		)
	}
	return append(out, figure{"docs_reading_ease", rounded(medianEase(all)), "Flesch reading ease of the median page"})
}

func rounded(v float64) float64 { return math.Round(v*10) / 10 }

// medianEase is the reading ease of the median page of the docs.
func medianEase(all []sentence) float64 {
	pages := map[string][]sentence{}
	for _, s := range all {
		if s.place == docs {
			pages[s.file] = append(pages[s.file], s)
		}
	}
	var eases []float64
	for _, page := range pages {
		eases = append(eases, ease(page))
	}
	if len(eases) == 0 {
		return 0
	}
	slices.Sort(eases)
	return eases[len(eases)/2]
}

// ease is the Flesch reading ease of a page: 206.835 - 1.015 words a sentence - 84.6 syllables a word.
func ease(page []sentence) float64 {
	words, syllables := 0, 0
	for _, s := range page {
		for _, w := range word.FindAllString(s.text, -1) {
			words, syllables = words+1, syllables+syllablesOf(w)
		}
	}
	if words == 0 {
		return 100
	}
	return 206.835 - 1.015*float64(words)/float64(len(page)) - 84.6*float64(syllables)/float64(words)
}

// syllablesOf counts groups of vowels; a silent e at the end is none.
func syllablesOf(w string) int {
	w = strings.ToLower(w)
	n, before := 0, false
	for _, r := range w {
		vowel := strings.ContainsRune("aeiouy", r)
		if vowel && !before {
			n++
		}
		before = vowel
	}
	if strings.HasSuffix(w, "e") && !strings.HasSuffix(w, "le") {
		n--
	}
	return max(1, n)
}

// printWorst prints sentences with banned words, then the longest ones.
func printWorst(all []sentence, banned *regexp.Regexp, most int) {
	slices.SortStableFunc(all, func(a, b sentence) int { return badness(b, banned) - badness(a, banned) })
	for _, s := range all[:min(most, len(all))] {
		fmt.Fprintf(os.Stderr, "%s:%d: %d words: %s\n", s.file, s.line, s.words, s.text)
	}
}

func badness(s sentence, banned *regexp.Regexp) int {
	n := s.words
	if banned.MatchString(s.text) && s.place != comments {
		n += 1000
	}
	return n
}
