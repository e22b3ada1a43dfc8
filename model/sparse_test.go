package model_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// ratings is a network of pmf for a data set.
func ratings(change func(*disdel.Network)) disdel.Network {
	n := disdel.Network{
		Name: "pmf", Input: []int{2625}, Classes: 1,
		Sparse: &disdel.SparseNetwork{Users: 943, Items: 1682, Rank: 20, Offset: 3.53, Mean: 2, Most: 2},
	}
	change(&n)
	return n
}

func TestModelsOfSparseRowsCountTheirWeights(t *testing.T) {
	g, err := model.Build(ratings(func(*disdel.Network) {}))
	if err != nil {
		t.Fatal(err)
	}
	c := g.Count()
	if want := int64((943 + 1682) * 21); c.Trainable != want || c.NonTrainable != 0 || c.MACs != 20 {
		t.Errorf("%d weights, %d products; want %d and 20", c.Trainable, c.MACs, want)
	}
	if g.Output().Len() != 1 || g.Sparse() == nil || g.SparseLoss() != disdel.LossSquared || g.Probability() {
		t.Errorf("%v outputs, loss %q", g.Output(), g.SparseLoss())
	}
	g, err = model.Build(disdel.Network{
		Name: "logistic", Input: []int{1_000_000}, Classes: 2, Sparse: &disdel.SparseNetwork{Mean: 39, Most: 39},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c := g.Count(); c.Trainable != 1_000_001 || c.MACs != 39 || !g.Probability() || g.SparseLoss() != disdel.LossLogistic {
		t.Errorf("%d weights, %d products, a probability: %v", c.Trainable, c.MACs, g.Probability())
	}
	dense, err := model.Build(disdel.Network{Name: "mlp", Input: []int{1, 8, 8}, Classes: 10})
	if err != nil || dense.Sparse() != nil || dense.SparseLoss() != "" {
		t.Errorf("a network has sparse rows: %v", err)
	}
}

func TestModelsOfSparseRowsRefuseWhatDoesNotFit(t *testing.T) {
	for want, n := range map[string]disdel.Network{
		"no model of sparse rows \"mlp\"":     ratings(func(n *disdel.Network) { n.Name = "mlp" }),
		"rows of sparse data have":            ratings(func(n *disdel.Network) { n.Input = []int{1, 28, 28} }),
		"data of 1 classes, and this has 2":   ratings(func(n *disdel.Network) { n.Classes = 2 }),
		"943 users and 1681 items":            ratings(func(n *disdel.Network) { n.Sparse.Items-- }),
		"a rank of 0":                         ratings(func(n *disdel.Network) { n.Sparse.Rank = 0 }),
		"it takes no ratings":                 ratings(func(n *disdel.Network) { n.Name = "linear" }),
		"2 entries, 0 at most":                ratings(func(n *disdel.Network) { n.Sparse.Most = 0 }),
		"do not make ratings of 2625 columns": ratings(func(n *disdel.Network) { n.Sparse.Most = 3 }),
	} {
		_, err := model.Build(n)
		if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
