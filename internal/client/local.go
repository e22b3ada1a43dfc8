package client

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/infer"
	"github.com/disdel/disdel/service/tenant"
)

// Local returns a Client of a service of this process. Methods that a service has as they are come from it directly.
func Local(s *service.Service) Client {
	return Client{
		Jobs: localJobs{s}, Records: localRecords{s}, Models: localModels{s}, Data: localData{s}, Shares: s,
	}
}

// with opens a store and calls f with it.
func with[S, T any](
	ctx context.Context, open func(context.Context) (S, error), f func(S) (T, error),
) (out T, err error) {
	store, err := open(ctx)
	if err != nil {
		return out, err
	}
	return f(store)
}

type localJobs struct{ *service.Service }

func (l localJobs) Submit(ctx context.Context, req service.Request) (Run, error) {
	if err := sendInitialWeights(ctx, localModels(l), &req); err != nil {
		return nil, err
	}
	return asRun(l.Service.Submit(ctx, req))
}

func (l localJobs) Resume(ctx context.Context, req service.ResumeRequest) (Run, error) {
	return asRun(l.Service.Resume(ctx, req))
}

func (l localJobs) Watch(ctx context.Context, job string) (Run, error) {
	return asRun(l.Service.Watch(ctx, job))
}

// asRun turns a nil *service.Run into a nil Run.
func asRun(r *service.Run, err error) (Run, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (l localJobs) Estimate(ctx context.Context, req service.Request, q service.Questions) (*service.Estimation,
	error,
) {
	if err := sendInitialWeights(ctx, localModels(l), &req); err != nil {
		return nil, err
	}
	return l.Service.Estimate(ctx, req, q)
}

func (l localJobs) Check(ctx context.Context, req service.Request) error {
	if err := sendInitialWeights(ctx, localModels(l), &req); err != nil {
		return err
	}
	_, err := l.Service.Check(ctx, req)
	return err
}

type localRecords struct{ *service.Service }

func (l localRecords) List(ctx context.Context, q history.Query) ([]disdel.Record, error) {
	list, _, err := l.ListJobs(ctx, q, math.MaxInt)
	return list, err
}

func (l localRecords) Get(ctx context.Context, job string) (disdel.Record, error) {
	return l.Look(ctx, job)
}

func (l localRecords) Remarks(ctx context.Context) (map[disdel.JobID]history.Remark, error) {
	return with(ctx, l.History, func(h *history.Store) (map[disdel.JobID]history.Remark, error) { return h.Remarks(ctx) })
}

func (l localRecords) SetRemark(ctx context.Context, id disdel.JobID, r history.Remark) error {
	h, err := l.History(ctx)
	if err != nil {
		return err
	}
	return h.SetRemark(ctx, id, r)
}

func (l localRecords) Stored(ctx context.Context) ([]service.StoredItem, error) {
	return l.Service.StoredOfAll(ctx)
}

func (l localRecords) RemoveStored(ctx context.Context, items []service.StoredItem) (int, error) {
	return l.Service.RemoveAllStored(ctx, items)
}

func (l localRecords) Forget(ctx context.Context, id disdel.JobID) error {
	_, err := l.Service.Forget(ctx, string(id))
	return err
}

type localModels struct{ *service.Service }

type model = modelstore.Model

func (l localModels) List(ctx context.Context) ([]model, error) { return gather(l.AllModels(ctx)) }

// gather lists what a sequence yields. The error names what it could not read.
func gather[T any](all iter.Seq2[T, error]) (out []T, err error) {
	for one, fault := range all {
		if fault != nil {
			err = errors.Join(err, fault)
			continue
		}
		out = append(out, one)
	}
	return out, err
}

func (l localModels) Get(ctx context.Context, ref string) (model, error) {
	found, err := l.FindModel(ctx, ref)
	return found.Model, err
}

func (l localModels) Add(ctx context.Context, m model, weights disdel.Weights, files modelstore.HubFiles) (model,
	error,
) {
	return with(ctx, l.Models, func(s *modelstore.Store) (model, error) {
		if _, err := s.Get(ctx, m.Name); err != nil && disdel.KindOf(err) != disdel.NotFound {
			return m, err // the name is none
		}
		return s.Add(ctx, m, weights, files)
	})
}

// mostAncestors bounds how many models before a model are looked at.
const mostAncestors = 100

func (l localModels) HubFiles(ctx context.Context, m *model) (modelstore.HubFiles, error) {
	found, err := l.FindModel(ctx, m.Ref())
	if err != nil {
		return modelstore.HubFiles{}, err
	}
	out, err := found.Store.HubFiles(ctx, &found.Model)
	for range mostAncestors {
		begin := found.Network.Init.Weights
		if err != nil || out.Origin != nil || begin == "" || strings.HasPrefix(begin, "sha256:") {
			break
		}
		if found, err = l.FindModel(ctx, begin); disdel.KindOf(err) == disdel.NotFound {
			return out, nil // the network's own name may say how it leaves
		} else if err != nil {
			break
		}
		var before modelstore.HubFiles
		before, err = found.Store.HubFiles(ctx, &found.Model)
		out.Origin = before.Origin
		if out.Tokenizer == nil {
			out.Tokenizer = before.Tokenizer
		}
	}
	return out, err
}

func (l localModels) Tag(ctx context.Context, ref, tag string) (m model, err error) {
	if err := l.CheckOwn(tenant.ItemModel, ref); err != nil {
		return m, err
	}
	return with(ctx, l.Models, func(s *modelstore.Store) (model, error) { return s.Tag(ctx, ref, tag) })
}

// Remove deletes a version of a model. With the last version, the sharing of the model ends.
func (l localModels) Remove(ctx context.Context, ref string) (m model, err error) {
	if err := l.CheckOwn(tenant.ItemModel, ref); err != nil {
		return m, err
	}
	s, err := l.Models(ctx)
	if err != nil {
		return m, err
	}
	if m, err = s.Remove(ctx, ref); err != nil {
		return m, err
	}
	if remaining, err := s.Versions(ctx, m.Name); err == nil && len(remaining) == 0 {
		return m, l.Forsake(ctx, tenant.ItemModel, m.Name)
	}
	return m, nil
}

func (l localModels) CopyWeights(ctx context.Context, w io.Writer, m *modelstore.Model) error {
	found, err := l.FindModel(ctx, m.Ref())
	if err != nil {
		return err
	}
	return found.Store.CopyWeights(ctx, w, m.Path, m.Checksum)
}

func (l localModels) PutWeights(ctx context.Context, file string) (string, error) {
	return with(ctx, l.Models, func(s *modelstore.Store) (string, error) {
		return readTwice(file, func(sum string, size int64, r io.Reader) error {
			_, err := s.PutWeights(ctx, sum, size, r)
			return err
		})
	})
}

func (l localModels) KeptWeights(ctx context.Context) ([]modelstore.StoredWeights, error) {
	return with(ctx, l.Models, func(s *modelstore.Store) ([]modelstore.StoredWeights, error) { return s.KeptWeights(ctx) })
}

func (l localModels) RemoveWeights(ctx context.Context, ref string) error {
	s, err := l.Models(ctx)
	if err != nil {
		return err
	}
	return s.RemoveWeights(ctx, ref)
}

func (l localModels) WriteProgram(ctx context.Context, archive []byte) (string, error) {
	return with(ctx, l.Models, func(s *modelstore.Store) (string, error) { return s.WriteProgram(ctx, archive) })
}

func (l localModels) ReadProgram(ctx context.Context, m *modelstore.Model) ([]byte, error) {
	return with(ctx, l.Models, func(s *modelstore.Store) ([]byte, error) {
		return s.ReadProgram(ctx, m.Network.Custom.Python.Code)
	})
}

func (localModels) InstallPackages(context.Context, string) (string, error) { return "", nil }

func (l localModels) Answer(ctx context.Context, ref, file string, text []byte, how disdel.Continuation) (
	doc render.Inference, m modelstore.Model, err error,
) {
	t, err := l.Trained(ctx, ref)
	if err != nil {
		return doc, m, err
	}
	doc, err = render.AnswerFile(ctx, l.Predictor, t, file, text, how)
	return doc, t.Model, err
}

func (l localModels) AnswerData(ctx context.Context, ref string, ask infer.DataRequest, to infer.DataSink) (
	out infer.DataAnswers, err error,
) {
	t, err := l.Trained(ctx, ref)
	if err != nil {
		return out, err
	}
	return render.AnswerData(ctx, l.Predictor, t, ask, to)
}

func (l localModels) Evaluate(ctx context.Context, ref, dataset string) (e infer.Evaluation, err error) {
	t, err := l.Trained(ctx, ref)
	if err != nil {
		return e, err
	}
	return l.Predictor.Evaluate(ctx, t, dataset)
}

type localData struct{ *service.Service }

// described is the description of a data set that a store has found or added.
func described(m dataset.Manifest, err error) (render.Dataset, error) {
	if err != nil {
		return render.Dataset{}, err
	}
	return render.DescribeDataset(m), nil
}

func (l localData) List(ctx context.Context) (out []render.Dataset, err error) {
	list, err := gather(l.AllDatasets(ctx))
	for _, set := range list {
		out = append(out, render.DescribeFound(set))
	}
	return out, err
}

func (l localData) Get(ctx context.Context, name string) (render.Dataset, error) {
	set, err := l.FindDataset(ctx, name)
	if err != nil {
		return render.Dataset{}, err
	}
	return render.DescribeFound(set), nil
}

func (l localData) Sample(ctx context.Context, name string, rows []int, seed int64) (out dataset.SampleRows, err error) {
	set, err := l.FindDataset(ctx, name)
	if err != nil {
		return out, err
	}
	return set.Store.Sample(ctx, set.Name, rows, seed)
}

func (l localData) Statistics(ctx context.Context, name string) (out dataset.Statistics, err error) {
	set, err := l.FindDataset(ctx, name)
	if err != nil {
		return out, err
	}
	return set.Store.Statistics(ctx, set.Name)
}

func (l localData) AddKnown(ctx context.Context, name string, overwrite bool) (render.Dataset, error) {
	return described(l.Service.AddKnown(ctx, name, overwrite))
}

func (l localData) AddFiles(ctx context.Context, name string, files dataset.Files, overwrite bool) (render.Dataset,
	error,
) {
	return AddFiles(ctx, l.Service, name, files, overwrite)
}

func (l localData) AddDense(ctx context.Context, in dataset.DenseInput, overwrite bool) (render.Dataset, error) {
	m, err := with(ctx, l.Datasets, func(s *dataset.Store) (dataset.Manifest, error) {
		return s.AddDense(ctx, in, overwrite)
	})
	return understood(m, in.Understood, err)
}

func (l localData) AddSparse(ctx context.Context, in dataset.SparseInput, overwrite bool) (render.Dataset, error) {
	m, err := with(ctx, l.Datasets, func(s *dataset.Store) (dataset.Manifest, error) {
		return s.AddSparse(ctx, in, overwrite)
	})
	return understood(m, in.Understood, err)
}

// understood is described, with what was understood of the files that the rows come from, if they come from files.
func understood(m dataset.Manifest, u dataset.Interpretation, err error) (render.Dataset, error) {
	set, err := described(m, err)
	if err != nil {
		return set, err
	}
	set.Warnings = u.Warnings(&m)
	if u.Kind != "" {
		set.Understood = &u
	}
	return set, nil
}

func (l localData) Remove(ctx context.Context, name string) (dataset.Removed, error) {
	return l.RemoveDataset(ctx, name)
}

// AddFiles adds a data set of files to a service, with warnings about what looks like a mistake.
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
	set.Warnings = dataset.Warnings(&in, &m, files.Layout != "")
	read := in.Understood(&m, files.Format)
	set.Understood = &read
	return set, nil
}
