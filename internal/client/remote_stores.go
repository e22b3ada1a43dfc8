package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service/infer"
	"github.com/disdel/disdel/service/tenant"
)

type remoteModels struct{ *remote }

func (r remoteModels) List(ctx context.Context) ([]modelstore.Model, error) {
	out, err := get[apitypes.ModelList](ctx, r.remote, "models")
	return out.Models, err
}

func (r remoteModels) Get(ctx context.Context, ref string) (modelstore.Model, error) {
	return get[modelstore.Model](ctx, r.remote, "models", ref)
}

func (r remoteModels) CopyWeights(ctx context.Context, w io.Writer, m *modelstore.Model) error {
	res, err := r.send(ctx, request{method: http.MethodGet, path: []string{"models", m.Ref(), "weights"}})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	n, err := io.Copy(w, res.Body)
	if err == nil && disdel.Bytes(n) != m.Size {
		err = &disdel.Error{Kind: disdel.Corrupt, Op: "read weights", Msg: m.Ref() + " has not come whole"}
	}
	return err
}

func (r remoteModels) HubFiles(context.Context, *modelstore.Model) (modelstore.HubFiles, error) {
	return modelstore.HubFiles{}, &disdel.Error{
		Kind: disdel.Invalid, Op: "export model", Msg: "a server does not send a model's tokenizer or origin",
		Hint: "export the model as safetensors or ONNX, or run this command beside the server's home (--context local)",
	}
}

func (r remoteModels) Add(_ context.Context, m modelstore.Model, _ disdel.Weights, _ modelstore.HubFiles) (
	modelstore.Model, error,
) {
	return m, &disdel.Error{
		Kind: disdel.Invalid, Op: "import model", Msg: "a server takes no models that its jobs have not trained",
		Hint: "import it on this computer (--context local), export it as safetensors, and start a job from that file: " +
			"model.init.weights",
	}
}

func (r remoteModels) Tag(ctx context.Context, ref, tag string) (modelstore.Model, error) {
	return answer[modelstore.Model](ctx, r.remote, request{
		method: http.MethodPut, path: []string{"models", ref, "tags", tag},
	})
}

func (r remoteModels) Remove(ctx context.Context, ref string) (modelstore.Model, error) {
	return answer[modelstore.Model](ctx, r.remote, request{method: http.MethodDelete, path: []string{"models", ref}})
}

func (r remoteModels) PutWeights(ctx context.Context, file string) (string, error) {
	return readTwice(file, func(sum string, size int64, body io.Reader) error {
		return r.ask(ctx, request{
			method: http.MethodPut, path: []string{"weights", sum}, raw: body, size: size,
			header: http.Header{"Content-Type": {"application/octet-stream"}},
		}, nil)
	})
}

func (r remoteModels) KeptWeights(ctx context.Context) ([]modelstore.StoredWeights, error) {
	out, err := get[apitypes.WeightsList](ctx, r.remote, "weights")
	return out.Weights, err
}

func (r remoteModels) RemoveWeights(ctx context.Context, ref string) error {
	return r.ask(ctx, request{method: http.MethodDelete, path: []string{"weights", ref}}, nil)
}

func (r remoteModels) WriteProgram(ctx context.Context, archive []byte) (string, error) {
	out, err := answer[apitypes.Program](ctx, r.remote, request{
		method: http.MethodPost, path: []string{"programs"}, raw: bytes.NewReader(archive), size: int64(len(archive)),
		header: http.Header{"Content-Type": {"application/zip"}},
	})
	return out.Code, err
}

func (r remoteModels) ReadProgram(ctx context.Context, m *modelstore.Model) ([]byte, error) {
	res, err := r.send(ctx, request{method: http.MethodGet, path: []string{"models", m.Ref(), "program"}})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	archive, err := io.ReadAll(io.LimitReader(res.Body, modelstore.MaxProgram+1))
	sum := sha256.Sum256(archive)
	if code := m.Network.Custom.Python.Code; err == nil && code != "sha256:"+hex.EncodeToString(sum[:]) {
		err = &disdel.Error{Kind: disdel.Corrupt, Op: "read program", Msg: code + " has not come whole"}
	}
	return archive, err
}

func (r remoteModels) InstallPackages(ctx context.Context, file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", &disdel.Error{Kind: disdel.Invalid, Op: "read requirements", Err: err}
	}
	out, err := answer[apitypes.Environment](ctx, r.remote, request{
		method: http.MethodPost, path: []string{"environments"}, raw: bytes.NewReader(text), size: int64(len(text)),
		header: http.Header{"Content-Type": {"text/plain"}},
	})
	return out.Environment, err
}

func (r remoteModels) Answer(ctx context.Context, ref, file string, text []byte, how disdel.Continuation) (
	doc render.Inference, m modelstore.Model, err error,
) {
	if m, err = r.Get(ctx, ref); err != nil {
		return doc, m, err
	}
	query := url.Values{"name": {filepath.Base(file)}}
	for name, v := range map[string]float64{
		"tokens": float64(how.Tokens), "temperature": how.Temperature, "topK": float64(how.TopK), "topP": how.TopP,
	} {
		if v != 0 {
			query.Set(name, strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	if how.Seed != 0 {
		query.Set("seed", strconv.FormatInt(how.Seed, 10))
	}
	err = r.ask(ctx, request{
		method: http.MethodPost, path: []string{"models", ref, "infer"}, query: query,
		raw:    bytes.NewReader(text),
		header: http.Header{"Content-Type": {"application/octet-stream"}},
	}, &doc)
	return doc, m, err
}

func (r remoteModels) Evaluate(ctx context.Context, ref, dataset string) (infer.Evaluation, error) {
	return answer[infer.Evaluation](ctx, r.remote, request{
		method: http.MethodPost, path: []string{"models", ref, "evaluate"}, query: url.Values{"dataset": {dataset}},
	})
}

type remoteData struct{ *remote }

func (r remoteData) List(ctx context.Context) ([]render.Dataset, error) {
	out, err := get[apitypes.DatasetList](ctx, r.remote, "datasets")
	return out.Datasets, err
}

func (r remoteData) Get(ctx context.Context, name string) (render.Dataset, error) {
	return get[render.Dataset](ctx, r.remote, "datasets", name)
}

func (r remoteData) Sample(ctx context.Context, name string, rows []int, seed int64) (dataset.SampleRows, error) {
	v := url.Values{"seed": {strconv.FormatInt(seed, 10)}}
	for _, n := range rows {
		v.Add("row", strconv.Itoa(n))
	}
	return answer[dataset.SampleRows](ctx, r.remote, request{
		method: http.MethodGet, path: []string{"datasets", name, "sample"}, query: v,
	})
}

func (r remoteData) Statistics(ctx context.Context, name string) (dataset.Statistics, error) {
	return get[dataset.Statistics](ctx, r.remote, "datasets", name, "statistics")
}

func (r remoteData) AddKnown(ctx context.Context, name string, overwrite bool) (render.Dataset, error) {
	return answer[render.Dataset](ctx, r.remote, request{
		method: http.MethodPost, path: []string{"datasets"}, body: apitypes.Source{Source: name, Overwrite: overwrite},
	})
}

// AddFiles sends files as they are. It holds none of them in memory.
func (r remoteData) AddFiles(ctx context.Context, name string, from dataset.Files, overwrite bool) (
	set render.Dataset, err error,
) {
	if from.Format != "" && from.Format != dataset.FormatIDX {
		in, err := from.Input(name)
		if err != nil {
			return set, err
		}
		rows, err := in.Dense()
		if err != nil {
			return set, err
		}
		return r.AddDense(ctx, rows, overwrite)
	}
	open := map[string]*os.File{}
	defer func() {
		for _, f := range open {
			f.Close()
		}
	}()
	for part, file := range map[string]string{
		"images": from.Images, "labels": from.Labels, "test-images": from.TestImages, "test-labels": from.TestLabels,
	} {
		if file == "" {
			continue
		}
		if open[part], err = os.Open(file); err != nil {
			return set, &disdel.Error{
				Kind: disdel.Invalid, Op: "read " + file, Err: files.Plain(err), Hint: "check the file's name",
			}
		}
	}
	body, in := io.Pipe()
	form := multipart.NewWriter(in)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		in.CloseWithError(errors.Join(write(form, from, open, overwrite), form.Close()))
	}()
	err = r.ask(ctx, request{
		method: http.MethodPut, path: []string{"datasets", name}, raw: body,
		header: http.Header{"Content-Type": {form.FormDataContentType()}},
	}, &set)
	body.Close()
	<-sent
	return set, err
}

// AddDense sends rows that are read on this side: a server need not know the formats of files.
func (r remoteData) AddDense(ctx context.Context, in dataset.DenseInput, overwrite bool) (render.Dataset, error) {
	return r.addRows(ctx, in.Name, overwrite, func(w io.Writer) error { return dataset.WriteDenseRows(w, in) })
}

// AddSparse sends rows as AddDense does.
func (r remoteData) AddSparse(ctx context.Context, in dataset.SparseInput, overwrite bool) (render.Dataset, error) {
	return r.addRows(ctx, in.Name, overwrite, func(w io.Writer) error { return dataset.WriteSparseRows(w, in) })
}

// addRows sends rows while it reads them, and holds none of them in memory. It returns the fault of the rows rather
// than the server's error about missing rows.
func (r remoteData) addRows(ctx context.Context, name string, overwrite bool, rows func(w io.Writer) error) (
	set render.Dataset, err error,
) {
	body, in := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := rows(in)
		in.CloseWithError(err)
		read <- err
	}()
	err = r.ask(ctx, request{
		method: http.MethodPut, path: []string{"datasets", name}, query: url.Values{
			"overwrite": {strconv.FormatBool(overwrite)},
		}, raw: body, header: http.Header{"Content-Type": {dataset.RowsType}},
	}, &set)
	body.Close()
	if wrong := <-read; wrong != nil && !errors.Is(wrong, io.ErrClosedPipe) {
		err = wrong
	}
	return set, err
}

// write writes the form of a data set.
func write(form *multipart.Writer, from dataset.Files, open map[string]*os.File, overwrite bool) error {
	for field, value := range map[string]string{
		"layout": string(from.Layout), "classes": strings.Join(from.ClassNames, ","),
		"overwrite": strconv.FormatBool(overwrite),
	} {
		if value == "" {
			continue
		}
		if err := form.WriteField(field, value); err != nil {
			return err
		}
	}
	for part, f := range open {
		to, err := form.CreateFormFile(part, part)
		if err == nil {
			_, err = io.Copy(to, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r remoteData) Remove(ctx context.Context, name string) (dataset.Removed, error) {
	return answer[dataset.Removed](ctx, r.remote, request{method: http.MethodDelete, path: []string{"datasets", name}})
}

// AnswerData reads answers while they come. It holds none of them in memory.
func (r remoteModels) AnswerData(ctx context.Context, ref string, ask infer.DataRequest, to infer.DataSink) (
	out infer.DataAnswers, err error,
) {
	if ask.Keep || to == nil {
		return out, &disdel.Error{
			Kind: disdel.Invalid, Op: "infer", Msg: "answers that a server keeps cannot be read from here",
			Hint: "--file FILE.csv has them sent",
		}
	}
	res, err := r.send(ctx, request{
		method: http.MethodPost, path: []string{"models", ref, "infer"},
		query: url.Values{"dataset": {ask.Dataset}, "part": {string(ask.Part)}},
	})
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	lines := json.NewDecoder(res.Body)
	for {
		var line apitypes.AnswerLine
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return out, &disdel.Error{
				Kind: disdel.Unavailable, Op: "infer", Msg: "the answers have not come whole", Hint: "ask again",
			}
		case err != nil:
			return out, r.silent(ctx, err)
		case line.Error != nil:
			return out, line.Error
		case line.End != nil:
			return *line.End, nil
		case line.Head != nil:
			err = to.Begin(*line.Head)
			out.DataHead = *line.Head
			if err != nil {
				return out, err
			}
		case line.Row != nil:
			if err := to.Take(*line.Row); err != nil {
				return out, err
			}
		}
	}
}

type remoteShares struct{ *remote }

func (r remoteShares) Share(ctx context.Context, kind tenant.ItemKind, name string, with []string, all bool) (
	tenant.Share, error,
) {
	return answer[tenant.Share](ctx, r.remote, request{
		method: http.MethodPut, path: []string{"shares", string(kind), name},
		body: apitypes.ShareRequest{With: with, All: all},
	})
}

func (r remoteShares) Unshare(ctx context.Context, kind tenant.ItemKind, name string, from []string, all bool) (
	tenant.Share, error,
) {
	return answer[tenant.Share](ctx, r.remote, request{
		method: http.MethodDelete, path: []string{"shares", string(kind), name},
		query: url.Values{"with": from, "all": {strconv.FormatBool(all)}},
	})
}

func (r remoteShares) ShareOf(ctx context.Context, kind tenant.ItemKind, name string) (tenant.Share, error) {
	return get[tenant.Share](ctx, r.remote, "shares", string(kind), name)
}
