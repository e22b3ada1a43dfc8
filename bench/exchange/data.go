package main

import (
	"context"
	"fmt"
	"os"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/sparse"
	"github.com/disdel/disdel/model"
)

// learning is a data set in memory with the model that learns from it.
type learning struct {
	name      string
	store     *dataset.Store
	info      disdel.DataInfo
	ref       disdel.DataRef
	network   disdel.Network
	graph     *model.Graph
	heldOut   *dataset.Shard
	optimizer disdel.Optimizer
}

// loadRatings is MovieLens-100K where its file is there, else made ratings of its size.
func loadRatings(ctx context.Context, file string) (*learning, error) {
	held := sparse.HeldOut{Share: 0.1, Seed: 1}
	users, items, n, _ := sparse.MovieLensSize("ml-100k")
	in, err := sparse.MadeRatings{Users: users, Items: items, Ratings: n, Seed: 1, HeldOut: held}.Input("films")
	if _, missing := os.Stat(file); missing == nil {
		in, err = sparse.Ratings{Source: dataset.FileSource(file), HeldOut: held}.Input("films")
		fmt.Println("ratings: MovieLens-100K")
	} else {
		fmt.Println("ratings: made ones of MovieLens-100K's size")
	}
	if err != nil {
		return nil, err
	}
	// MLLess' optimiser, at a rate for a sum over a batch of 2,000 rows in all: 0.4 at 250.
	sgd := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.4, Momentum: 0.8, Nesterov: true}}
	return load(ctx, in, "pmf", sgd)
}

func loadClicks(ctx context.Context) (*learning, error) {
	in, err := sparse.MadeClicks{Rows: 60_000, Features: 100_000, Seed: 1, HeldOut: sparse.HeldOut{Share: 0.1, Seed: 1}}.Input("ads")
	if err != nil {
		return nil, err
	}
	return load(ctx, in, "logistic", disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.0006}})
}

func load(ctx context.Context, in dataset.SparseInput, name string, o disdel.Optimizer) (*learning, error) {
	store, err := dataset.OpenStore(ctx, "mem://")
	if err != nil {
		return nil, err
	}
	m, err := store.AddSparse(ctx, in, false)
	if err != nil {
		return nil, err
	}
	l := &learning{name: name, store: store, info: m.Info(disdel.Split{}), optimizer: o}
	l.ref = disdel.DataRef{Name: m.Name, Checksum: l.info.Checksum}
	found, _ := model.FindSparse(name)
	l.network = found.Describe(l.info, 20, disdel.Init{Seed: 1})
	if l.graph, err = model.Build(l.network); err != nil {
		return nil, err
	}
	l.heldOut, err = store.ReadHeldOut(ctx, l.ref, disdel.RowRange{End: l.info.HeldOut})
	return l, err
}

// shard is the rows of one of so many workers.
func (l *learning) shard(ctx context.Context, worker, of int) (*dataset.Shard, error) {
	rows := disdel.RowRange{Start: l.info.Train * worker / of, End: l.info.Train * (worker + 1) / of}
	return l.store.ReadTrain(ctx, l.ref, rows)
}
