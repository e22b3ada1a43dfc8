package sparse

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Ratings is a file of `user,item,rating[,time]`, one rating per line. The separator is that of the first line: `::`,
// a tab or a comma, as in MovieLens' files (u.data, ratings.dat, ratings.csv), or a semicolon. A first line without a
// number as its rating is a header, unless its user is a number: then it is damaged. Users and items may have any
// names.
type Ratings struct {
	dataset.Source
	HeldOut HeldOut
}

// Input reads the file once to count users and items, which get numbers in order of appearance. It returns Invalid
// for an unreadable line.
func (r Ratings) Input(name string) (in dataset.SparseInput, err error) {
	if err := r.HeldOut.check(); err != nil {
		return in, err
	}
	users, items := map[string]int32{}, map[string]int32{}
	held, u := r.HeldOut.picker(), dataset.Interpretation{}
	layout, err := r.rows(func(line int, row rating) error {
		count(users, row.user)
		count(items, row.item)
		if u.Example.Place == "" {
			u.Example = row.example(line)
		}
		if held.next(int(users[string(row.user)])) {
			u.HeldOut++
		} else {
			u.Rows++
		}
		if len(users)+len(items) >= math.MaxInt32 {
			return bad(r.Source, line, "there are more users and items than can be counted")
		}
		return nil
	})
	if err != nil {
		return in, err
	}
	in = dataset.SparseInput{
		Name: name, Title: "Ratings of " + fileName(r.Name), Classes: 1, Ones: true, Users: len(users), Items: len(items),
		Columns: len(users) + len(items),
	}
	u.Kind = "ratings, " + layout
	u.Values = fmt.Sprintf("a rating is by one of %s, of one of %s", disdel.Counted(len(users), "user"),
		disdel.Counted(len(items), "item"))
	in.Understood = u
	first := int32(len(users))
	in.Each = func(yield func(dataset.SparseRow) error) error {
		held := r.HeldOut.picker()
		index := make([]int32, 2)
		_, err := r.rows(func(line int, row rating) error {
			user, known := users[string(row.user)]
			item, too := items[string(row.item)]
			if !known || !too {
				return bad(r.Source, line, "the file has changed while it was read")
			}
			index[0], index[1] = user, first+item
			return yield(dataset.SparseRow{Index: index, Target: row.value, HeldOut: held.next(int(user))})
		})
		return err
	}
	return in, nil
}

// count gives a name the next number, unless it has one.
func count(counts map[string]int32, name []byte) {
	if _, known := counts[string(name)]; !known {
		counts[string(name)] = int32(len(counts))
	}
}

// rating is one line. It is valid until the next.
type rating struct {
	user, item []byte
	value      float32
}

// example is the line as people see it.
func (r *rating) example(line int) dataset.Example {
	return dataset.Example{
		Place: fmt.Sprintf("line %d", line), Class: fmt.Sprint(r.value),
		Values: []string{"user " + string(r.user), "item " + string(r.item)},
	}
}

// rows calls f with each rating. layout describes the lines: "separated by tabs, without a header".
func (r Ratings) rows(f func(line int, row rating) error) (layout string, err error) {
	var separator []byte
	begun, named := false, false
	err = lines(r.Source, func(at int, line []byte) error {
		if !begun {
			separator = separatorOf(line)
		}
		user, rest, _ := bytes.Cut(line, separator)
		item, rest, two := bytes.Cut(rest, separator)
		text, _, _ := bytes.Cut(rest, separator)
		v, ok := number(bytes.TrimSpace(text))
		_, numbered := number(plain(user))
		header := !begun && !ok && two && !numbered
		begun, named = true, named || header
		user, item = plain(user), plain(item)
		switch {
		case header:
			return nil
		case !two || len(user) == 0 || len(item) == 0:
			return bad(r.Source, at, "%.60q is no user, item and rating", line)
		case !ok:
			return bad(r.Source, at, "the rating %.40q is no number", text)
		}
		return f(at, rating{user, item, v})
	})
	return layoutOf(string(separator), named), err
}

// layoutOf describes the lines of a file.
func layoutOf(separator string, named bool) string {
	by := map[string]string{"\t": "tabs", ",": "commas", ";": "semicolons", " ": "spaces", "|": "bars"}[separator]
	if by == "" {
		by = separator
	}
	if named {
		return "separated by " + by + ", with a header"
	}
	return "separated by " + by + ", without a header"
}

// separatorOf is the separator of a line's fields.
func separatorOf(line []byte) []byte {
	for _, s := range []string{"::", "\t", ",", ";"} {
		if bytes.Contains(line, []byte(s)) {
			return []byte(s)
		}
	}
	return []byte(" ")
}

// plain removes blanks and quotes around a field.
func plain(text []byte) []byte {
	text = bytes.TrimSpace(text)
	if n := len(text); n > 1 && text[0] == '"' && text[n-1] == '"' {
		return text[1 : n-1]
	}
	return text
}

func fileName(name string) string { return filepath.Base(name) }
