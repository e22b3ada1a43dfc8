package infer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset/sparse"
)

// SparseInputs is a request to a model of sparse rows, with the targets of the rows if the file has them.
type SparseInputs struct {
	disdel.SparseAsk
	Targets []float32 // nil: none
}

// sparseHint shows the form of a file of sparse rows.
const sparseHint = `give lines of LIBSVM, or JSON: {"rows": [{"index": [3, 17], "value": [0.5, 1]}]} with the ` +
	`columns of each row, from 0, and their values (1 where they are left out), or of a model of ratings ` +
	`{"users": [0, 4], "top": 10}`

// ReadSparse reads a request to a model of sparse rows: rows in JSON or as LIBSVM has them, or for a model of ratings
// users to recommend items to. It returns Invalid for anything else, and for columns and users that the model does not
// have.
func (t *Model) ReadSparse(name string, data []byte) (in SparseInputs, err error) {
	done, err := t.turn()
	if err != nil {
		return in, err
	}
	defer done()
	if isLibsvm(data) {
		return t.readLibsvm(name, data)
	}
	bad := func(format string, args ...any) (SparseInputs, error) {
		return in, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + name, Msg: fmt.Sprintf(format, args...), Hint: sparseHint,
		}
	}
	var doc struct {
		disdel.SparseAsk
		Targets []float32 `json:"targets"`
	}
	// A row begins with a brace, and takes many times the memory of its text: they are counted first.
	if err := t.checkRows(name, bytes.Count(data, []byte("{"))-1); err != nil {
		return in, err
	}
	if json.Unmarshal(data, &doc) != nil {
		return bad("it is no JSON of rows or users")
	}
	in = SparseInputs{SparseAsk: doc.SparseAsk, Targets: doc.Targets}
	n, columns := t.Network.Sparse, t.Graph.Input()[0]
	switch {
	case (len(in.Rows) > 0) == (len(in.Users) > 0):
		return bad("it has %d rows and %d users, and one of them is asked", len(in.Rows), len(in.Users))
	case len(in.Targets) > 0 && len(in.Targets) != len(in.Rows):
		return bad("there are %d targets for %d rows", len(in.Targets), len(in.Rows))
	case len(in.Users) > 0 && n.Users == 0:
		return bad("%s is no model of ratings, and knows no users", t.Ref())
	case len(in.Users) > 0 && in.Top < 1:
		in.Top = defaultTop
	}
	in.Top = min(in.Top, max(n.Items, 1))
	if err := t.checkRows(name, max(len(in.Rows), len(in.Users)*in.Top)); err != nil {
		return in, err
	}
	for i, r := range in.Rows {
		if len(r.Value) > 0 && len(r.Value) != len(r.Index) {
			return bad("row %d has %d columns and %d values", i, len(r.Index), len(r.Value))
		}
		if len(r.Index) > n.Most {
			return bad("row %d has %d columns, and no row that the model was trained on has more than %d", i, len(r.Index),
				n.Most)
		}
		for _, c := range r.Index {
			if c < 0 || int(c) >= columns {
				return bad("row %d has column %d, and there are %d", i, c, columns)
			}
		}
	}
	for _, u := range in.Users {
		if u < 0 || u >= n.Users {
			return bad("there is no user %d, and they go from 0 to %d", u, n.Users-1)
		}
	}
	return in, nil
}

// isLibsvm tells whether a file has lines of text that are no JSON.
func isLibsvm(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && !isJSON(data) && !json.Valid(data) && bytes.IndexByte(data, 0) < 0
}

// readLibsvm reads rows in the format of LIBSVM. The columns count as in the file of the data set: usually from 1.
func (t *Model) readLibsvm(name string, data []byte) (in SparseInputs, err error) {
	if err := t.checkRows(name, bytes.Count(data, []byte("\n"))); err != nil { // they are counted first, as in JSON
		return in, err
	}
	form := sparse.LibsvmRows{
		Columns: t.Graph.Input()[0], Most: t.Network.Sparse.Most, ClassNames: t.Labels,
		FromZero: t.Data.Sparse != nil && t.Data.Sparse.FromZero,
	}
	answered := true
	err = form.Read(name, data, func(row sparse.LibsvmRow) error {
		in.Rows = append(in.Rows, disdel.SparseRow{Index: row.Index, Value: row.Value})
		in.Targets, answered = append(in.Targets, row.Target), answered && row.HasTarget
		return t.checkRows(name, len(in.Rows))
	})
	if err == nil && len(in.Rows) == 0 {
		err = &disdel.Error{Kind: disdel.Invalid, Op: "read " + name, Msg: "there are no rows", Hint: sparseHint}
	}
	if !answered {
		in.Targets = nil
	}
	return in, err
}

// defaultTop is the default number of recommended items.
const defaultTop = 10

// bytesPerEntry bounds an entry of a sparse row in JSON: a column and a value with their commas. bytesPerRow is the
// rest of a row, and bytesPerUser a user.
const (
	bytesPerEntry = 12 + bytesPerValue
	bytesPerRow   = 32
	bytesPerUser  = 12
	usersAtOnce   = 100 // of one action
)

// InferSparse asks a model of sparse rows. It runs infer actions one after another, with as many rows or users each as
// the platform accepts. Its errors are those of Infer.
func (s *Predictor) InferSparse(ctx context.Context, t *Model, ask disdel.SparseAsk) (out Result, err error) {
	var parts []disdel.SparseAsk
	step := max(1, maxParameters/(bytesPerRow+bytesPerEntry*t.Network.Sparse.Most))
	for rows := range slices.Chunk(ask.Rows, step) {
		parts = append(parts, disdel.SparseAsk{Rows: rows})
	}
	for users := range slices.Chunk(ask.Users, usersAtOnce) {
		parts = append(parts, disdel.SparseAsk{Users: users, Top: ask.Top})
	}
	q, end, err := s.newQuery(ctx, t, estimateInput(t, max(min(step, len(ask.Rows)), inferItems)))
	if err != nil {
		return out, err
	}
	defer end()
	for n, part := range parts {
		request := q.request
		request.Sparse = &part
		res, err := q.run(ctx, n, func(int) disdel.InferRequest { return request }, &out)
		if err != nil {
			return out, err
		}
		out.Predictions = append(out.Predictions, res.Predictions...)
		out.Recommendations = append(out.Recommendations, res.Recommendations...)
	}
	return out, nil
}

// inferItems is the number of rows of which the memory is enough to rank items for a user.
const inferItems = 64

// rowBytes is the memory of a row of a request.
func rowBytes(t *Model) disdel.Bytes {
	if n := t.Network.Sparse; n != nil {
		return disdel.Bytes(bytesPerRow + 8*n.Most)
	}
	return disdel.Bytes(4 * t.Graph.Input().Len())
}
