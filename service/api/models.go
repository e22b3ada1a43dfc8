package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service/infer"
	"github.com/disdel/disdel/service/program"
)

func listModels(c *call) (int, any, error) {
	return sendList(c, "models", c.Service.AllModels(c.Context()), func(m modelstore.Model) any { return m })
}

// sendList sends a JSON object whose field has all items. It sends item by item, so that only one is in memory. A
// damaged item does not hide the others.
func sendList[T any](c *call, field string, all iter.Seq2[T, error], shown func(T) any) (int, any, error) {
	out := bufio.NewWriterSize(pieces{c.w, c.out}, 32<<10)
	var damaged error
	sent := 0
	for one, err := range all {
		if err != nil {
			damaged = errors.Join(damaged, err)
			continue
		}
		text, err := json.Marshal(shown(one))
		if err != nil {
			damaged = errors.Join(damaged, err)
			continue
		}
		if sent++; sent == 1 {
			c.w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(out, `{%q:[`, field) //nolint:errcheck // Flush returns the error
		} else {
			out.WriteByte(',') //nolint:errcheck // the same
		}
		if _, err := out.Write(text); err != nil {
			return 0, nil, nil // the client went away
		}
	}
	switch {
	case sent == 0 && damaged != nil:
		return 0, nil, damaged
	case sent == 0:
		return http.StatusOK, map[string][]T{field: {}}, nil
	}
	out.WriteString("]}\n") //nolint:errcheck // Flush returns the error
	out.Flush()             //nolint:errcheck // the client went away
	return 0, nil, nil
}

func showModel(c *call) (int, any, error) {
	found, err := c.Service.FindModel(c.Context(), c.PathValue("model"))
	return http.StatusOK, found.Model, err
}

// weights sends a model's weights as safetensors.
func weights(c *call) (int, any, error) {
	m, err := c.Service.FindModel(c.Context(), c.PathValue("model"))
	if err != nil {
		return 0, nil, err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(int64(m.Size), 10))
	if err := m.Store.CopyWeights(c.Context(), pieces{c.w, c.out}, m.Path, m.Checksum); err != nil {
		panic(http.ErrAbortHandler) // the client has to see that the answer is incomplete
	}
	return 0, nil, nil
}

// sendProgram sends the archive of the Python program whose network a model has.
func sendProgram(c *call) (int, any, error) {
	m, err := c.Service.FindModel(c.Context(), c.PathValue("model"))
	if err != nil {
		return 0, nil, err
	}
	custom := m.Network.Custom
	if custom == nil || custom.Python == nil {
		return 0, nil, &disdel.Error{Kind: disdel.NotFound, Op: "read program", Msg: m.Ref() + " has no Python program"}
	}
	if err := c.hold(modelstore.MaxProgram); err != nil {
		return 0, nil, err
	}
	archive, err := m.Store.ReadProgram(c.Context(), custom.Python.Code)
	if err != nil {
		return 0, nil, err
	}
	c.w.Header().Set("Content-Type", "application/zip")
	c.w.Write(archive) //nolint:errcheck // the client went away
	return 0, nil, nil
}

// Bounds of the memory of the answers for one request's rows.
const (
	mostAnswers   = 16 << 20
	bytesPerRow   = 96
	bytesPerClass = 32
)

// mostPixels bounds a picture in an inference request.
const mostPixels = 1 << 24

// inferRows answers for rows in JSON, .npy, .csv or a picture, or for the rows of the data set in the query.
func inferRows(c *call) (int, any, error) {
	if c.URL.Query().Has("dataset") {
		return inferData(c)
	}
	body, err := io.ReadAll(c.Body)
	if err != nil {
		return 0, nil, err
	}
	m, err := c.Service.Trained(c.Context(), c.PathValue("model"))
	if err != nil {
		return 0, nil, err
	}
	each := bytesPerRow
	if m.Network.Sparse == nil {
		each += bytesPerClass * m.Graph.Output().Len()
	}
	m.MostRows, m.MostPixels, m.Turn = max(1, mostAnswers/each), mostPixels, c.compute
	if err := c.hold(int64(infer.PictureBytes(body))); err != nil {
		return 0, nil, err
	}
	name := "inputs"
	if value := c.URL.Query().Get("name"); value != "" { // its ending shows a table
		name = path.Base(value)
	}
	how, err := continuation(c.URL.Query())
	if err != nil {
		return 0, nil, err
	}
	doc, err := render.AnswerFile(c.Context(), c.Service.Predictor, m, name, body, how)
	return http.StatusOK, doc, err
}

// continuation reads how a language model is to continue texts.
func continuation(q url.Values) (how disdel.Continuation, err error) {
	for name, to := range map[string]any{
		"tokens": &how.Tokens, "temperature": &how.Temperature, "topK": &how.TopK, "topP": &how.TopP, "seed": &how.Seed,
	} {
		if value := q.Get(name); value != "" && json.Unmarshal([]byte(value), to) != nil {
			return how, invalid(fmt.Sprintf("%s is a number, not %q", name, value), nil)
		}
	}
	return how, nil
}

// evaluate compares the predictions of a model for a data set with its labels.
func evaluate(c *call) (int, any, error) {
	m, err := c.Service.Trained(c.Context(), c.PathValue("model"))
	if err != nil {
		return 0, nil, err
	}
	j, err := c.Service.Evaluate(c.Context(), m, c.URL.Query().Get("dataset"))
	return http.StatusOK, j, err
}

// tagModel makes a tag name a version.
func tagModel(c *call) (int, any, error) {
	m, err := client.Local(c.Service).Models.Tag(c.Context(), c.PathValue("model"), c.PathValue("tag"))
	return http.StatusOK, m, err
}

func removeModel(c *call) (int, any, error) {
	m, err := client.Local(c.Service).Models.Remove(c.Context(), c.PathValue("model"))
	return http.StatusOK, m, err
}

// putWeights stores a file of initial weights under the checksum that the client has computed.
func putWeights(c *call) (int, any, error) {
	if c.ContentLength < 0 {
		return 0, nil, invalid("say how long the file is: Content-Length", nil)
	}
	store, err := c.Service.Models(c.Context())
	if err != nil {
		return 0, nil, err
	}
	release, err := c.Service.ClaimDisk(c.Context(), disdel.Bytes(c.ContentLength))
	if err != nil {
		return 0, nil, err
	}
	defer release()
	g, err := store.PutWeights(c.Context(), c.PathValue("weights"), c.ContentLength, c.Body)
	return http.StatusCreated, apitypes.Weights{Weights: g.Ref, Bytes: g.Size, Arrays: len(g.Arrays)}, err
}

// putProgram stores the archive of a Python program. The answer has its digest, which a submission names.
func putProgram(c *call) (int, any, error) {
	if c.ContentLength < 0 {
		return 0, nil, invalid("say how long the archive is: Content-Length", nil)
	}
	store, err := c.Service.Models(c.Context())
	if err != nil {
		return 0, nil, err
	}
	if c.ContentLength > modelstore.MaxProgram {
		return 0, nil, &disdel.Error{
			Kind: disdel.OverLimit, Op: "store program",
			Msg: fmt.Sprintf("the archive has more than %v", disdel.Bytes(modelstore.MaxProgram)),
		}
	}
	if err := c.hold(c.ContentLength); err != nil {
		return 0, nil, err
	}
	release, err := c.Service.ClaimDisk(c.Context(), disdel.Bytes(c.ContentLength))
	if err != nil {
		return 0, nil, err
	}
	defer release()
	archive, err := io.ReadAll(c.Body)
	if err != nil {
		return 0, nil, err
	}
	code, err := store.WriteProgram(c.Context(), archive)
	return http.StatusCreated, apitypes.Program{Code: code}, err
}

// installPackages makes the virtual environment for the text of a requirements.txt. The answer has its name, which a
// submission names.
func installPackages(c *call) (int, any, error) {
	text, err := io.ReadAll(io.LimitReader(c.Body, program.MaxRequirements+1))
	if err != nil {
		return 0, nil, err
	}
	c.out.SetReadDeadline(time.Time{}) //nolint:errcheck // there is none then: packages take as long as they take
	ctx, stop := c.lasting()
	defer stop()
	name, err := c.Service.InstallPackages(ctx, string(text))
	return http.StatusCreated, apitypes.Environment{Environment: name}, err
}

func listWeights(c *call) (int, any, error) {
	store, err := c.Service.Models(c.Context())
	if err != nil {
		return 0, nil, err
	}
	list, err := store.KeptWeights(c.Context())
	return http.StatusOK, apitypes.WeightsList{Weights: append([]modelstore.StoredWeights{}, list...)}, err
}

func removeWeights(c *call) (int, any, error) {
	store, err := c.Service.Models(c.Context())
	if err != nil {
		return 0, nil, err
	}
	err = store.RemoveWeights(c.Context(), c.PathValue("weights"))
	return http.StatusOK, apitypes.State{Status: "removed"}, err
}
