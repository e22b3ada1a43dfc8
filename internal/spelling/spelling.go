// Package spelling finds the word a person probably meant.
package spelling

import "strings"

// shortestStart is how many letters make a start: of fewer, too much begins with them by chance.
const shortestStart = 3

// Closest returns the candidate with the fewest edits to word, or "" if none is close: at most a third of the word's
// letters (and at least one) may differ. Of equally close ones the first wins. Where none is close, the only candidate
// that begins with word is meant, where a longer word may have one mistake.
func Closest(word string, candidates []string) string {
	best, limit := "", max(1, len(word)/3)
	for _, c := range candidates {
		if d := distance(fold(word), fold(c)); d <= limit {
			best, limit = c, d-1
		}
	}
	if best == "" {
		return begun(fold(word), candidates)
	}
	return best
}

// begun is the only candidate that begins with start, "" if there is none or several.
func begun(start string, candidates []string) string {
	found := ""
	for _, c := range candidates {
		switch {
		case len(start) < shortestStart || !begins(fold(c), start) || c == found:
		case found != "":
			return ""
		default:
			found = c
		}
	}
	return found
}

// mistakenStart is how many letters a start with a mistake has at least.
const mistakenStart = 6

// begins tells whether a word begins with start, or if start is long, with one edit of it.
func begins(word, start string) bool {
	return strings.HasPrefix(word, start) ||
		len(start) >= mistakenStart && len(word) > len(start) && distance(word[:len(start)], start) == 1
}

// fold drops what people confuse: case and separators.
func fold(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		switch c := s[i]; {
		case c == '-' || c == '_' || c == ' ':
		case c >= 'A' && c <= 'Z':
			out = append(out, c+'a'-'A')
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// distance counts insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
