package dense

import (
	"math"
	"slices"
	"strings"

	"github.com/disdel/disdel/dataset"
)

// column is what is found out about one.
type column struct {
	dataset.Column
	passed string // why it is left out; "": it is not

	numbers, texts int
	squares        float64 // of what numbers are off their mean (Welford 1962)
	whole          bool    // all numbers are
	seen           map[string]int
	tooMany        bool // different texts for a category
	odd            []place
}

// place is a text that is no number.
type place struct {
	line int
	text string
}

func newColumn(name string) column {
	return column{
		Column: dataset.Column{Name: name, Low: math.Inf(1), High: math.Inf(-1)}, whole: true, seen: map[string]int{},
	}
}

// width is how many values the column comes to.
func (c *column) width() int {
	if c.passed != "" {
		return 0
	}
	return c.Width()
}

// add takes the column's text of a row.
func (c *column) add(line int, text string, missing bool) {
	if missing {
		c.Missing++
		return
	}
	if !c.tooMany {
		if _, ok := c.seen[text]; ok {
			c.seen[text]++
		} else if len(c.seen) >= mostCategories {
			c.tooMany, c.seen = true, nil
		} else {
			c.seen[strings.Clone(text)] = 1 // the record's memory is not to be kept
		}
	}
	v, ok := number(text)
	if !ok {
		if c.texts++; len(c.odd) < mostFaults {
			c.odd = append(c.odd, place{line, strings.Clone(text)})
		}
		return
	}
	c.numbers++
	off := v - c.Mean
	c.Mean += off / float64(c.numbers)
	c.squares += off * (v - c.Mean)
	c.Low, c.High = min(c.Low, v), max(c.High, v)
	c.whole = c.whole && v == math.Trunc(v)
}

// fewTexts is of how many numbers a text is rather a mistake than a category.
const fewTexts = 20

// close decides what the column is, from all rows, and tells what is wrong with it.
func (c *column) close(at int, wrong *faults) {
	if c.passed != "" {
		return
	}
	switch {
	case c.numbers+c.texts == 0:
		c.passed = "it is empty"
	case c.texts == 0, c.texts*fewTexts < c.numbers:
		c.Kind = dataset.ColumnNumber
		c.Deviation = math.Sqrt(c.squares / float64(max(1, c.numbers)))
		for _, p := range c.odd {
			wrong.at(p.line, at+1, c.Name, "%.40q is no number", p.text)
		}
		if more := c.texts - len(c.odd); more > 0 {
			wrong.more += more
		}
	case c.tooMany:
		wrong.at(c.odd[0].line, at+1, c.Name,
			"it has more than %d different texts, as names and ids have: leave it out (--skip)",
			mostCategories)
	case len(c.seen) == 1:
		c.passed = "it is the same in all rows"
	default:
		c.Kind = dataset.ColumnCategory
		for text := range c.seen {
			c.Categories = append(c.Categories, text)
		}
		slices.SortFunc(c.Categories, naturally)
	}
	if c.Kind != dataset.ColumnNumber {
		c.Low, c.High, c.Mean = 0, 0, 0
	}
}

// scale says how numbers are kept.
func (c *column) scale(by Scale) {
	c.Shift, c.Factor = 0, 1
	switch {
	case c.Kind != dataset.ColumnNumber:
		c.Factor = 0
	case by == Standard:
		c.Shift = c.Mean
		if c.Deviation > 0 {
			c.Factor = 1 / c.Deviation
		}
	case by == Range:
		c.Shift = c.Low
		if c.High > c.Low {
			c.Factor = 1 / (c.High - c.Low)
		}
	}
}

// inBytes says whether all numbers fit a byte each as they are.
func (c *column) inBytes() bool {
	return c.Kind == dataset.ColumnNumber && c.whole && c.Missing == 0 && c.Low >= 0 && c.High <= math.MaxUint8
}

// write appends the values of a text. ok is false where it is none that the column can have; known is false for a
// category that no row to learn from has, which is kept as a missing one.
func (c *column) write(to []float32, text string, missing bool) (values []float32, ok, known bool) {
	if c.Kind == dataset.ColumnCategory {
		at := len(to)
		to = append(to, make([]float32, len(c.Categories))...)
		if missing {
			return to, true, true
		}
		k, found := slices.BinarySearchFunc(c.Categories, text, naturally)
		if found {
			to[at+k] = 1
		}
		return to, true, found
	}
	v := c.Mean
	if !missing {
		if v, ok = number(text); !ok {
			return to, false, true
		}
	}
	return append(to, float32((v-c.Shift)*c.Factor)), true, true
}
