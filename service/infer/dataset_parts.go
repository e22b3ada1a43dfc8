package infer

import (
	"context"
	"fmt"
	"path"

	"golang.org/x/sync/errgroup"

	"github.com/disdel/disdel"
)

// Bounds of one infer action. It writes at most mostAnswers bytes of answers. It computes at most mostProducts
// products, a few minutes for the slowest engine. Below leastRows rows another action is not worth its start. Below
// fewRows rows engines add in another order.
const (
	mostAnswers  = 16 << 20
	mostProducts = 100e9
	leastRows    = 256
	fewRows      = 16
)

// rowsOfAction is how many of n rows an action answers for; sample and answer are bytes and products operations of each
// row. They are never few, unless n is small: the answer for a row must not depend on the division.
func rowsOfAction(n, sample, answer int, products int64) int {
	maximum := min(maxInputs/max(1, sample), mostAnswers/answer)
	if products > 0 {
		maximum = min(maximum, int(mostProducts/float64(products)))
	}
	return min(n, max(fewRows, min(maximum, max(leastRows, (n+inferAtOnce-1)/inferAtOnce))))
}

// parts is how many actions answer for the rows.
func (d *dataRows) parts() int { return (d.Rows.Len() + d.rows - 1) / d.rows }

// answer has the actions answer for the rows, and gives the answers to the sink.
func (q *query) answer(ctx context.Context, d dataRows, to DataSink, out *DataAnswers, keep bool) error {
	n := d.parts()
	parts, results := make([]chan disdel.AnswersRef, n), make([]Result, n)
	for i := range parts {
		parts[i] = make(chan disdel.AnswersRef, 1)
	}
	g, work := errgroup.WithContext(ctx)
	g.SetLimit(q.atOnce + 1)
	g.Go(func() error { // takes the answers in the order of the rows
		for i, part := range parts {
			select {
			case ref := <-part:
				if err := q.take(work, ref, i*d.rows, to, out, keep); err != nil {
					return err
				}
			case <-work.Done():
				return nil // the action that failed returns why
			}
		}
		return nil
	})
	for i := range parts {
		g.Go(func() error {
			if work.Err() != nil {
				return nil
			}
			ref, err := q.answerPart(work, i, d, &results[i])
			if err == nil {
				parts[i] <- ref
			}
			return err
		})
	}
	err := g.Wait()
	if ctx.Err() != nil { // other errors come from that
		err = &disdel.Error{Kind: disdel.Canceled, Op: "infer", Err: context.Cause(ctx)}
	}
	for _, p := range results {
		out.Actions = append(out.Actions, p.Actions...)
	}
	return err
}

// answerPart has an action answer for some of the rows. Each attempt writes its own file, so that a late attempt does
// no harm.
func (q *query) answerPart(
	ctx context.Context, n int, d dataRows, out *Result,
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
		return ref, addRows(err, d.head, n*d.rows, n*d.rows+part.Rows.Len())
	case res.Answers == nil || res.Answers.Rows != part.Rows.Len() || path.Dir(res.Answers.Key) != q.folder:
		return ref, &disdel.Error{
			Kind: disdel.Internal, Op: "infer", Msg: "an action that was asked about rows of a data set did not answer for them",
			Hint: "its runtime is of an earlier version: deploy this one's",
		}
	}
	return *res.Answers, nil
}

// addRows adds to a failure which rows it is about.
func addRows(err error, head DataHead, from, until int) error {
	e := *disdel.AsError(err)
	if e.Kind == disdel.Canceled {
		return err
	}
	e.Msg = fmt.Sprintf("rows %d to %d (%s) of %s: %s", from, until-1, head.Part, head.Dataset, e.Msg)
	return &e
}

// take gives the answers of a file to the sink, and deletes the file unless it is kept.
func (q *query) take(ctx context.Context, ref disdel.AnswersRef, first int, to DataSink, out *DataAnswers, keep bool,
) error {
	if keep {
		out.Answers = append(out.Answers, ref)
	}
	network, numbers := &q.request.Network, max(1, len(out.Targets))
	a, err := q.shelf.ReadAnswers(ctx, ref, out.Classes, numbers)
	if err != nil {
		return err
	}
	row := DataRow{Row: first}
	switch {
	case out.Classes > 0:
		row.Classified = new(Classified)
	case len(out.Targets) > 0:
		row.Numbers = new(Numbers)
	default:
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
		} else if v := row.Numbers; v != nil {
			at, end := i*numbers, (i+1)*numbers
			v.Values, v.Given = network.Values(a.Predictions[at:end]), network.Values(a.Targets[at:end])
			if network.MultiLabel() {
				v.Yes = network.LabelsOf(a.Predictions[at:end])
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
