package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/disdel/disdel"
)

// Bounds of a filter.
const (
	maxFilter = 1000 // characters
	maxNested = 50   // parentheses and nots in each other
)

// Filter selects jobs in words: accuracy > 0.9 and tag:lenet and not state:failed. The zero Filter selects all.
type Filter struct {
	text  string
	holds condition // nil: all
	tags  bool      // it needs the tags of jobs
}

// condition tells whether a job is selected.
type condition func(s *subject) bool

// subject is a job that a condition is about.
type subject struct {
	*JobFacts
	tags []string
	now  time.Time
}

// ParseFilter reads a filter. A condition is FIELD OPERATOR VALUE, or a word that the job's texts contain. Fields has
// the fields. Operators are = or : (equal, * stands for any characters), !=, ~ (contains), <, <=, > and >=. "and" may
// be left out; "or", "not" and parentheses are as usual. An Invalid error has the position of every fault.
func ParseFilter(text string) (Filter, error) {
	p := filterParser{all: []rune(strings.ToValidUTF8(text, "?"))}
	if len(p.all) > maxFilter {
		p.fault(maxFilter, "the filter has %d characters, and at most %d are allowed", len(p.all), maxFilter)
	} else if p.skipSpace(); p.at < len(p.all) {
		holds := p.or(0)
		if p.skipSpace(); p.at < len(p.all) {
			p.fault(p.at, "the parenthesis closes nothing")
		}
		if len(p.faults) == 0 {
			return Filter{strings.TrimSpace(text), holds, p.tags}, nil
		}
	}
	if len(p.faults) == 0 {
		return Filter{}, nil
	}
	return Filter{}, &disdel.Error{
		Kind: disdel.Invalid, Op: "read filter", Msg: strings.Join(p.faults, "; "),
		Hint: "write conditions such as: accuracy > 0.9 and tag:lenet and state:failed and finished < 7d",
	}
}

// String is the text of the filter, "" for the zero Filter.
func (f Filter) String() string { return f.text }

// Matches tells whether the filter selects a job with these tags. Ages are counted to now.
func (f Filter) Matches(job *JobFacts, tags []string, now time.Time) bool {
	return f.holds == nil || f.holds(&subject{job, tags, now})
}

// matchesRecord is Matches for a record now.
func (f Filter) matchesRecord(r *disdel.Record, tags []string) bool {
	if f.holds == nil {
		return true
	}
	facts := FactsOf(r)
	return f.Matches(&facts, tags, time.Now())
}

// filterParser reads a filter from left to right. A fault in a condition does not hide the next one; a fault in the
// structure ends the reading.
type filterParser struct {
	all    []rune
	at     int
	faults []string
	tags   bool
}

func (p *filterParser) fault(at int, format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf("character %d: ", at+1)+fmt.Sprintf(format, args...))
}

// broken notes a fault after which nothing more can be read.
func (p *filterParser) broken(at int, format string, args ...any) condition {
	p.fault(at, format, args...)
	p.at = len(p.all)
	return nil
}

func (p *filterParser) skipSpace() {
	for p.at < len(p.all) && unicode.IsSpace(p.all[p.at]) {
		p.at++
	}
}

// keyword reads a word that stands alone, in any case.
func (p *filterParser) keyword(word string) bool {
	p.skipSpace()
	end := p.at + len(word)
	if end > len(p.all) || !strings.EqualFold(string(p.all[p.at:end]), word) ||
		end < len(p.all) && !unicode.IsSpace(p.all[end]) && !strings.ContainsRune("()", p.all[end]) {
		return false
	}
	p.at = end
	return true
}

func (p *filterParser) or(depth int) condition {
	any := []condition{p.and(depth)}
	for p.keyword("or") {
		any = append(any, p.and(depth))
	}
	if len(any) == 1 {
		return any[0]
	}
	return func(s *subject) bool {
		return slices.ContainsFunc(any, func(holds condition) bool { return holds(s) })
	}
}

func (p *filterParser) and(depth int) condition {
	all := []condition{p.not(depth)}
	for {
		start := p.at
		if p.keyword("or") || p.at == len(p.all) || p.all[p.at] == ')' {
			p.at = start
			break
		}
		p.keyword("and")
		all = append(all, p.not(depth))
	}
	if len(all) == 1 {
		return all[0]
	}
	return func(s *subject) bool {
		return !slices.ContainsFunc(all, func(holds condition) bool { return !holds(s) })
	}
}

func (p *filterParser) not(depth int) condition {
	start := p.at
	switch {
	case depth > maxNested:
		return p.broken(p.at, "more than %d parentheses and nots are in each other", maxNested)
	case p.keyword("and"), p.keyword("or"):
		return p.broken(start, "a condition is missing before %q", strings.TrimSpace(string(p.all[start:p.at])))
	case p.keyword("not"):
		holds := p.not(depth + 1)
		return func(s *subject) bool { return !holds(s) }
	case p.at == len(p.all):
		return p.broken(p.at, "a condition is missing")
	case p.all[p.at] == ')':
		return p.broken(p.at, "a condition is missing before the parenthesis")
	case p.all[p.at] != '(':
		return p.term()
	}
	opened := p.at
	p.at++
	holds := p.or(depth + 1)
	if p.skipSpace(); p.at == len(p.all) {
		if len(p.faults) == 0 {
			p.fault(opened, "the parenthesis is never closed")
		}
		return holds
	}
	p.at++
	return holds
}

// operators are the operators of conditions; a longer one comes before its beginning.
var operators = []string{"!=", "<=", ">=", "=", ":", "~", "<", ">"}

// term reads a condition or a word.
func (p *filterParser) term() condition {
	start := p.at
	for p.at < len(p.all) && (unicode.IsLetter(p.all[p.at]) || unicode.IsDigit(p.all[p.at]) ||
		strings.ContainsRune("._-/", p.all[p.at])) {
		p.at++
	}
	name := string(p.all[start:p.at])
	p.skipSpace()
	rest := string(p.all[p.at:min(len(p.all), p.at+2)])
	i := slices.IndexFunc(operators, func(o string) bool { return strings.HasPrefix(rest, o) })
	if i < 0 || name == "" {
		p.at = start
		return p.word()
	}
	operator, at := operators[i], p.at
	p.at += len(operator)
	p.skipSpace()
	valueAt := p.at
	value, ok := p.value()
	switch {
	case !ok:
		return p.broken(valueAt, "the quotation mark is never closed")
	case value == "" && p.at == valueAt:
		return p.broken(at, "a value is missing after %q", operator)
	}
	holds, needsTags, fault := conditionOf(name, operator, value)
	if fault != nil {
		where := start
		if fault.ofValue {
			where = valueAt
		}
		p.fault(where, "%s", fault.text)
		return func(*subject) bool { return false }
	}
	p.tags = p.tags || needsTags
	return holds
}

// word reads a word, or words in quotation marks, that a text of the job contains.
func (p *filterParser) word() condition {
	start := p.at
	word, ok := p.value()
	switch {
	case !ok:
		return p.broken(start, "the quotation mark is never closed")
	case slices.ContainsFunc(operators, func(o string) bool { return strings.HasPrefix(word, o) }) && p.all[start] != '"':
		return p.broken(start, "a field is missing before %q", word)
	}
	p.tags, word = true, strings.ToLower(word)
	return func(s *subject) bool {
		return strings.Contains(s.searched, word) ||
			slices.ContainsFunc(s.tags, func(tag string) bool { return strings.Contains(strings.ToLower(tag), word) })
	}
}

// value reads a text until a space or a parenthesis, or in quotation marks. ok is false without the second mark.
func (p *filterParser) value() (text string, ok bool) {
	if p.at < len(p.all) && p.all[p.at] == '"' {
		end := slices.Index(p.all[p.at+1:], '"')
		if end < 0 {
			return "", false
		}
		text = string(p.all[p.at+1 : p.at+1+end])
		p.at += end + 2
		return text, true
	}
	start := p.at
	for p.at < len(p.all) && !unicode.IsSpace(p.all[p.at]) && !strings.ContainsRune("()", p.all[p.at]) {
		p.at++
	}
	return string(p.all[start:p.at]), true
}

// glob tells whether a text is a pattern in which * stands for any characters. Both ignore case.
func glob(pattern, text string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	text = strings.ToLower(text)
	if len(parts) == 1 {
		return text == parts[0]
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		rest, ok = after, ok && found
	}
	return ok && strings.HasSuffix(rest, parts[len(parts)-1])
}
