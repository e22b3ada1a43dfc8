package jobfile

import (
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel/internal/terminal"
)

// longestQuote is how much of the file's text one message repeats, in characters.
const longestQuote = 64

// shorten cuts and escapes text for a message.
func shorten(s string) string { return terminal.Escape(cut(s)) }

// quote is shorten for text in quotes.
func quote(s string) string { return strconv.Quote(cut(s)) }

func cut(s string) string {
	n := 0
	for i := range s {
		if n++; n > longestQuote {
			return s[:i] + "..."
		}
	}
	return s
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_$/][-A-Za-z0-9_$/]*$`)

// join adds a key of the file to a path; one that would make the path ambiguous is quoted.
func join(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		key = quote(key)
	case len(key) > longestQuote:
		key = shorten(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// found describes a value for "expected X, found Y".
func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	value := shorten(n.Value)
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!str":
		return "text " + quote(n.Value)
	case "!!int":
		return "the integer " + value
	case "!!float":
		return "the number " + value
	case "!!timestamp":
		return "the date " + value
	case "!!bool":
		return value
	default:
		return "a value tagged " + shorten(n.Tag)
	}
}
