package web

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
)

// stored is the page of models, or of data sets. Those that are damaged hide no other one.
type stored[T any] struct {
	List    []T
	Damaged string
}

// trained is a model in the list.
type trained struct {
	modelstore.Model
	Ref     string
	Network string
}

func modelsPage(v *visit) error {
	store, err := v.s.Models(v.Context())
	if err != nil {
		return err
	}
	list, err := store.List(v.Context())
	if err != nil && len(list) == 0 {
		return err
	}
	page := stored[trained]{Damaged: told(err)}
	for i := range list {
		m := list[i]
		page.List = append(page.List, trained{m, m.Ref(), cmp.Or(m.Network.Name, "own layers")})
	}
	slices.SortStableFunc(page.List, func(a, b trained) int { return b.Created.Compare(a.Created) })
	v.write(http.StatusOK, "models", view{Title: "Models", Here: "Models", Body: page})
	return nil
}

// told is an error's text, "" without one.
func told(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// set is a data set in the list.
type set struct {
	dataset.Manifest
	Size disdel.Bytes
}

func datasetsPage(v *visit) error {
	store, err := v.s.Datasets(v.Context())
	if err != nil {
		return err
	}
	list, err := store.List(v.Context())
	if err != nil && len(list) == 0 {
		return err
	}
	page := stored[set]{Damaged: told(err)}
	for _, m := range list {
		page.List = append(page.List, set{m, disdel.Bytes(m.Train.Rows+m.Test.Rows) * m.SampleSize()})
	}
	v.write(http.StatusOK, "datasets", view{Title: "Data sets", Here: "Data sets", Body: page})
	return nil
}

// pool is the page of the platform's pool.
type pool struct {
	service.Pool
	Held  disdel.Bytes // by the jobs that are shown
	Known bool         // how large the pool is
	Share float64      // of it that is held, 0 to 1
}

func poolPage(v *visit) error {
	p, err := v.s.Pool(v.Context())
	if err != nil {
		return err
	}
	page := pool{Pool: p, Known: p.Capacity.Memory > 0 && p.Capacity.Memory < scheduler.Unbounded}
	for _, j := range p.Holding {
		page.Held += j.Room.Memory
	}
	if page.Known {
		page.Share = min(1, float64(page.Held)/float64(p.Capacity.Memory))
	}
	v.write(http.StatusOK, "pool", view{Title: "Pool", Here: "Pool", Live: Root + "live/jobs", Body: page})
	return nil
}
