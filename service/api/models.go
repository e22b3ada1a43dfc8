package api

import (
	"io"
	"net/http"
	"path"
	"strconv"

	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/modeltext"
	"github.com/disdel/disdel/internal/wire"
)

func listModels(c *call) (int, any, error) {
	store, err := c.Service.Models(c.Context())
	if err != nil {
		return 0, nil, err
	}
	list, err := store.List(c.Context())
	if err != nil && len(list) == 0 {
		return 0, nil, err
	}
	// Those that are damaged hide no other one.
	return http.StatusOK, wire.ModelList{Models: append([]modelstore.Model{}, list...)}, nil
}

func showModel(c *call) (int, any, error) {
	store, err := c.Service.Models(c.Context())
	if err != nil {
		return 0, nil, err
	}
	m, err := store.Get(c.Context(), c.PathValue("model"))
	return http.StatusOK, m, err
}

// weights sends a model's weights as safetensors.
func weights(c *call) (int, any, error) {
	store, err := c.Service.Models(c.Context())
	if err != nil {
		return 0, nil, err
	}
	m, err := store.Get(c.Context(), c.PathValue("model"))
	if err != nil {
		return 0, nil, err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(int64(m.Size), 10))
	if err := store.CopyWeights(c.Context(), c.w, m.Path, m.Checksum); err != nil {
		panic(http.ErrAbortHandler) // what was sent is not all, and has to look like it
	}
	return 0, nil, nil
}

// What the answers for the rows of one request may take while they are worked out and written.
const (
	mostAnswers   = 16 << 20
	bytesPerRow   = 96
	bytesPerClass = 32
)

// infer answers for rows that come as JSON, .npy, .csv or a picture, or for those of a data set that the query names.
func infer(c *call) (int, any, error) {
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
	m.MostRows = max(1, mostAnswers/each)
	name := "inputs"
	if said := c.URL.Query().Get("name"); said != "" { // whose ending tells of a table
		name = path.Base(said)
	}
	doc, err := modeltext.Answer(c.Context(), c.Service, m, name, body)
	return http.StatusOK, doc, err
}

// evaluate holds what a model says of a data set's rows against their labels.
func evaluate(c *call) (int, any, error) {
	m, err := c.Service.Trained(c.Context(), c.PathValue("model"))
	if err != nil {
		return 0, nil, err
	}
	j, err := c.Service.Judge(c.Context(), m, c.URL.Query().Get("dataset"))
	return http.StatusOK, j, err
}

// tagModel has a tag mean a version from now on.
func tagModel(c *call) (int, any, error) {
	m, err := client.Local(c.Service).Models.Tag(c.Context(), c.PathValue("model"), c.PathValue("tag"))
	return http.StatusOK, m, err
}

func removeModel(c *call) (int, any, error) {
	m, err := client.Local(c.Service).Models.Remove(c.Context(), c.PathValue("model"))
	return http.StatusOK, m, err
}
