package infer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/text"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/queue"
)

// Config is what a Predictor needs. Its functions open what they return when it is first needed.
type Config struct {
	Tenant    string // "": none
	ModelsURL string // blob URL of the tenant's models, as actions are given it
	Log       logrus.FieldLogger
	Owner     history.Owner // this process, as leases name it
	Queue     *queue.Queue
	UnderWay  *UnderWay

	// FindDataset and FindModel find what the tenant may read, of its own or of others.
	FindDataset func(ctx context.Context, ref string) (Dataset, error)
	FindModel   func(ctx context.Context, ref string) (FoundModel, error)

	Models   func(ctx context.Context) (*modelstore.Store, error) // the tenant's own
	History  func(ctx context.Context) (*history.Store, error)
	Executor func(ctx context.Context) (*executor.Executor, error)
	Quota    func(ctx context.Context) (scheduler.Quota, error) // of the tenant
	Session  func(ctx context.Context) (identity string, err error)
	Count    func() (over func()) // counts a query until over is called
}

// Dataset is a data set, and where it is stored.
type Dataset struct {
	dataset.Manifest        // with the plain name, which its checksum covers
	Ref              string // NAME, or OWNER/NAME
	Store            *dataset.Store
	URL              string // of the store, as actions are given it
}

// FoundModel is a model, and where it is stored. The name of a model of another tenant begins with its owner.
type FoundModel struct {
	modelstore.Model
	Owner   string // "": the tenant itself
	Store   *modelstore.Store
	URL     string                                            // of the store, as actions are given it
	History func(ctx context.Context) (*history.Store, error) // of the owner
}

// Predictor asks the trained models of a tenant. It is safe for concurrent use.
type Predictor struct {
	cfg      Config
	large    sync.Mutex // held while a large picture is read
	sweeping sync.Mutex // held while files of killed processes are removed
}

// New returns a Predictor.
func New(cfg Config) *Predictor { return &Predictor{cfg: cfg} }

// Model is a trained model that can be asked.
type Model struct {
	modelstore.Model
	Graph *model.Graph

	// Better is an older version that is much more accurate. nil: there is none, or a version was asked for.
	Better *modelstore.Model

	// MostRows bounds the rows that Read takes at once. MostPixels bounds the pixels of a picture. 0: no bound.
	MostRows, MostPixels int

	// Turn is called before Read and ReadSparse, which compute; done is called after them. nil: they begin at once.
	Turn func() (done func(), err error)

	large *sync.Mutex // held while a large picture is read; nil: pictures are read in parallel
	// texts returns what makes rows of texts; nil: the model takes none.
	texts func() (*text.Tokenizer, error)
	// table returns what makes rows of a table's cells; nil: the model was not trained on a table.
	table func() (*dataset.Table, error)
	from  FoundModel
}

// Result is what a model predicts for rows.
type Result struct {
	Classes       []int               // the most probable class of each row
	Probabilities [][]float32         // [rows classes]; of a network of numbers its outputs, standardised
	Actions       []disdel.Activation // that computed it

	Predictions     []float32            // of each sparse row
	Recommendations []disdel.Recommended // for each user of the request
}

// muchBetter is the difference of accuracy, or the share of an error, from which an older version is worth a note.
const muchBetter = 0.02

// isMuchBetter compares two versions by the metric that ranks the newer one.
func isMuchBetter(older, newer *modelstore.Model) bool {
	metric := newer.Metric()
	a, b := metric.Value(older.Figures()), metric.Value(newer.Figures())
	switch {
	case a == nil || b == nil:
		return false
	case metric.Larger:
		return *a-*b >= muchBetter
	default:
		return *a <= (1-muchBetter)**b
	}
}

// Trained finds a trained model: NAME for its newest version, NAME:vN for one. It returns NotFound, Corrupt.
func (s *Predictor) Trained(ctx context.Context, ref string) (*Model, error) {
	found, err := s.cfg.FindModel(ctx, ref)
	if err != nil {
		return nil, err
	}
	m := found.Model
	g, err := model.Build(m.Network) // before anything is computed with what a file says
	if err != nil {
		return nil, err
	}
	t := &Model{Model: m, Graph: g, large: &s.large, from: found}
	if sum := m.Data.Tokenizer; sum != "" {
		t.texts = sync.OnceValues(func() (*text.Tokenizer, error) { // a large one takes a moment
			file, err := found.Store.ReadTokenizer(ctx, sum)
			if err != nil {
				return nil, err
			}
			return text.Read(bytes.NewReader(file))
		})
	}
	if sum := m.Data.Table; sum != "" {
		t.table = sync.OnceValues(func() (*dataset.Table, error) { return readTableForm(ctx, found.Store, sum) })
	}
	if ref != m.Name {
		return t, nil
	}
	list, _ := found.Store.Versions(ctx, path.Base(m.Name)) // what cannot be read is not compared
	if best, ok := modelstore.Best(list); ok && m.Data.HeldOut > 0 && isMuchBetter(&best, &m) {
		best.Name = m.Name
		t.Better = &best
	}
	return t, nil
}

// Read reads rows for the model from JSON, .npy, .csv or a picture, see ReadInputs. A model that was trained on a table
// also takes rows as the table's file has them: CSV with a header, or JSON objects. If the model's job resized its
// images (data.resize), Read resizes images of any size in the same way.
func (t *Model) Read(name string, data []byte) (Inputs, error) {
	done, err := t.turn()
	if err != nil {
		return Inputs{}, err
	}
	defer done()
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
	in, isRead, err := t.readTexts(name, data)
	if err == nil && !isRead {
		in, isRead, err = t.readRaw(name, data)
	}
	if err == nil && !isRead {
		in, err = readInputs(name, data, t.Graph.Input(), t.Data.Resize)
		err = t.hintOfTable(err)
	}
	if err == nil {
		err = t.checkRows(name, len(in.Rows))
	}
	return in, err
}

// Texts are the texts of a file: a list of them in JSON, exactly as they are, or one in each line that is not blank. ok
// is false if the data are no texts, or the model takes none. A table has tokens.
func (t *Model) Texts(name string, data []byte) (list []string, ok bool) {
	if t.texts == nil || !utf8.Valid(data) || isTable(name) {
		return nil, false
	}
	switch {
	case isJSON(data):
		doc, err := inputsOf(bytes.TrimSpace(data))
		if err != nil || json.Unmarshal(doc.Inputs, &list) != nil {
			return nil, false
		}
	default:
		for line := range strings.Lines(string(data)) {
			if strings.TrimSpace(line) != "" {
				list = append(list, strings.TrimRight(line, "\r\n"))
			}
		}
	}
	return list, len(list) > 0
}

// isJSON tells whether a file begins like an object or a list of JSON.
func isJSON(data []byte) bool {
	trimmed := bytes.TrimSpace(data)
	return bytes.HasPrefix(trimmed, []byte("{")) || bytes.HasPrefix(trimmed, []byte("["))
}

// readTexts makes rows of texts. ok is false if there are none.
func (t *Model) readTexts(name string, data []byte) (in Inputs, ok bool, err error) {
	list, ok := t.Texts(name, data)
	if !ok {
		return in, false, nil
	}
	tokenizer, err := t.texts()
	if err != nil {
		return in, false, err
	}
	if len(list) > 1 && !isJSON(data) {
		in.Notes = append(in.Notes, fmt.Sprintf("each of the %d lines of %s is a text of its own; to ask about the whole "+
			`file, give it as one text of JSON: {"inputs": ["..."]}`, len(list), name))
	}
	e, tokens := tokenizer.Encoder(), []int32(nil)
	for _, one := range list {
		row := make([]float32, t.Graph.Input().Len())
		tokens = e.Append(tokens[:0], one, true)
		text.Fill(row, tokens)
		in.Rows = append(in.Rows, row)
	}
	return in, true, nil
}

// turn waits for the Turn of the model.
func (t *Model) turn() (done func(), err error) {
	if t.Turn == nil {
		return func() {}, nil
	}
	return t.Turn()
}

// checkRows returns OverLimit for more rows than MostRows.
func (t *Model) checkRows(name string, rows int) error {
	if t.MostRows == 0 || rows <= t.MostRows {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.OverLimit, Op: "read " + name,
		Msg:  fmt.Sprintf("it asks for %d rows, and a request may ask for %d of this model", rows, t.MostRows),
		Hint: "ask for fewer rows at once, or add them as a data set and ask for its rows",
	}
}

// Warning says that rows are far from the values that the model was trained on; "" if they are not, or nothing is
// known.
func (t *Model) Warning(rows [][]float32) string { return outOfRange(rows, t.Inputs) }

// Bounds that keep invocations and their answers below OpenWhisk's 1 MB, with room for the other fields.
const (
	maxParameters = 900 << 10
	maxAnswer     = 900 << 10
	bytesPerValue = 16 // the most that a float32 takes in JSON with its comma
	bytesPerClass = 24 // the most that a class' number takes
)

// maxInputs bounds the bytes of inputs that one action reads from the blob store.
const maxInputs = 32 << 20

// inferAtOnce bounds the parallel infer actions of a query: they share the machine, and jobs may run.
const inferAtOnce = 4

// Infer classifies rows, each of the length of the model's input, with values scaled as in training. A request has a
// few rows. More rows are divided into parts, one for each action, in files beside the models that are removed
// afterwards. It returns OverLimit for a model that no action of the platform can hold, and the failure of an action.
func (s *Predictor) Infer(ctx context.Context, t *Model, rows [][]float32) (out Result, err error) {
	if err := t.classifies(); err != nil {
		return out, err
	}
	size := t.Graph.Input().Len()
	inline := len(rows) <= max(1, maxParameters/bytesPerValue/size)
	step := max(1, min(maxAnswer/(bytesPerClass+bytesPerValue*t.Graph.Output().Len()), maxInputs/4/size))
	if n := (len(rows) + step - 1) / step; n > 0 { // evenly, since engines add in another order if there are few rows
		step = (len(rows) + n - 1) / n
	}
	q, end, err := s.newQuery(ctx, t, estimateInput(t, min(step, len(rows))))
	if err != nil {
		return out, err
	}
	defer end()
	if !inline {
		models, err := s.cfg.Models(ctx)
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
	parts := make([]Result, (len(rows)+step-1)/step)
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
	if err != nil { // the parts that succeeded may not be the first rows
		out.Classes, out.Probabilities = nil, nil
	}
	return out, err
}

// ask invokes one action for some of the rows.
func (q *query) ask(ctx context.Context, n int, rows [][]float32, out *Result) error {
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
