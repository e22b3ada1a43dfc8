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

// MadeRatings are ratings that a seed makes: of a factor model with noise, rounded to 1 to 5. Spread and means are
// those of MovieLens; how many ratings a user gives is lognormal, how many an item gets is Zipf's.
type MadeRatings struct {
	Users, Items, Ratings int
	Rank                  int // of the factors behind them; 0: 20
	Seed                  int64
	HeldOut               HeldOut
}

// Like are the sizes of the data sets that a MadeRatings can be as large as.
func Like(name string) (users, items, ratings int, ok bool) {
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

// What the ratings are drawn from. Means and deviations are those that fit MovieLens-100K and its larger sisters.
const (
	activity     = 1.2 // sigma of how many ratings users give
	leastRatings = 20  // of a user: MovieLens leaves others out
	popularity   = 0.9 // exponent of how many items get
	meanRating   = 3.53
	userSpread   = 0.43
	itemSpread   = 0.5
	factorSpread = 0.317 // so that the product of 20 has a deviation of .45
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
	drawn    []int32   // by item: the user that it was drawn for last, and one
	keys     []key
	variance float64 // of the ratings beside what of them can be known, summed up
	made     int
}

type key struct {
	value float64
	item  int32
}

// stream is the numbers of one purpose.
func (m MadeRatings) stream(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(m.Seed), purpose))
}

func (g *ratingMaker) each(yield func(dataset.SparseRow) error) error {
	g.variance, g.made = 0, 0
	g.items()
	counts := g.counts()
	rng, held := g.stream(3), g.HeldOut.picker(g.Users)
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

// items draws how much items are liked, and by how many.
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

// counts draws how many ratings each user gives: all of them together as many as are asked for.
func (g *ratingMaker) counts() []int {
	rng := g.stream(2)
	least, most := min(leastRatings, g.Ratings/g.Users), g.Items
	weights, sum := make([]float64, g.Users), 0.0
	for u := range weights {
		weights[u] = math.Exp(activity * rng.NormFloat64())
		sum += weights[u]
	}
	counts, left := make([]int, g.Users), g.Ratings
	for u := range counts {
		counts[u] = min(most, least+int(float64(g.Ratings-least*g.Users)*weights[u]/sum))
		left -= counts[u]
	}
	for u := 0; left > 0; u = (u + 1) % g.Users {
		more := min(left, most-counts[u], 1+left/g.Users)
		counts[u] += more
		left -= more
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

// drawMany is draw where trying again would take long: the n items with the least of exponential times at their rates
// (Efraimidis and Spirakis 2006).
func (g *ratingMaker) drawMany(items []int32, rng *rand.Rand, n int) []int32 {
	g.keys = g.keys[:0]
	before := 0.0
	for item, reach := range g.reach {
		g.keys = append(g.keys, key{rng.ExpFloat64() / (reach - before), int32(item)})
		before = reach
	}
	slices.SortFunc(g.keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.item, b.item)) })
	for _, k := range g.keys[:n] {
		items = append(items, k.item)
	}
	return items
}

// roundedVariance is the variance of a rating whose mean before noise and rounding is known.
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
