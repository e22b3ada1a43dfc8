package dense

import (
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// learn reads the rows to learn from, for what has to be known of all of them.
func (t *table) learn() error {
	wrong := &faults{file: t.Name}
	err := t.rows(t.Source, wrong, func(r row) error {
		if t.first.line == 0 {
			t.first.line, t.first.record = r.line, cloned(r.cells)
		}
		t.learned++
		for i := range t.columns {
			if c := &t.columns[i]; c.passed == "" {
				c.add(r.line, &r.cells[i])
			}
		}
		if label := &r.cells[t.label]; label.kind == aGap {
			wrong.at(r.line, t.label+1, t.names[t.label], "its label is missing")
		} else {
			t.labels.add(label.text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if t.learned == 0 && wrong.err() == nil {
		wrong.at(0, 0, "rows", "there are none")
	}
	t.decide(wrong)
	slices.SortStableFunc(wrong.list, func(a, b disdel.Fault) int { return a.Line - b.Line })
	return wrong.err()
}

// cloned is a record that lasts.
func cloned(cells []cell) []string {
	out := make([]string, len(cells))
	for i := range cells {
		out[i] = strings.Clone(cells[i].text)
	}
	return out
}

// decide settles what all columns are.
func (t *table) decide(wrong *faults) {
	t.labels.close()
	if why := t.labels.fault(); why != "" && t.learned > 0 {
		wrong.add(disdel.Fault{
			Path: t.names[t.label], Msg: "the label: " + why, Hint: "name the label's column: --label COLUMN",
		})
	} else if why := t.labels.numeric(t.LabelClasses); why != "" {
		wrong.add(disdel.Fault{
			Path: t.names[t.label], Msg: "the label: " + why,
			Hint: dataset.NumericTargetHint + "; if another column has the class: --label COLUMN",
		})
	}
	inBytes := true
	for i := range t.columns {
		c := &t.columns[i]
		c.close(i, wrong)
		inBytes = inBytes && (c.passed != "" || c.inBytes())
	}
	scale := t.Scale
	if scale == "" && t.Shape != nil {
		scale = AsIs
	}
	if scale == "" {
		scale = Standard
	}
	t.bytes = t.Shape != nil && scale == AsIs && inBytes
	for i := range t.columns {
		t.columns[i].scale(scale)
	}
	t.Scale = scale
	width := t.width()
	switch {
	case t.Shape != nil && width != product(t.Shape):
		wrong.at(0, 0, "columns", "a row has %d values, and shape %v needs %d", width, t.Shape, product(t.Shape))
	case width == 0 && t.learned > 0 && len(wrong.list) == 0:
		wrong.at(0, 0, "columns", "none is left beside the label")
	case width > mostValues:
		wrong.at(0, 0, "columns", "a row has %d values, and %d are the most", width, mostValues)
	}
}

func product(shape []int) int {
	n := 1
	for _, v := range shape {
		n *= v
	}
	return n
}

// test reads the held-out rows for what is wrong with them.
func (t *table) test() error {
	wrong := &faults{file: t.Test.Name}
	err := t.rows(*t.Test, wrong, func(r row) error {
		t.tested++
		t.unknown += r.strangers
		if r.why != "" {
			wrong.at(r.line, r.at+1, t.names[r.at], "%s", r.why)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if t.tested == 0 && wrong.err() == nil {
		wrong.at(0, 0, "rows", "there are none")
	}
	return wrong.err()
}

// each gives the rows.
func (t *table) each(yield func(dataset.DenseRow) error) error {
	if err := t.part(t.Source, false, yield); err != nil || t.Test == nil {
		return err
	}
	return t.part(*t.Test, true, yield)
}

func (t *table) part(from dataset.Source, heldOut bool, yield func(dataset.DenseRow) error) error {
	wrong := &faults{file: from.Name}
	out := dataset.DenseRow{HeldOut: heldOut}
	err := t.rows(from, wrong, func(r row) error {
		if r.why != "" { // it was read before without this
			wrong.at(r.line, r.at+1, t.names[r.at], "%s; the file has changed meanwhile", r.why)
			return wrong.err()
		}
		out.Label = r.class
		if t.bytes {
			out.Bytes = out.Bytes[:0]
			for _, v := range r.values {
				out.Bytes = append(out.Bytes, byte(v))
			}
		} else {
			out.Values = r.values
		}
		return yield(out)
	})
	if err == nil {
		err = wrong.err()
	}
	return err
}
