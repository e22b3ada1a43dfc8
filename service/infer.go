package service

import (
	"context"
	"fmt"
	"path"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
)

// Trained is a trained model that can be asked.
type Trained struct {
	modelstore.Model
	Graph *model.Graph

	// Better is an older version of the model, asked for by its name alone, that is better by much; nil: there is none.
	Better *modelstore.Model

	// MostRows bounds the rows that Read takes at once. MostPixels bounds the pixels of a picture. 0: no bound.
	MostRows, MostPixels int

	large *sync.Mutex // held by whoever reads a large picture; nil: nobody else does
}

// Inference is what a model said of rows.
type Inference struct {
	Classes       []int               // of each row, the most probable one
	Probabilities [][]float32         // [rows classes]
	Actions       []disdel.Activation // that worked it out

	Predictions     []float32            // of each row, of a model of sparse rows
	Recommendations []disdel.Recommended // of each user who was asked for
}

// muchBetter is how much accuracy is worth a word.
const muchBetter = 0.02

// Trained finds a trained model: NAME for its newest version, NAME:vN for one. It returns NotFound, Corrupt.
func (s *Service) Trained(ctx context.Context, ref string) (*Trained, error) {
	models, err := s.Models(ctx)
	if err != nil {
		return nil, err
	}
	m, err := models.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	g, err := model.Build(m.Network) // before anything is computed with what a file says
	if err != nil {
		return nil, err
	}
	t := &Trained{Model: m, Graph: g, large: &s.large}
	if ref != m.Name {
		return t, nil
	}
	list, _ := models.Versions(ctx, m.Name) // what cannot be read is not compared
	if best, ok := modelstore.Best(list); ok && m.Data.HeldOut > 0 && best.Accuracy-m.Accuracy >= muchBetter {
		t.Better = &best
	}
	return t, nil
}

// Read reads rows for the model from JSON, .npy, .csv or a picture, see ReadInputs. For one whose job resized its
// images (data.resize) they may be of any size, that of the data set for one: they are resized in the same way.
func (t *Trained) Read(name string, data []byte) (Inputs, error) {
	if n := picturePixels(data); t.MostPixels > 0 && n > t.MostPixels {
		return Inputs{}, &disdel.Error{
			Kind: disdel.OverLimit, Op: "read " + name,
			Msg:  fmt.Sprintf("it has %d pixels, and a request may have %d", n, t.MostPixels),
			Hint: "make the picture smaller: the model takes " + t.Graph.Input().Text(),
		}
	} else if t.large != nil && n > largePicture {
		t.large.Lock()
		defer t.large.Unlock()
	}
	in, err := readInputs(name, data, t.Graph.Input(), t.Data.Resize)
	if err == nil {
		err = t.checkRows(name, len(in.Rows))
	}
	return in, err
}

// checkRows returns OverLimit for more rows than MostRows.
func (t *Trained) checkRows(name string, rows int) error {
	if t.MostRows == 0 || rows <= t.MostRows {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.OverLimit, Op: "read " + name,
		Msg:  fmt.Sprintf("it asks for %d rows, and a request may ask for %d of this model", rows, t.MostRows),
		Hint: "ask for fewer rows at once, or add them as a data set and ask for its rows",
	}
}

// Doubt says that rows are far from what the model has seen, "" if they are not or nothing is known.
func (t *Trained) Doubt(rows [][]float32) string { return outOfRange(rows, t.Inputs) }

// What keeps invocations and their answers below OpenWhisk's 1 MB, with room for the other fields.
const (
	maxParameters = 900 << 10
	maxAnswer     = 900 << 10
	bytesPerValue = 16 // the most that a float32 takes in JSON with its comma
	bytesPerClass = 24 // the most that a class' number takes
)

// maxInputs is the most of inputs that one action reads from the blob store.
const maxInputs = 32 << 20

// inferAtOnce is how many infer actions run side by side at most: what they share is the machine, and a job may run.
const inferAtOnce = 4

// Infer classifies rows, each of the length of the model's input, with values scaled as in training. A few go to an
// infer action with the request; more are put beside the models, in parts whose answers the platform takes, each for an
// action of its own, and taken away afterwards. It returns OverLimit for a model that no action of the platform can
// hold, and the failure of an action.
func (s *Service) Infer(ctx context.Context, t *Trained, rows [][]float32) (out Inference, err error) {
	size := t.Graph.Input().Len()
	inline := len(rows) <= max(1, maxParameters/bytesPerValue/size)
	step := max(1, min(maxAnswer/(bytesPerClass+bytesPerValue*t.Graph.Output().Len()), maxInputs/4/size))
	if n := (len(rows) + step - 1) / step; n > 0 { // evenly: engines add up in another order where rows are few
		step = (len(rows) + n - 1) / n
	}
	q, end, err := s.question(ctx, t, asking(t, min(step, len(rows))))
	if err != nil {
		return out, err
	}
	defer end()
	if !inline {
		models, err := s.Models(ctx)
		if err != nil {
			return out, err
		}
		q.shelf, q.folder = models, path.Join(inputsFolder, q.pkg)
		over, err := s.waits(ctx, q)
		if err != nil {
			return out, err
		}
		defer func() {
			ctx := context.WithoutCancel(ctx)
			over(ctx, models.Discard(ctx, q.folder) == nil) //nolint:errcheck // the answer is there
		}()
	}
	parts := make([]Inference, (len(rows)+step-1)/step)
	g, work := errgroup.WithContext(ctx)
	g.SetLimit(q.atOnce)
	for i := range parts {
		g.Go(func() error {
			return q.ask(work, i, rows[i*step:min((i+1)*step, len(rows))], &parts[i])
		})
	}
	err = g.Wait()
	for _, p := range parts { // in the order of the rows
		out.Classes, out.Probabilities = append(out.Classes, p.Classes...), append(out.Probabilities, p.Probabilities...)
		out.Actions = append(out.Actions, p.Actions...)
	}
	if err != nil { // what is there is not that of the first rows alone
		out.Classes, out.Probabilities = nil, nil
	}
	return out, err
}

// ask runs one action for some of the rows.
func (q *question) ask(ctx context.Context, n int, rows [][]float32, out *Inference) error {
	request := q.request
	if request.Inputs = rows; q.shelf != nil {
		key := path.Join(q.folder, fmt.Sprintf("%06d.f32", n))
		sha, err := q.shelf.WriteRows(ctx, key, rows)
		if err != nil {
			return err
		}
		request.Inputs, request.Rows = nil, &disdel.RowsRef{Key: key, Checksum: sha}
	}
	res, err := q.run(ctx, n, func(int) disdel.InferRequest { return request }, out)
	if err != nil {
		return err
	}
	if len(res.Classes) != len(rows) || len(res.Probabilities) != len(rows) {
		return &disdel.Error{
			Kind: disdel.Internal, Op: "infer",
			Msg: fmt.Sprintf("an action was asked about %d rows, and answered for %d", len(rows), len(res.Classes)),
		}
	}
	out.Classes, out.Probabilities = res.Classes, res.Probabilities
	return nil
}
