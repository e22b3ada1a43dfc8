package client

import (
	"context"
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service"
)

// Local is a service of this process.
func Local(s *service.Service) Client {
	return Client{Jobs: localJobs{s}, Records: localRecords{s}, Models: localModels{s}, Data: localData{s}}
}

type localJobs struct{ s *service.Service }

func (l localJobs) Submit(ctx context.Context, req service.Request) (Run, error) {
	if err := initial(ctx, localModels(l), &req); err != nil {
		return nil, err
	}
	return begun(l.s.Submit(ctx, req))
}

func (l localJobs) Resume(ctx context.Context, req service.ResumeRequest) (Run, error) {
	return begun(l.s.Resume(ctx, req))
}

func (l localJobs) Watch(ctx context.Context, job string) (Run, error) {
	return begun(l.s.Watch(ctx, job))
}

// begun is a run without a nil that is none.
func begun(r *service.Run, err error) (Run, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (l localJobs) Ask(ctx context.Context, job string, to disdel.Status, cause string) error {
	return l.s.Ask(ctx, job, to, cause)
}

func (l localJobs) Estimate(ctx context.Context, req service.Request, q service.Questions) (*service.Estimation,
	error,
) {
	if err := initial(ctx, localModels(l), &req); err != nil {
		return nil, err
	}
	return l.s.Estimate(ctx, req, q)
}

func (l localJobs) Check(ctx context.Context, req service.Request) error {
	if err := initial(ctx, localModels(l), &req); err != nil {
		return err
	}
	_, err := l.s.Check(ctx, req)
	return err
}

type localRecords struct{ s *service.Service }

func (l localRecords) List(ctx context.Context, q history.Query) ([]disdel.Record, error) {
	h, err := l.s.History(ctx)
	if err != nil {
		return nil, err
	}
	return h.List(ctx, q)
}

func (l localRecords) Get(ctx context.Context, job string) (rec disdel.Record, err error) {
	h, err := l.s.History(ctx)
	if err != nil {
		return rec, err
	}
	id, err := h.Resolve(ctx, job)
	if err != nil {
		return rec, err
	}
	return h.Get(ctx, id)
}

func (l localRecords) Runner(ctx context.Context, id disdel.JobID) (service.Runner, bool, error) {
	return l.s.Runner(ctx, id)
}

func (l localRecords) Remarks(ctx context.Context) (map[disdel.JobID]history.Remark, error) {
	h, err := l.s.History(ctx)
	if err != nil {
		return nil, err
	}
	return h.Remarks(ctx)
}

func (l localRecords) SetRemark(ctx context.Context, id disdel.JobID, r history.Remark) error {
	h, err := l.s.History(ctx)
	if err != nil {
		return err
	}
	return h.SetRemark(ctx, id, r)
}

func (l localRecords) Forget(ctx context.Context, id disdel.JobID) error {
	_, err := l.s.Forget(ctx, string(id))
	return err
}

type localModels struct{ s *service.Service }

func (l localModels) List(ctx context.Context) ([]modelstore.Model, error) {
	store, err := l.s.Models(ctx)
	if err != nil {
		return nil, err
	}
	return store.List(ctx)
}

func (l localModels) Get(ctx context.Context, ref string) (m modelstore.Model, err error) {
	store, err := l.s.Models(ctx)
	if err != nil {
		return m, err
	}
	return store.Get(ctx, ref)
}

func (l localModels) CopyWeights(ctx context.Context, w io.Writer, m *modelstore.Model) error {
	store, err := l.s.Models(ctx)
	if err != nil {
		return err
	}
	return store.CopyWeights(ctx, w, m.Path, m.Checksum)
}

func (l localModels) Tag(ctx context.Context, ref, tag string) (m modelstore.Model, err error) {
	store, err := l.s.Models(ctx)
	if err != nil {
		return m, err
	}
	return store.Tag(ctx, ref, tag)
}

func (l localModels) Remove(ctx context.Context, ref string) (m modelstore.Model, err error) {
	store, err := l.s.Models(ctx)
	if err != nil {
		return m, err
	}
	return store.Remove(ctx, ref)
}

func (l localModels) PutWeights(ctx context.Context, file string) (string, error) {
	store, err := l.s.Models(ctx)
	if err != nil {
		return "", err
	}
	return sent(file, func(sum string, size int64, r io.Reader) error {
		_, err := store.PutWeights(ctx, sum, size, r)
		return err
	})
}

func (l localModels) KeptWeights(ctx context.Context) ([]modelstore.StoredWeights, error) {
	store, err := l.s.Models(ctx)
	if err != nil {
		return nil, err
	}
	return store.KeptWeights(ctx)
}

func (l localModels) RemoveWeights(ctx context.Context, ref string) error {
	store, err := l.s.Models(ctx)
	if err != nil {
		return err
	}
	return store.RemoveWeights(ctx, ref)
}

func (l localModels) Answer(ctx context.Context, ref, file string, text []byte) (doc render.Inference,
	m modelstore.Model, err error,
) {
	t, err := l.s.Trained(ctx, ref)
	if err != nil {
		return doc, m, err
	}
	doc, err = render.AnswerFile(ctx, l.s, t, file, text)
	return doc, t.Model, err
}

func (l localModels) AnswerData(ctx context.Context, ref string, ask service.DataQuestion, to service.DataSink) (
	out service.DataAnswers, err error,
) {
	t, err := l.s.Trained(ctx, ref)
	if err != nil {
		return out, err
	}
	return render.AnswerData(ctx, l.s, t, ask, to)
}

func (l localModels) Judge(ctx context.Context, ref, dataset string) (j service.Judgement, err error) {
	t, err := l.s.Trained(ctx, ref)
	if err != nil {
		return j, err
	}
	return l.s.Judge(ctx, t, dataset)
}

type localData struct{ s *service.Service }

func (l localData) List(ctx context.Context) (out []render.Dataset, err error) {
	store, err := l.s.Datasets(ctx)
	if err != nil {
		return nil, err
	}
	list, err := store.List(ctx)
	for _, m := range list {
		out = append(out, render.DescribeDataset(m))
	}
	return out, err
}

func (l localData) Get(ctx context.Context, name string) (set render.Dataset, err error) {
	store, err := l.s.Datasets(ctx)
	if err != nil {
		return set, err
	}
	m, err := store.Manifest(ctx, name)
	if err != nil {
		return set, err
	}
	return render.DescribeDataset(m), nil
}

func (l localData) Sample(ctx context.Context, name string, rows []int, seed int64) (doc dataset.Sampled, err error) {
	store, err := l.s.Datasets(ctx)
	if err != nil {
		return doc, err
	}
	return store.Sample(ctx, name, rows, seed)
}

func (l localData) AddKnown(ctx context.Context, name string, overwrite bool) (set render.Dataset, err error) {
	m, err := l.s.AddKnown(ctx, name, overwrite)
	if err != nil {
		return set, err
	}
	return render.DescribeDataset(m), nil
}

func (l localData) AddFiles(ctx context.Context, name string, files dataset.Files, overwrite bool) (render.Dataset,
	error,
) {
	return AddFiles(ctx, l.s, name, files, overwrite)
}

func (l localData) AddDense(ctx context.Context, in dataset.DenseInput, overwrite bool) (set render.Dataset,
	err error,
) {
	store, err := l.s.Datasets(ctx)
	if err != nil {
		return set, err
	}
	m, err := store.AddDense(ctx, in, overwrite)
	if err != nil {
		return set, err
	}
	set = render.DescribeDataset(m)
	set.Warnings, set.Understood = in.Understood.Doubts(&m), &in.Understood
	return set, nil
}

func (l localData) AddSparse(ctx context.Context, in dataset.SparseInput, overwrite bool) (set render.Dataset,
	err error,
) {
	store, err := l.s.Datasets(ctx)
	if err != nil {
		return set, err
	}
	m, err := store.AddSparse(ctx, in, overwrite)
	if err != nil {
		return set, err
	}
	return render.DescribeDataset(m), nil
}

// AddFiles adds a data set of files to a service, and says what is probably not meant.
func AddFiles(ctx context.Context, s *service.Service, name string, files dataset.Files, overwrite bool) (
	set render.Dataset, err error,
) {
	in, err := files.Input(name)
	if err != nil {
		return set, err
	}
	store, err := s.Datasets(ctx)
	if err != nil {
		return set, err
	}
	m, err := store.Add(ctx, in, overwrite)
	if err != nil {
		return set, err
	}
	set = render.DescribeDataset(m)
	set.Warnings = dataset.Doubts(&in, &m, files.Layout != "")
	return set, nil
}

func (l localData) Remove(ctx context.Context, name string) (removed dataset.Removed, err error) {
	if id := l.s.Reader(ctx, name); id != "" {
		return removed, &disdel.Error{
			Kind: disdel.Conflict, Op: "remove data set", Msg: fmt.Sprintf("%s is reading %s", id, name),
			Hint: "wait for the job, or stop it with Ctrl-C first",
		}
	}
	store, err := l.s.Datasets(ctx)
	if err != nil {
		return removed, err
	}
	return store.Remove(ctx, name)
}
