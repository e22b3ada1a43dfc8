package model

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/spelling"
)

// SparseModel is a model of sparse rows that a job file may name. It is no network of layers: its graph has one node
// that weighs a row's entries, and where its output is a probability a sigmoid after it.
type SparseModel struct {
	Name, Title string
	Loss        string // what it is trained by
	Ratings     bool   // rows are ratings, of a user and an item each
	Classes     int    // of the data: 2 are targets of 0 and 1, 1 are numbers
}

// sparseModels are the models of sparse rows, in the order that they are listed.
var sparseModels = []SparseModel{
	{Name: "logistic", Title: "Logistic regression over sparse rows", Loss: disdel.LossLogistic, Classes: 2},
	{Name: "linear", Title: "Linear regression over sparse rows", Loss: disdel.LossSquared, Classes: 1},
	{
		Name: "pmf", Title: "Matrix factorisation of ratings with biases (Salakhutdinov and Mnih 2007)",
		Loss: disdel.LossSquared, Ratings: true, Classes: 1,
	},
}

// SparseModels lists the models of sparse rows.
func SparseModels() []SparseModel { return append([]SparseModel(nil), sparseModels...) }

// FindSparse returns the model of sparse rows of that name.
func FindSparse(name string) (SparseModel, bool) {
	for _, m := range sparseModels {
		if m.Name == name {
			return m, true
		}
	}
	return SparseModel{}, false
}

// NearestSparse returns the model of sparse rows that a person probably meant, or "".
func NearestSparse(name string) string {
	var names []string
	for _, m := range sparseModels {
		names = append(names, m.Name)
	}
	return spelling.Closest(name, names)
}

// DefaultRank is the rank of a factorisation that is given none: MLLess' experiments have 20.
const DefaultRank = 20

// The names of the nodes and arrays of models of sparse rows.
const (
	linearNode  = "linear"
	factorsNode = "factors"
	usersArray  = "users"
	itemsArray  = "items"
)

// factorSpread is the standard deviation of the first factors and biases of users and items: MLLess' code draws them so
// whatever it is told.
const factorSpread = 0.1

// largestColumns is the most columns of a row: they are counted in int32.
const largestColumns = math.MaxInt32

// Describe is the network of a model for a data set of sparse rows: what its graph and its engine are made by. The rank
// counts for ratings alone; 0 is DefaultRank.
func (m SparseModel) Describe(data disdel.DataInfo, rank int, init disdel.Init) disdel.Network {
	n := disdel.Network{
		Name: m.Name, Input: data.Sample, Classes: data.Classes, Init: init, Sparse: &disdel.SparseNetwork{},
	}
	d := data.Sparse
	if d == nil {
		return n
	}
	rows := max(1, data.Train+data.HeldOut)
	n.Sparse.Mean, n.Sparse.Most = int((d.Entries+int64(rows)-1)/int64(rows)), d.Most
	if m.Ratings {
		n.Sparse.Users, n.Sparse.Items, n.Sparse.Rank, n.Sparse.Offset = d.Users, d.Items, rank, d.Mean
		if rank == 0 {
			n.Sparse.Rank = DefaultRank
		}
	}
	return n
}

// Sparse is what the graph's model of sparse rows is made of, nil where it is a network.
func (g *Graph) Sparse() *disdel.SparseNetwork {
	if len(g.Nodes) < 2 {
		return nil
	}
	return g.Nodes[1].Sparse
}

// SparseLoss is the loss that the graph's model of sparse rows is trained by, "" where it is a network.
func (g *Graph) SparseLoss() string {
	m, ok := FindSparse(g.Name)
	if g.Sparse() == nil || !ok {
		return ""
	}
	return m.Loss
}

// Probability tells whether the output of the graph's model of sparse rows is one.
func (g *Graph) Probability() bool { return g.SparseLoss() == disdel.LossLogistic }

// Touched is how many weights a step with so many rows changes at most: of a model of sparse rows those that the rows
// may have entries for, of a network all.
func (g *Graph) Touched(rows int) int {
	s := g.Sparse()
	switch {
	case s == nil:
		n := 0
		for _, p := range g.Params() {
			n += p.Len()
		}
		return n
	case s.Users > 0:
		return (s.Rank + 1) * (min(rows, s.Users) + min(rows, s.Items))
	default:
		return min(rows*s.Most, g.Input()[0]) + 1 // and the bias
	}
}

// fromSparse builds the graph of a model of sparse rows.
func fromSparse(n disdel.Network) (*Graph, error) {
	bad := func(format string, args ...any) (*Graph, error) {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "build network " + n.Name, Msg: fmt.Sprintf(format, args...),
		}
	}
	m, ok := FindSparse(n.Name)
	s := n.Sparse
	switch {
	case !ok:
		return bad("there is no model of sparse rows %q", n.Name)
	case len(n.Input) != 1 || n.Input[0] < 1 || n.Input[0] > largestColumns:
		return bad("rows of sparse data have 1 to %d columns, not %v", largestColumns, n.Input)
	case n.Classes != m.Classes:
		return bad("it takes data of %d classes, and this has %d", m.Classes, n.Classes)
	case s.Mean < 0 || s.Most < 1 || s.Most > n.Input[0] || math.IsNaN(s.Offset) || math.IsInf(s.Offset, 0):
		return bad("its rows have %d entries, %d at most, and start from %g", s.Mean, s.Most, s.Offset)
	case m.Ratings && (s.Users < 1 || s.Items < 1 || s.Users+s.Items != n.Input[0] || s.Most > 2):
		return bad("%d users and %d items do not make ratings of %d columns", s.Users, s.Items, n.Input[0])
	case m.Ratings && (s.Rank < 1 || tooLarge([]int{n.Input[0], s.Rank + 1})):
		return bad("a rank of %d", s.Rank)
	case !m.Ratings && (s.Users != 0 || s.Items != 0 || s.Rank != 0):
		return bad("it takes no ratings")
	}
	b := NewBuilder(n.Name, Shape(n.Input))
	node := Node{Name: linearNode, Op: OpLinear, Inputs: []int{0}, Out: Shape{1}, Bias: true, Sparse: s}
	if m.Ratings {
		node.Name, node.Op = factorsNode, OpFactors
	}
	b.add(node)
	if m.Loss == disdel.LossLogistic {
		b.Same("sigmoid", b.Last(), OpSigmoid)
	}
	return b.Graph()
}

// factorParams are the arrays of a factorisation: factors and biases of users, then of items.
func factorParams(g *Graph, out []Param, i int) []Param {
	s := g.Nodes[i].Sparse
	return append(out,
		Param{Name: usersArray + ".weight", Node: i, Shape: []int{s.Users, s.Rank}, Trainable: true},
		Param{Name: usersArray + ".bias", Node: i, Shape: []int{s.Users}, Trainable: true},
		Param{Name: itemsArray + ".weight", Node: i, Shape: []int{s.Items, s.Rank}, Trainable: true},
		Param{Name: itemsArray + ".bias", Node: i, Shape: []int{s.Items}, Trainable: true})
}

// Spread is the standard deviation of the normal distribution that an array starts from; ok is false where it starts in
// another way.
func (g *Graph) Spread(p Param) (deviation float64, ok bool) {
	switch g.Nodes[p.Node].Op {
	case OpFactors:
		return factorSpread, true
	case OpEmbedding, OpPositions, OpClassToken, OpWindowAttention:
		return embeddingSpread, true
	default:
		return 0, false
	}
}
