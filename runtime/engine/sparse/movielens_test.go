package sparse_test

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	rows "github.com/disdel/disdel/dataset/sparse"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/sparse"
)

// movieLens is MovieLens-100K as scripts/movielens.sh fetches it, with a tenth of each user's ratings held out. Without
// the file the test is skipped: it may not be passed on.
func movieLens(t *testing.T) (*dataset.Store, dataset.Manifest) {
	t.Helper()
	folder := cmp.Or(os.Getenv("DISDEL_MOVIELENS"), filepath.Join("..", "..", "..", ".cache", "movielens"))
	file := filepath.Join(folder, "ml-100k.inter")
	if _, err := os.Stat(file); err != nil {
		t.Skip("there is no MovieLens-100K here: scripts/movielens.sh")
	}
	held := rows.HeldOut{Share: 0.1, ByUser: true, Seed: 1}
	in, err := rows.Ratings{Source: dataset.FileSource(file), HeldOut: held}.Input("films")
	if err != nil {
		t.Fatal(err)
	}
	counts, mean, n := map[float32]int{}, 0.0, 0
	if err := in.Each(func(r dataset.SparseRow) error {
		counts[r.Target]++
		mean += float64(r.Target)
		n++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	mean /= float64(n)
	if n != 100_000 || in.Users != 943 || in.Items != 1682 || math.Abs(mean-3.52986) > 1e-9 || counts[1] != 6110 || counts[5] != 21201 {
		t.Errorf("%d ratings of %d users and %d items, mean %v, %v", n, in.Users, in.Items, mean, counts)
	}
	store, err := dataset.OpenStore(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	m, err := store.AddSparse(t.Context(), in, false)
	if err != nil {
		t.Fatal(err)
	}
	return store, m
}

// On real ratings a factorisation comes to a held-out loss far below that of one guess for all. The rate is that of
// MLLess' job, for a batch of 250.
func TestMovieLensIsLearned(t *testing.T) {
	store, m := movieLens(t)
	info := m.Info(disdel.Split{})
	pmf, _ := model.FindSparse("pmf")
	g, err := model.Build(pmf.Describe(info, 20, disdel.Init{}))
	if err != nil {
		t.Fatal(err)
	}
	ref := disdel.DataRef{Name: m.Name, Checksum: info.Checksum}
	train, err := store.ReadTrain(t.Context(), ref, disdel.RowRange{End: info.Train})
	if err != nil {
		t.Fatal(err)
	}
	heldOut, err := store.ReadHeldOut(t.Context(), ref, disdel.RowRange{End: info.HeldOut})
	if err != nil {
		t.Fatal(err)
	}
	e, err := sparse.Backend{}.New(engine.Spec{
		Graph: g, BatchSize: heldOut.Len(), Training: true,
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.4, Momentum: 0.8, Nesterov: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Init(disdel.Init{Seed: 8}); err != nil {
		t.Fatal(err)
	}
	all, b := heldOut.NewBatch(heldOut.Len()), train.NewBatch(250)
	every := make([]int32, heldOut.Len())
	for i := range every {
		every[i] = int32(i)
	}
	heldOut.Fill(&all, every)
	best := math.Inf(1)
	for epoch := range 12 {
		order := dataset.Order(nil, 1, epoch, 0, train.Len())
		for at := 0; at+250 <= len(order); at += 250 {
			train.Fill(&b, order[at:at+250])
			if _, err := e.Step(b); err != nil {
				t.Fatal(err)
			}
		}
		got, err := e.Evaluate(all)
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, got.Loss)
	}
	t.Logf("held-out loss %.4f, one guess %.4f", best, info.Sparse.Guess(disdel.LossSquared))
	if best > 0.93 {
		t.Errorf("the held-out loss is %v", best)
	}
}
