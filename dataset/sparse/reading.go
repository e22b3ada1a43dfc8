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

// labels is the texts of a target: two different ones are 0 and 1, others must be numbers.
type labels struct {
	seen   []string // the first three different ones
	lowest []string // of two: the texts of 0 and 1; nil: targets are numbers
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

// close decides at the end whether they are two classes.
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

// classes is the number of classes, 1 for numbers.
func (l *labels) classes() int {
	if l.lowest != nil {
		return 2
	}
	return 1
}

// classRows is how many rows each of two classes has, by the rows of each text; nil if targets are numbers.
func (l *labels) classRows(byLabel map[string]int) (list []dataset.ClassRows) {
	if l.lowest == nil || len(byLabel) > mostLabelTexts {
		return nil
	}
	for _, name := range l.lowest {
		list = append(list, dataset.ClassRows{Name: name})
	}
	for text, rows := range byLabel {
		if class, ok := l.target([]byte(text)); ok {
			list[int(class)].Rows += rows
		}
	}
	return list
}

// target is the value of a text.
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

// mostLabelTexts bounds the memory of counts by class: targets that are numbers have as many texts as rows.
const mostLabelTexts = 64

// number reads a finite decimal number as other programs write it: neither Go's 1_000 nor its 0x1p4.
func number(text []byte) (v float32, ok bool) {
	if bytes.ContainsAny(text, "_xX") {
		return 0, false
	}
	x, err := strconv.ParseFloat(string(text), 32)
	return float32(x), err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// HeldOut says which rows of a data set are held out when it is added. Without a share there are none: each job then
// draws its own, as data.split says.
type HeldOut struct {
	Share float64 // of the rows, from 0 to below 1
	// ByUser holds out that share of each user's ratings, but never a user's only one: every evaluated user also has
	// training rows. Otherwise rows are chosen independently of users.
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

// picker decides for each row in order whether it is held out.
type picker struct {
	HeldOut
	row  int
	seen []int // by user: rows so far
}

func (h HeldOut) picker() *picker { return &picker{HeldOut: h} }

// next decides about the next row, of a user if it is a rating.
func (p *picker) next(user int) bool {
	p.row++
	switch {
	case p.Share <= 0:
		return false
	case !p.ByUser:
		return chance(p.Seed, uint64(p.row)) < p.Share
	}
	// Every 1/share-th of a user's rows, with a different offset for each user.
	for len(p.seen) <= user {
		p.seen = append(p.seen, 0)
	}
	k := float64(p.seen[user])
	p.seen[user]++
	if k == 0 {
		return false
	}
	phase := chance(p.Seed, uint64(user))
	return math.Floor(k*p.Share+phase) > math.Floor((k-1)*p.Share+phase)
}

// chance is a number from 0 to below 1, by a seed and a number (splitmix64; Steele, Lea and Flood 2014).
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

// lines calls f with every nonempty line of the source, and its number from 1. The line is valid only during the
// call.
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

// byteOrderMark starts the texts of some programs, and is no part of them.
const byteOrderMark = "\xef\xbb\xbf"

// zeroByte is the fault of a line with a zero byte: two-byte text would otherwise be read as names.
const zeroByte = "it has a byte of 0, and is no text in UTF-8"

// bad is the error of an unreadable line.
func bad(s dataset.Source, line int, format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + s.Name, Msg: fmt.Sprintf("line %d: %s", line, fmt.Sprintf(format, args...)),
	}
}
