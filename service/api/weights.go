package api

import (
	"net/http"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/wire"
)

// putWeights keeps a file of weights for jobs to begin with, under the checksum that its sender has worked out.
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
	return http.StatusCreated, wire.Weights{Weights: g.Ref, Bytes: g.Size, Arrays: len(g.Arrays)}, err
}

func listWeights(c *call) (int, any, error) {
	store, err := c.Service.Models(c.Context())
	if err != nil {
		return 0, nil, err
	}
	list, err := store.KeptWeights(c.Context())
	return http.StatusOK, wire.WeightsList{Weights: append([]modelstore.StoredWeights{}, list...)}, err
}

func removeWeights(c *call) (int, any, error) {
	store, err := c.Service.Models(c.Context())
	if err != nil {
		return 0, nil, err
	}
	err = store.RemoveWeights(c.Context(), c.PathValue("weights"))
	return http.StatusOK, wire.State{Status: "removed"}, err
}
