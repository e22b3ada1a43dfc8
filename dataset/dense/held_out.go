package dense

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// HeldOut says which rows of a table without a file of held-out rows are held out. Same files and numbers hold out the
// same rows.
type HeldOut struct {
	Share float64 // of the rows, above 0 and at most 0.5
	// Group is the name or number of a column. Rows with the same text in it are all held out or all for training, and the
	// column is no input. With "" the share is that of each class, up to one row, and each class has a training row.
	Group string
	Seed  int64
}

// mostGroups limits the memory for rows of groups to some 20 MB. Tables with more groups hold out an estimated share.
const mostGroups = 1 << 19

// heldOutRows decides row by row which ones are held out, in the same way at each reading.
type heldOutRows struct {
	HeldOut
	group   int // its column, -1: classes keep their shares
	limit   uint64
	classes map[string]*classRows // by the text of the label
}

// classRows counts the rows of a class. Of each window of rows one is held out.
type classRows struct {
	name          string // the usual spelling of the label
	rows, windows int
	end, heldOut  int // of the current window: the row after it, and the one that is held out
}

// begin starts a reading.
func (h *heldOutRows) begin() { h.classes = map[string]*classRows{} }

// hash is a random number of a text that depends on the seed and on a number.
func (h *heldOutRows) hash(text string, n int) uint64 {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%d %d %s", h.Seed, n, text) //nolint:errcheck // into memory
	x := sum.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // the finaliser of SplitMix64: similar texts get unlike numbers
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// holds tells whether the next row of the file is held out.
func (h *heldOutRows) holds(label int, cells []cell) bool {
	if h.group >= 0 {
		return h.hash(cells[h.group].text, 0) <= h.limit
	}
	return h.holdsClass(cells[label].text)
}

// holdsClass tells whether the next row of a class is held out, by the text of its label.
func (h *heldOutRows) holdsClass(text string) bool {
	c := h.classes[text]
	if c == nil {
		name := canonical(text)
		if c = h.classes[name]; c == nil {
			c = &classRows{name: strings.Clone(name)}
			h.classes[c.name] = c
		}
		if len(h.classes) < 2*mostClasses { // more texts are no classes, and a later check says so
			h.classes[strings.Clone(text)] = c
		}
	}
	if c.rows == c.end {
		h.nextWindow(c)
	}
	c.rows++
	return c.rows-1 == c.heldOut
}

// nextWindow draws the held-out row of the next rows of a class. It is never the first row of the class.
func (h *heldOutRows) nextWindow(c *classRows) {
	start := c.end
	c.windows++
	c.end = int(math.Ceil(float64(c.windows)/h.Share - 1e-9))
	first := max(start, 1)
	c.heldOut = first + int(h.hash(c.name, c.windows)%uint64(c.end-first))
}

// chooseHeldOut finds the column of groups, and decides which groups are held out.
func (t *table) chooseHeldOut() error {
	if t.HeldOut == nil {
		return nil
	}
	h := &heldOutRows{HeldOut: *t.HeldOut, group: -1}
	if h.Group == "" {
		t.held = h
		return nil
	}
	at, err := t.find(h.Group)
	if err != nil {
		return err
	}
	if at == t.label || t.columns[at].target {
		return t.heldOutFault(fmt.Sprintf("the groups are in %s, which is the %s", t.names[at], t.what()),
			"name another column: --group COLUMN")
	}
	t.columns[at].passed = isGroup
	h.group = at
	if err := t.limitGroups(h); err != nil {
		return err
	}
	t.held = h
	return nil
}

// isGroup is why the column of groups is no value of a row.
const isGroup = "it tells groups of rows apart"

// limitGroups reads the groups, and sets the largest hash of a held-out one, so that the held-out rows come closest to
// the share. At least one group is on each side.
func (t *table) limitGroups(h *heldOutRows) error {
	groups, all := map[uint64]int{}, 0
	wrong := &faults{file: t.Name}
	err := t.rows(t.Source, wrong, func(r row) error {
		all++
		if len(groups) <= mostGroups {
			groups[h.hash(r.cells[h.group].text, 0)]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(groups) > mostGroups {
		h.limit = uint64(h.Share * math.MaxUint64)
		return nil
	}
	hashes := slices.Sorted(maps.Keys(groups))
	if len(hashes) < 2 && wrong.err() == nil && all > 0 {
		return t.heldOutFault(fmt.Sprintf("all rows are in one group of %s", t.names[h.group]),
			"name a column with several groups: --group COLUMN")
	}
	want, rows := h.Share*float64(all), 0
	for i := 0; i+1 < len(hashes); i++ {
		before := float64(rows)
		rows += groups[hashes[i]]
		if i > 0 && math.Abs(float64(rows)-want) > math.Abs(before-want) {
			break
		}
		h.limit = hashes[i]
	}
	return nil
}

func (t *table) heldOutFault(msg, hint string) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "read " + t.Name, Msg: msg, Hint: hint}
}

const shareHint = "--held-out takes a share above 0, at most 0.5"

// shareFault says why the share cannot be held out, "" if it can.
func (h *HeldOut) shareFault() string {
	if h.Share > 0 && h.Share <= 0.5 {
		return ""
	}
	return fmt.Sprintf("a share of %g cannot be held out", h.Share)
}

// Of holds out the share of each class of arrays, pictures or texts, up to one row; each class has a training row. It
// returns Invalid for a share or rows that it cannot divide: rows in groups, without classes, with held-out rows of
// their own, or with too few rows of every class. For tables see CSV.HeldOut.
func (h HeldOut) Of(in dataset.DenseInput) (dataset.DenseInput, error) {
	if why, hint := h.faultOf(&in); why != "" {
		return in, &disdel.Error{Kind: disdel.Invalid, Op: "hold out rows of " + in.Name, Msg: why, Hint: hint}
	}
	rows := func() *heldOutRows { return &heldOutRows{HeldOut: h, group: -1, classes: map[string]*classRows{}} }
	counting, u := rows(), &in.Understood
	u.Classes = slices.Clone(u.Classes)
	for label := range u.Classes {
		name, c := strconv.Itoa(label), &u.Classes[label]
		for range c.Rows {
			if counting.holdsClass(name) {
				c.Rows--
				u.Rows--
				u.HeldOut++
			}
		}
	}
	if u.HeldOut == 0 {
		return in, &disdel.Error{
			Kind: disdel.Invalid, Op: "hold out rows of " + in.Name, Msg: "its classes have too few rows to hold out any",
			Hint: "hold out a larger share, or add rows",
		}
	}
	u.Kind += counting.rule()
	each := in.Each
	in.Each = func(yield func(dataset.DenseRow) error) error {
		held := rows()
		return each(func(row dataset.DenseRow) error {
			row.HeldOut = held.holdsClass(strconv.Itoa(int(row.Label)))
			return yield(row)
		})
	}
	return in, nil
}

// faultOf says why rows cannot be divided, "" if they can.
func (h *HeldOut) faultOf(in *dataset.DenseInput) (why, hint string) {
	switch {
	case h.shareFault() != "":
		return h.shareFault(), shareHint
	case h.Group != "":
		return "its rows have no column " + h.Group + " of groups", "give the held-out groups as files of their own"
	case in.NextToken || len(in.Targets) > 0:
		return "its rows have no classes that could keep their shares", "each job draws its held-out rows (data.split)"
	case in.Understood.HeldOut > 0:
		return "the held-out rows are in files of their own", "leave those files out, or the rule that holds out rows"
	default:
		return "", ""
	}
}

// checkHeldOut returns Invalid for a rule that holds out no rows of the table.
func (c *CSV) checkHeldOut() error {
	bad := func(msg, hint string) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "read " + c.Name, Msg: msg, Hint: hint}
	}
	switch h := c.HeldOut; {
	case h == nil:
		return nil
	case h.shareFault() != "":
		return bad(h.shareFault(), shareHint)
	case c.Test != nil:
		return bad("the held-out rows are in a file of their own", "leave that file out, or the rule that holds out rows")
	case h.Group == "" && len(c.Targets) > 0:
		return bad("rows with numbers to predict or several labels have no classes that could keep their shares",
			"leave --stratify out: each job draws its held-out rows (data.split)")
	default:
		return nil
	}
}

// heldOutRule says how rows were held out, for a person.
func (t *table) heldOutRule() string {
	if t.held.group < 0 {
		return t.held.rule()
	}
	share := fmt.Sprintf("%.4g %%", 100*t.held.Share)
	return "; about " + share + " are held out, as whole groups of " + t.names[t.held.group]
}

// rule says how the rows of classes are held out.
func (h *heldOutRows) rule() string {
	return fmt.Sprintf("; %.4g %% of each class are held out", 100*h.Share)
}

// heldOutPart is the source of the held-out rows: their own file, or the only file with a rule.
func (t *table) heldOutPart() *dataset.Source {
	if t.held != nil {
		return &t.Source
	}
	return t.Test
}
