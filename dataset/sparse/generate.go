package sparse

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// MadeRatings are ratings made from a seed: of a factor model with noise, rounded to 1 to 5. Spread and means are
// those of MovieLens; the number of ratings per user is lognormal, per item it follows Zipf's law.
type MadeRatings struct {
	Users, Items, Ratings int
	Rank                  int // of the factor model; 0: 20
	Seed                  int64
	HeldOut               HeldOut
}

// MovieLensSize returns the size of one of MovieLens' data sets.
func MovieLensSize(name string) (users, items, ratings int, ok bool) {
	switch name {
	case "ml-100k":
		return 943, 1682, 100_000, true
	case "ml-1m":
		return 6040, 3706, 1_000_209, true
	case "ml-10m":
		return 69_878, 10_681, 10_000_054, true
	case "ml-20m":
		return 138_493, 26_744, 20_000_263, true
	default:
		return 0, 0, 0, false
	}
}

// The distribution of the ratings. Means and standard deviations fit MovieLens-100K and its larger versions.
const (
	activity     = 1.2 // sigma of the ratings per user
	leastRatings = 20  // of a user, as in MovieLens
	popularity   = 0.9 // exponent of the ratings per item
	meanRating   = 3.53
	userSpread   = 0.43
	itemSpread   = 0.5
	factorSpread = 0.317 // so that the product of 20 has a standard deviation of .45
	noise        = 0.85
	madeRank     = 20
	worst, best  = 1, 5
)

// Input checks the numbers. It returns Invalid for more ratings than there are pairs, and for none.
func (m MadeRatings) Input(name string) (in dataset.SparseInput, err error) {
	if m.Rank == 0 {
		m.Rank = madeRank
	}
	if err := m.HeldOut.check(); err != nil {
		return in, err
	}
	if m.Users < 1 || m.Items < 1 || m.Ratings < m.Users || float64(m.Ratings) > float64(m.Users)*float64(m.Items)/2 ||
		m.Users+m.Items > math.MaxInt32 || m.Rank < 1 {
		return in, &disdel.Error{
			Kind: disdel.Invalid, Op: "generate ratings",
			Msg:  fmt.Sprintf("%d ratings by %d users of %d items, rank %d", m.Ratings, m.Users, m.Items, m.Rank),
			Hint: "each user rates at least once, and at most half of all pairs are rated",
		}
	}
	g := &ratingMaker{MadeRatings: m}
	return dataset.SparseInput{
		Name: name, Title: fmt.Sprintf("%d made ratings, seed %d", m.Ratings, m.Seed), License: "none: made by disdel",
		Classes: 1, Ones: true, Users: m.Users, Items: m.Items, Columns: m.Users + m.Items, Each: g.each,
		Bayes: func() float64 { return g.variance / float64(max(1, g.made)) },
	}, nil
}

// ratingMaker makes the ratings, user by user.
type ratingMaker struct {
	MadeRatings
	reach    []float64 // by item: the sum of the weights up to it
	biases   []float64 // by item
	factors  []float64 // [items rank]
	drawn    []int32   // by item: the last user that it was drawn for, plus 1
	keys     []key
	variance float64 // total unpredictable variance of the ratings
	made     int
}

type key struct {
	value float64
	item  int32
}

// stream is the random numbers for one purpose.
func (m MadeRatings) stream(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(m.Seed), purpose))
}

func (g *ratingMaker) each(yield func(dataset.SparseRow) error) error {
	g.variance, g.made = 0, 0
	g.items()
	counts := g.counts()
	rng, held := g.stream(3), g.HeldOut.picker()
	own, index := make([]float64, g.Rank), make([]int32, 2)
	var items []int32
	for user, n := range counts {
		bias := userSpread * rng.NormFloat64()
		for k := range own {
			own[k] = factorSpread * rng.NormFloat64()
		}
		items = g.draw(items[:0], rng, int32(user), n)
		for _, item := range items {
			mean := meanRating + bias + g.biases[item]
			for k, q := range g.factors[int(item)*g.Rank : (int(item)+1)*g.Rank] {
				mean += own[k] * q
			}
			g.variance += roundedVariance(mean)
			g.made++
			index[0], index[1] = int32(user), int32(g.Users)+item
			row := dataset.SparseRow{Index: index, Target: rated(mean + noise*rng.NormFloat64()), HeldOut: held.next(user)}
			if err := yield(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func rated(v float64) float32 { return float32(min(max(math.Round(v), worst), best)) }

// items draws the means and popularities of items.
func (g *ratingMaker) items() {
	rng := g.stream(1)
	g.reach, g.biases = make([]float64, g.Items), make([]float64, g.Items)
	g.factors, g.drawn = make([]float64, g.Items*g.Rank), make([]int32, g.Items)
	sum := 0.0
	for item, rank := range rng.Perm(g.Items) {
		sum += math.Pow(float64(rank+1), -popularity)
		g.reach[item] = sum
	}
	for item := range g.biases {
		g.biases[item] = itemSpread * rng.NormFloat64()
	}
	for k := range g.factors {
		g.factors[k] = factorSpread * rng.NormFloat64()
	}
}

// counts draws how many ratings each user gives, in total as many as requested.
func (g *ratingMaker) counts() []int {
	rng := g.stream(2)
	minimum, maximum := min(leastRatings, g.Ratings/g.Users), g.Items
	weights, sum := make([]float64, g.Users), 0.0
	for u := range weights {
		weights[u] = math.Exp(activity * rng.NormFloat64())
		sum += weights[u]
	}
	counts, remaining := make([]int, g.Users), g.Ratings
	for u := range counts {
		counts[u] = min(maximum, minimum+int(float64(g.Ratings-minimum*g.Users)*weights[u]/sum))
		remaining -= counts[u]
	}
	for u := 0; remaining > 0; u = (u + 1) % g.Users {
		more := min(remaining, maximum-counts[u], 1+remaining/g.Users)
		counts[u] += more
		remaining -= more
	}
	return counts
}

// draw appends n different items, popular ones more often.
func (g *ratingMaker) draw(items []int32, rng *rand.Rand, user int32, n int) []int32 {
	if n > g.Items/8 {
		return g.drawMany(items, rng, n)
	}
	total := g.reach[g.Items-1]
	for len(items) < n {
		item, _ := slices.BinarySearch(g.reach, rng.Float64()*total)
		if item < g.Items && g.drawn[item] != user+1 {
			g.drawn[item] = user + 1
			items = append(items, int32(item))
		}
	}
	return items
}

// drawMany is draw if retries would take long: it takes the n items with the least exponential times at their rates
// (Efraimidis and Spirakis 2006).
func (g *ratingMaker) drawMany(items []int32, rng *rand.Rand, n int) []int32 {
	g.keys = g.keys[:0]
	before := 0.0
	for item, reach := range g.reach {
		g.keys = append(g.keys, key{rng.ExpFloat64() / (reach - before), int32(item)})
		before = reach
	}
	slices.SortFunc(g.keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.item, b.item))
	})
	for _, k := range g.keys[:n] {
		items = append(items, k.item)
	}
	return items
}

// roundedVariance is the variance of a rating with a known mean before noise and rounding.
func roundedVariance(mean float64) float64 {
	below := func(v float64) float64 { return math.Erfc((mean-v)/(noise*math.Sqrt2)) / 2 }
	var first, second, before float64
	for r := worst; r <= best; r++ {
		until := 1.0
		if r < best {
			until = below(float64(r) + 0.5)
		}
		p := until - before
		first, second, before = first+p*float64(r), second+p*float64(r*r), until
	}
	return second - first*first
}

// MadeClicks are rows made from a seed in the form of advertisements' click logs, such as Criteo's: 13 numbers with
// blanks and 26 categories, some common and most rare, hashed, and a target that is 1 in about a quarter of the rows,
// drawn by a logistic model. That model's own loss is the best possible.
type MadeClicks struct {
	Rows     int
	Features int // columns for hashed categories
	Seed     int64
	HeldOut  HeldOut
}

// The distribution of the clicks. The share of positives is that of Criteo's display advertising challenge.
const (
	clickNumbers    = 13
	clickCategories = 26
	blanks          = 0.2 // share of numbers that are missing
	positives       = 0.256
	numberWeight    = 0.3  // standard deviation of a number's weight
	categoryWeight  = 0.35 // standard deviation of a category's weight, which falls with its rank
	categoryFall    = 0.1
	zipf            = 1.1
	mostValues      = 5.5 // a category has 10 to 10^5.5 texts
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
	values  []uint64  // by category: number of its texts
	bias    float64
	entropy float64 // total loss of the model itself
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

// solveBias is the bias with which so many targets are positive, by rows of its own.
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

// clickDraws is the random numbers of rows.
type clickDraws struct {
	rng    *rand.Rand
	ranks  []*rand.Zipf
	weight *rand.PCG // seeded for each text of a category: the same text always has the same weight
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
	d, held := g.draws(3), g.HeldOut.picker()
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

func (g *clickMaker) add(column int) {
	if at := slices.Index(g.index, int32(column)); at >= 0 {
		g.value[at]++
		return
	}
	g.index, g.value = append(g.index, int32(column)), append(g.value, 1)
}
