package sparse

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// labels is what is known of the texts in the place of a target: two different ones are 0 and 1, others have to be
// numbers.
type labels struct {
	seen   []string // the first three different ones
	lowest []string // of two: those of 0 and 1; nil: targets are numbers
}

func (l *labels) add(text []byte) {
	if len(l.seen) > 2 || slices.Contains(l.seen, string(text)) {
		return
	}
	// the same number written in two ways is one label
	if v, ok := number(text); ok && slices.ContainsFunc(l.seen, func(s string) bool {
		w, ok := number([]byte(s))
		return ok && w == v
	}) {
		return
	}
	l.seen = append(l.seen, string(text))
}

// close decides, when all have been seen, whether they are two classes.
func (l *labels) close() {
	if len(l.seen) != 2 {
		return
	}
	l.lowest = slices.Clone(l.seen)
	slices.SortFunc(l.lowest, func(a, b string) int {
		x, isX := number([]byte(a))
		y, isY := number([]byte(b))
		if isX && isY {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a, b)
	})
}

// classes is how many the targets are of: 1 where they are numbers.
func (l *labels) classes() int {
	if l.lowest != nil {
		return 2
	}
	return 1
}

// target is what a text stands for.
func (l *labels) target(text []byte) (v float32, ok bool) {
	if l.lowest == nil {
		return number(text)
	}
	for class, name := range l.lowest {
		if string(text) == name {
			return float32(class), true
		}
	}
	v, isNumber := number(text)
	for class, name := range l.lowest {
		if w, ok := number([]byte(name)); ok && isNumber && w == v {
			return float32(class), true
		}
	}
	return 0, false
}

// number reads a finite number in decimal, as other programs write them: neither Go's 1_000 nor its 0x1p4.
func number(text []byte) (v float32, ok bool) {
	if bytes.ContainsAny(text, "_xX") {
		return 0, false
	}
	x, err := strconv.ParseFloat(string(text), 32)
	return float32(x), err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// HeldOut says which rows of a data set are held out of learning when it is added. Without a share none is: then each
// job draws its own, as data.split says.
type HeldOut struct {
	Share float64 // of the rows, from 0 to below 1
	// ByUser holds out that share of each user's ratings, and never a user's only one: every user who is evaluated has
	// been learned of. Else it is rows, whosever they are.
	ByUser bool
	Seed   int64
}

func (h HeldOut) check() error {
	if h.Share >= 0 && h.Share < 1 {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "divide data set", Msg: fmt.Sprintf("a share of %g held out", h.Share),
		Hint: "give a share from 0 to below 1, such as 0.1",
	}
}

// picker says of rows, in their order, whether they are held out.
type picker struct {
	HeldOut
	row  int
	seen []int // by user: rows so far
}

func (h HeldOut) picker(users int) *picker {
	p := &picker{HeldOut: h}
	if h.ByUser {
		p.seen = make([]int, users)
	}
	return p
}

// next is about the next row, which is that of a user where it is a rating.
func (p *picker) next(user int) bool {
	p.row++
	switch {
	case p.Share <= 0:
		return false
	case !p.ByUser:
		return chance(p.Seed, uint64(p.row)) < p.Share
	}
	// Every 1/share-th of a user's rows, from a place on that is the user's own.
	k := float64(p.seen[user])
	p.seen[user]++
	if k == 0 {
		return false
	}
	phase := chance(p.Seed, uint64(user))
	return math.Floor(k*p.Share+phase) > math.Floor((k-1)*p.Share+phase)
}

// chance is a number from 0 to below 1 that goes by a seed and a number (splitmix64; Steele, Lea and Flood 2014).
func chance(seed int64, n uint64) float64 {
	const golden = 0x9e3779b97f4a7c15
	z := uint64(seed)*golden + (n+1)*0xbf58476d1ce4e5b9
	for range 2 {
		z += golden
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
	}
	return float64(z>>11) / (1 << 53)
}

const bufferBytes = 256 << 10

// longestLine is the longest line of a file of rows.
const longestLine = 16 << 20

// lines calls f with every line of the source that is not empty, and its number from 1. The line is good during the
// call alone.
func lines(s dataset.Source, f func(number int, line []byte) error) error {
	in, err := s.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, bufferBytes), longestLine)
	number := 0
	for scan.Scan() {
		number++
		line := bytes.TrimRight(scan.Bytes(), "\r")
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if bytes.IndexByte(line, 0) >= 0 {
			return bad(s, number, zeroByte)
		}
		if err := f(number, line); err != nil {
			return err
		}
	}
	if err := scan.Err(); err != nil {
		return &disdel.Error{
			Kind: disdel.Corrupt, Op: "read " + s.Name, Msg: fmt.Sprintf("after line %d", number), Err: err,
		}
	}
	return nil
}

// byteOrderMark is what some programs begin a text with. It is no part of it: as one of the first name it would make
// that another one.
const byteOrderMark = "\xef\xbb\xbf"

// zeroByte is what is wrong with a line that has one: texts of two bytes a character would be read as names with
// nothing in between, which are names as others.
const zeroByte = "it has a byte of 0, and is no text in UTF-8"

// bad is the error of a line that cannot be read.
func bad(s dataset.Source, line int, format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + s.Name, Msg: fmt.Sprintf("line %d: %s", line, fmt.Sprintf(format, args...)),
	}
}
