package sparse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// MadeClicks are rows that a seed makes in the form of advertisements' click logs, such as Criteo's: 13 numbers with
// blanks and 26 categories of which some are common and most are rare, hashed, and a target that is 1 in about a
// quarter of the rows, drawn by a logistic model. Its own loss on them is the best that any model can come to.
type MadeClicks struct {
	Rows     int
	Features int // columns that categories are hashed to
	Seed     int64
	HeldOut  HeldOut
}

// What the clicks are drawn from. The share of positives is that of Criteo's display advertising challenge.
const (
	clickNumbers    = 13
	clickCategories = 26
	blanks          = 0.2 // share of numbers that are missing
	positives       = 0.256
	numberWeight    = 0.3  // deviation of a number's weight
	categoryWeight  = 0.35 // deviation of a category's, which falls with its rank
	categoryFall    = 0.1
	zipf            = 1.1
	mostValues      = 5.5 // exponent of ten of the most texts of a category, which has at least ten
	biasRows        = 20_000
)

// Input checks the numbers, and draws the model. It returns Invalid for no rows and no columns.
func (m MadeClicks) Input(name string) (in dataset.SparseInput, err error) {
	if err := m.HeldOut.check(); err != nil {
		return in, err
	}
	if m.Rows < 1 || m.Features < 1 || m.Features > mostHashed {
		return in, &disdel.Error{
			Kind: disdel.Invalid, Op: "generate clicks", Msg: fmt.Sprintf("%d rows of %d features", m.Rows, m.Features),
			Hint: "give at least one of each",
		}
	}
	g := newClickMaker(m)
	return dataset.SparseInput{
		Name: name, Title: fmt.Sprintf("%d made clicks, seed %d", m.Rows, m.Seed), License: "none: made by disdel",
		Classes: 2, ClassNames: []string{"no click", "click"}, Columns: 2*clickNumbers + m.Features, Each: g.each,
		Bayes: func() float64 { return g.entropy / float64(max(1, g.made)) },
	}, nil
}

// clickMaker makes the clicks.
type clickMaker struct {
	MadeClicks
	weights []float64 // of the numbers
	values  []uint64  // by category: its texts
	bias    float64
	entropy float64 // of the targets by one who knows the model, summed up
	made    int

	index []int32
	value []float32
}

func newClickMaker(m MadeClicks) *clickMaker {
	g := &clickMaker{MadeClicks: m}
	rng := rand.New(rand.NewPCG(uint64(m.Seed), 1))
	for range clickNumbers {
		g.weights = append(g.weights, numberWeight*rng.NormFloat64())
	}
	for range clickCategories {
		g.values = append(g.values, uint64(math.Pow(10, 1+(mostValues-1)*rng.Float64())))
	}
	g.bias = g.solveBias()
	return g
}

// solveBias is the bias at which so many targets are positive, by rows of its own.
func (g *clickMaker) solveBias() float64 {
	d := g.draws(2)
	logits := make([]float64, min(biasRows, g.Rows))
	for i := range logits {
		logits[i] = g.row(d)
	}
	low, high := -50.0, 50.0
	for range 100 {
		middle, sum := (low+high)/2, 0.0
		for _, z := range logits {
			sum += 1 / (1 + math.Exp(-z-middle))
		}
		if sum < positives*float64(len(logits)) {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// clickDraws is where a row's numbers come from.
type clickDraws struct {
	rng    *rand.Rand
	ranks  []*rand.Zipf
	weight *rand.PCG // seeded anew for each text of a category: the same text always weighs the same
	normal *rand.Rand
}

func (g *clickMaker) draws(purpose uint64) *clickDraws {
	d := &clickDraws{rng: rand.New(rand.NewPCG(uint64(g.Seed), purpose)), weight: rand.NewPCG(0, 0)}
	d.normal = rand.New(d.weight)
	for _, n := range g.values {
		d.ranks = append(d.ranks, rand.NewZipf(d.rng, zipf, 1, n-1))
	}
	return d
}

func (g *clickMaker) each(yield func(dataset.SparseRow) error) error {
	g.entropy, g.made = 0, 0
	d, held := g.draws(3), g.HeldOut.picker(0)
	for range g.Rows {
		p := 1 / (1 + math.Exp(-g.row(d)-g.bias))
		if p > 0 && p < 1 {
			g.entropy -= p*math.Log(p) + (1-p)*math.Log1p(-p)
		}
		g.made++
		row := dataset.SparseRow{Index: g.index, Value: g.value, HeldOut: held.next(0)}
		if d.rng.Float64() < p {
			row.Target = 1
		}
		if err := yield(row); err != nil {
			return err
		}
	}
	return nil
}

// row draws a row, and returns its logit without the bias.
func (g *clickMaker) row(d *clickDraws) (logit float64) {
	g.index, g.value = g.index[:0], g.value[:0]
	for k, w := range g.weights {
		v := d.rng.NormFloat64() // the logarithm of a lognormal amount
		if d.rng.Float64() < blanks {
			g.index, g.value = append(g.index, int32(clickNumbers+k)), append(g.value, 1)
			continue
		}
		logit += w * v
		g.index, g.value = append(g.index, int32(k)), append(g.value, float32(v))
	}
	for k, ranks := range d.ranks {
		rank := ranks.Uint64()
		d.weight.Seed(uint64(g.Seed)+uint64(k)<<32, rank)
		logit += categoryWeight * d.normal.NormFloat64() * math.Pow(float64(rank+1), -categoryFall)
		g.add(2*clickNumbers + Hashed(fmt.Sprint("c", k), fmt.Sprint(rank), g.Features))
	}
	return logit
}

// add adds 1 to a column.
func (g *clickMaker) add(column int) {
	if at := slices.Index(g.index, int32(column)); at >= 0 {
		g.value[at]++
		return
	}
	g.index, g.value = append(g.index, int32(column)), append(g.value, 1)
}
