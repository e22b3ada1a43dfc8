package actions

import (
	"cmp"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
)

// ranked collects the predictions of held-out rows with targets of 0 and 1, to compute the AUC. A prediction is a
// positive float32; its sign holds the target. nil collects nothing.
type ranked []float32

// rankedFor makes a ranked for so many rows if the evaluation needs one, else nil.
func rankedFor(req disdel.EvaluateRequest, rows int) *ranked {
	if req.Network.Sparse == nil || req.Network.Classes != 2 {
		return nil
	}
	r := make(ranked, 0, rows)
	return &r
}

func (r *ranked) add(scores, targets []float32) {
	if r == nil {
		return
	}
	for i, s := range scores[:len(targets)] {
		s = max(s, math.SmallestNonzeroFloat32) // a zero has no sign that counts
		if targets[i] < 0.5 {
			s = -s
		}
		*r = append(*r, s)
	}
}

// scores are the figures of a sparse model's evaluation besides its loss.
func (r *ranked) scores(req disdel.EvaluateRequest, loss float64) (s disdel.Scores) {
	switch {
	case req.Network.Sparse == nil:
	case r != nil:
		s.AUC = r.auc()
	default:
		s.RMSE = math.Sqrt(loss)
	}
	return s
}

// auc is the chance that a row with target 1 has a higher prediction than one with target 0; ties count half (Mann and
// Whitney 1947). It is 0 if one of the targets is missing. It sorts the predictions.
func (r *ranked) auc() float64 {
	all := *r
	slices.SortFunc(all, func(a, b float32) int { return cmp.Compare(max(a, -a), max(b, -b)) })
	var below, pairs, positives float64 // of 0; won, and of 1
	for from := 0; from < len(all); {
		until, ones := from, 0.0
		for until < len(all) && max(all[until], -all[until]) == max(all[from], -all[from]) {
			if all[until] > 0 {
				ones++
			}
			until++
		}
		zeros := float64(until-from) - ones
		pairs += ones * (below + zeros/2)
		below, positives, from = below+zeros, positives+ones, until
	}
	if below == 0 || positives == 0 {
		return 0
	}
	return pairs / (below * positives)
}

// inferRows is the batch size of an infer action's engine.
func inferRows(req *disdel.InferRequest, n int) int {
	if d := req.Dataset; d != nil && d.Batch > 0 {
		n = d.Batch
	}
	if req.ByLayers > 0 {
		n = min(n, req.ByLayers)
	}
	if s := req.Sparse; s != nil {
		n = len(s.Rows)
		if len(s.Users) > 0 {
			n = inferBatch
		}
	}
	return max(1, min(n, inferBatch))
}

// answerSparse answers a request to a model of sparse rows.
func answerSparse(e engine.Engine, req disdel.InferRequest) (res disdel.InferResult, err error) {
	for start := 0; start < len(req.Sparse.Rows); start += inferBatch {
		rows := req.Sparse.Rows[start:min(start+inferBatch, len(req.Sparse.Rows))]
		b, err := sparseBatch(rows, req.Network)
		if err != nil {
			return res, err
		}
		p, err := e.Predict(b)
		if err != nil {
			return res, err
		}
		res.Predictions = append(res.Predictions, p.Values...)
	}
	for _, user := range req.Sparse.Users {
		r, err := recommend(e, req, user)
		if err != nil {
			return res, err
		}
		res.Recommendations = append(res.Recommendations, r)
	}
	return res, nil
}

// sparseBatch makes a batch of rows. If all entries are 1 they are left out.
func sparseBatch(rows []disdel.SparseRow, n disdel.Network) (b dataset.Batch, err error) {
	in := &b.Input
	in.Rows, in.Columns, in.Start = len(rows), n.Input[0], []int32{0}
	ones := !slices.ContainsFunc(rows, func(r disdel.SparseRow) bool { return len(r.Value) > 0 })
	for i, r := range rows {
		if len(r.Value) > 0 && len(r.Value) != len(r.Index) || len(r.Index) > n.Sparse.Most {
			return b, &disdel.Error{
				Kind: disdel.Invalid, Op: "infer", Msg: "a row has other values than columns, or more than any row of the data",
			}
		}
		in.Index = append(in.Index, r.Index...)
		in.Start = append(in.Start, int32(len(in.Index)))
		for k := range r.Index {
			switch {
			case ones:
			case len(rows[i].Value) == 0:
				in.Values = append(in.Values, 1)
			default:
				in.Values = append(in.Values, r.Value[k])
			}
		}
	}
	return b, nil
}

// mostTop is the largest number of items to recommend to a user.
const mostTop = 1000

// recommend returns the items with the highest predicted ratings of a user.
func recommend(e engine.Engine, req disdel.InferRequest, user int) (r disdel.Recommended, err error) {
	n := req.Network.Sparse
	if n.Users == 0 || user < 0 || user >= n.Users || req.Sparse.Top < 1 {
		return r, &disdel.Error{
			Kind: disdel.Invalid, Op: "recommend", Msg: "there is no such user, or nothing is asked for",
			Hint: "users have numbers from 0, of a model of ratings",
		}
	}
	r.User = user
	scores := make([]float32, 0, n.Items)
	rows := make([]disdel.SparseRow, 0, inferBatch)
	for item := 0; item < n.Items; item += inferBatch {
		rows = rows[:0]
		for i := item; i < min(item+inferBatch, n.Items); i++ {
			rows = append(rows, disdel.SparseRow{Index: []int32{int32(user), int32(n.Users + i)}})
		}
		b, err := sparseBatch(rows, req.Network)
		if err != nil {
			return r, err
		}
		p, err := e.Predict(b)
		if err != nil {
			return r, err
		}
		scores = append(scores, p.Values...)
	}
	items := make([]int, len(scores))
	for i := range items {
		items[i] = i
	}
	slices.SortStableFunc(items, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	for _, item := range items[:min(req.Sparse.Top, mostTop, len(items))] {
		r.Items, r.Scores = append(r.Items, item), append(r.Scores, scores[item])
	}
	return r, nil
}
