package sparse

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// check refuses rows, and with targets set targets, that do not fit (Invalid) or are not finite (Diverged).
func (e *Engine) check(op string, b *dataset.Batch, targets bool) error {
	in := &b.Input
	bad := func(format string, args ...any) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf(format, args...)}
	}
	n := len(in.Index)
	switch {
	case in.Rows < 1 || in.Rows > e.layout.spec.BatchSize || len(in.Start) != in.Rows+1:
		return bad("%d rows with %d starts, at most %d rows a batch", in.Rows, len(in.Start), e.layout.spec.BatchSize)
	case in.Start[0] != 0 || int(in.Start[in.Rows]) != n || in.Values != nil && len(in.Values) != n:
		return bad("%d columns and %d values of entries %d to %d", n, len(in.Values), in.Start[0], in.Start[in.Rows])
	case n > e.layout.entries:
		return bad("%d entries in %d rows, and the engine was made for %d", n, in.Rows, e.layout.entries)
	case targets && len(b.Target.Values) != in.Rows:
		return bad("%d targets for %d rows", len(b.Target.Values), in.Rows)
	}
	for r := range in.Rows {
		if in.Start[r] > in.Start[r+1] {
			return bad("row %d ends before it begins", r)
		}
	}
	checked := in.Checked && in.Columns == e.g.Input()[0]
	if err := e.checkColumns(bad, in, checked); err != nil {
		return err
	}
	if (checked || allFinite(in.Values)) && (!targets || allFinite(b.Target.Values)) {
		return e.checkTargets(bad, b, targets)
	}
	return &disdel.Error{
		Kind: disdel.Diverged, Op: op, Msg: "an entry or a target of the batch is not finite",
		Hint: "check the data for NaN and infinities",
	}
}

func (e *Engine) checkColumns(bad func(string, ...any) error, in *dataset.Matrix, checked bool) error {
	columns := uint32(e.g.Input()[0])
	if !checked {
		for _, c := range in.Index {
			if uint32(c) >= columns {
				return bad("column %d of %d", c, columns)
			}
		}
	}
	if e.net.Users == 0 {
		return nil
	}
	if in.Values != nil {
		return bad("ratings have no values but their targets")
	}
	for r := range in.Rows {
		at := in.Start[r]
		if in.Start[r+1]-at != 2 || int(in.Index[at]) >= e.net.Users || int(in.Index[at+1]) < e.net.Users {
			return bad("row %d is no user and an item", r)
		}
	}
	return nil
}

func (e *Engine) checkTargets(bad func(string, ...any) error, b *dataset.Batch, targets bool) error {
	if !targets || !e.probability {
		return nil
	}
	for r, y := range b.Target.Values {
		if y < 0 || y > 1 {
			return bad("the target of row %d is %v, and not from 0 to 1", r, y)
		}
	}
	return nil
}

func allFinite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}
