package service

import (
	"context"
	"fmt"
	"path"

	"golang.org/x/sync/errgroup"

	"github.com/disdel/disdel"
)

// Bounds of what an infer action does of a data set: answers that it writes, products that it computes, a few minutes'
// worth on the slowest of engines, the rows below which one more action is not worth its start, and those below which
// engines add up in another order.
const (
	mostAnswers  = 16 << 20
	mostProducts = 100e9
	leastRows    = 256
	fewRows      = 16
)

// rowsOfAction is how many of n rows an action answers for, of so many bytes, answers and products each. They are never
// few unless all are: what is said of a row does not depend on how the rows are divided.
func rowsOfAction(n, sample, answer int, products int64) int {
	most := min(maxInputs/max(1, sample), mostAnswers/answer)
	if products > 0 {
		most = min(most, int(mostProducts/float64(products)))
	}
	return min(n, max(fewRows, min(most, max(leastRows, (n+inferAtOnce-1)/inferAtOnce))))
}

// parts is how many actions answer for the rows.
func (d *dataAsk) parts() int { return (d.Rows.Len() + d.rows - 1) / d.rows }

// answer has actions answer for the rows, and the sink take what they say.
func (q *question) answer(ctx context.Context, d dataAsk, to DataSink, out *DataAnswers, keep bool) error {
	n := d.parts()
	parts, said := make([]chan disdel.AnswersRef, n), make([]Inference, n)
	for i := range parts {
		parts[i] = make(chan disdel.AnswersRef, 1)
	}
	g, work := errgroup.WithContext(ctx)
	g.SetLimit(q.atOnce + 1)
	g.Go(func() error { // who takes the answers, in the order of the rows
		for i, part := range parts {
			select {
			case ref := <-part:
				if err := q.take(work, ref, i*d.rows, to, out, keep); err != nil {
					return err
				}
			case <-work.Done():
				return nil // whoever failed says why
			}
		}
		return nil
	})
	for i := range parts {
		g.Go(func() error {
			if work.Err() != nil {
				return nil
			}
			ref, err := q.answerPart(work, i, d, &said[i])
			if err == nil {
				parts[i] <- ref
			}
			return err
		})
	}
	err := g.Wait()
	if ctx.Err() != nil { // whatever else went wrong by it
		err = &disdel.Error{Kind: disdel.Canceled, Op: "infer", Err: context.Cause(ctx)}
	}
	for _, p := range said {
		out.Actions = append(out.Actions, p.Actions...)
	}
	return err
}

// answerPart has an action answer for some of the rows. Each attempt writes a file of its own: one that is late spoils
// nothing.
func (q *question) answerPart(
	ctx context.Context, n int, d dataAsk, out *Inference,
) (ref disdel.AnswersRef, err error) {
	part := d.DataAsk
	part.Batch = min(inferBatch, d.rows)
	part.Rows.Start += n * d.rows
	part.Rows.End = min(part.Rows.Start+d.rows, d.Rows.End)
	res, err := q.run(ctx, n, func(attempt int) disdel.InferRequest {
		request, ask := q.request, part
		ask.Answers = path.Join(q.folder, fmt.Sprintf("%06d-%d.safetensors", n, attempt))
		request.Dataset = &ask
		return request
	}, out)
	switch {
	case err != nil:
		return ref, ofRows(err, d.head, n*d.rows, n*d.rows+part.Rows.Len())
	case res.Answers == nil || res.Answers.Rows != part.Rows.Len() || path.Dir(res.Answers.Key) != q.folder:
		return ref, &disdel.Error{
			Kind: disdel.Internal, Op: "infer", Msg: "an action that was asked about rows of a data set did not answer for them",
			Hint: "its runtime is of an earlier version: deploy this one's",
		}
	}
	return *res.Answers, nil
}

// ofRows says which rows a failure was about.
func ofRows(err error, head DataHead, from, until int) error {
	e := *disdel.AsError(err)
	if e.Kind == disdel.Canceled {
		return err
	}
	e.Msg = fmt.Sprintf("rows %d to %d (%s) of %s: %s", from, until-1, head.Part, head.Dataset, e.Msg)
	return &e
}

// take hands the answers of a file over, and deletes it unless it is to be kept.
func (q *question) take(ctx context.Context, ref disdel.AnswersRef, first int, to DataSink, out *DataAnswers, keep bool,
) error {
	if keep {
		out.Answers = append(out.Answers, ref)
	}
	a, err := q.shelf.ReadAnswers(ctx, ref, out.Classes)
	if err != nil {
		return err
	}
	row := Answered{Row: first}
	if out.Classes > 0 {
		row.Classified = new(Classified)
	} else {
		row.Predicted = new(Predicted)
	}
	for i := range ref.Rows {
		row.Row = first + i
		if c := row.Classified; c != nil {
			c.Class, c.Label = int(a.Classes[i]), a.Labels[i]
			c.Probabilities = a.Probabilities[i*out.Classes : (i+1)*out.Classes]
			if c.Name = ""; c.Class < len(out.Names) {
				c.Name = out.Names[c.Class]
			}
			if int(c.Label) == c.Class {
				out.Right++
			}
		} else {
			row.Prediction, row.Target = a.Predictions[i], a.Targets[i]
		}
		if to == nil {
			continue
		}
		if err := to.Take(row); err != nil {
			return err
		}
	}
	if keep {
		return nil
	}
	return q.shelf.RemoveAnswers(ctx, ref)
}
