package web

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/infer"
	"github.com/disdel/disdel/service/queue"
)

// stored is the page of models or of data sets. A damaged item does not hide the others.
type stored[T any] struct {
	List    []T
	Damaged string
	Metric  string     // head of the models' results
	Added   *addedData // what was just uploaded; nil: nothing
}

// mostStored bounds a list, and mostDamaged its unreadable items.
const (
	mostStored  = 10_000
	mostDamaged = 10
)

// shown converts each item to what the page shows, so that a long list takes little memory.
func shown[T, S any](all iter.Seq2[T, error], show func(T) S) (list []S, damaged error) {
	faults := 0
	for one, err := range all {
		switch {
		case err == nil && len(list) < mostStored:
			list = append(list, show(one))
		case err == nil:
			return list, errors.Join(damaged, fmt.Errorf("only the first %d are shown", mostStored))
		case faults < mostDamaged:
			damaged, faults = errors.Join(damaged, err), faults+1
		}
	}
	return list, damaged
}

// trained is a model in the list.
type trained struct {
	modelstore.Model
	Ref     string
	Network string
	Result  string // its figure, below the head of the list
}

func trainedOf(m modelstore.Model) trained {
	return trained{m, m.Ref(), cmp.Or(m.Network.Name, "own layers"), ""}
}

// Figure is the model's accuracy, or the RMSE of one that predicts numbers.
func (t trained) Figure() string {
	return disdel.Figures{Accuracy: &t.Accuracy, Scores: t.Scores}.Text()
}

func modelsPage(v *visit) error {
	list, err := shown(v.s.AllModels(v.Context()), func(m modelstore.Model) trained {
		one := trainedOf(m)
		one.Model.Network, one.Labels = disdel.Network{}, nil // which no list shows
		return one
	})
	if err != nil && len(list) == 0 {
		return err
	}
	page := stored[trained]{Damaged: errorText(err), List: list}
	results := make([]string, len(page.List))
	for i := range page.List {
		results[i] = page.List[i].Figure()
	}
	page.Metric, results = metricColumn(results)
	for i := range page.List {
		page.List[i].Result = results[i]
	}
	slices.SortStableFunc(page.List, func(a, b trained) int { return b.Created.Compare(a.Created) })
	v.write(http.StatusOK, "models", view{Title: "Models", Here: "Models", Body: page})
	return nil
}

// errorText is the text of an error, "" without one.
func errorText(err error) string {
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

func datasetsPage(v *visit) error { return showDatasets(v, http.StatusOK, nil) }

func showDatasets(v *visit, status int, added *addedData) error {
	list, err := shown(v.s.AllDatasets(v.Context()), func(d infer.Dataset) set {
		m := d.Manifest
		m.Name = d.Ref
		one := set{m, disdel.Bytes(m.Train.Rows+m.Test.Rows) * m.SampleSize()}
		one.Columns, one.ClassNames, one.Train.Chunks, one.Test.Chunks = nil, nil, nil, nil // which no list shows
		return one
	})
	if err != nil && len(list) == 0 {
		return err
	}
	page := stored[set]{Damaged: errorText(err), List: list, Added: added}
	v.write(status, "datasets", view{Title: "Data sets", Here: "Data sets", Body: page})
	return nil
}

// pool is the page of the platform's pool.
type pool struct {
	queue.Pool
	Bar  poolBar
	Hold []waitingJob
	Wait []waitingJob
}

// known tells whether the size of a pool is known.
func known(p queue.Pool) bool {
	return p.Capacity.Memory > 0 && p.Capacity.Memory < scheduler.Unbounded
}

// held is the memory of the jobs that a pool shows.
func held(p queue.Pool) (sum disdel.Bytes) {
	for _, j := range p.Holding {
		sum += j.Room.Memory
	}
	return sum
}

func poolPage(v *visit) error {
	page, err := readPool(v)
	if err != nil {
		return err
	}
	v.write(http.StatusOK, "pool", view{Title: "Pool", Here: "Pool", Live: Root + "live/jobs", Body: page})
	return nil
}

// readPool reads the pool with the names of its jobs.
func readPool(v *visit) (pool, error) {
	p, err := v.s.Pool(v.Context())
	if err != nil {
		return pool{}, err
	}
	list, err := listRows(v.Context(), v.s, v.site.rows, history.Query{Limit: usualJobs})
	return pool{
		Pool: p, Bar: poolBarOf(p), Hold: namedJobs(p.Holding, list), Wait: waitingJobs(p, list, nil),
	}, err
}
