package sparse

import (
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// pairsAtOnce is how many ratings go through a step's parts together: few enough that their rows are near still when
// what was predicted by them becomes their gradient.
const pairsAtOnce = 128

// factors is pass for ratings: a prediction is the offset, the biases of user and item, and the product of their
// factors.
func (e *Engine) factors(b *dataset.Batch, gradient bool) (loss float64) {
	users, items := &e.tables[0], &e.tables[1]
	in, targets := &b.Input, b.Target.Values
	pairs := kernel.Pairs{Users: users.value, Items: items.value, Width: users.width, First: int32(e.net.Users)}
	scale := 1 / float64(in.Rows)
	for from := 0; from < in.Rows; from += pairsAtOnce {
		end := min(from+pairsAtOnce, in.Rows)
		pairs.Index = in.Index[2*from : 2*end]
		out := e.out[from:end]
		e.exact.Products(&pairs, e.offset, out)
		for i, sum := range out {
			if !gradient {
				out[i] = e.predicted(float64(sum))
			}
			if targets == nil {
				continue
			}
			l, slope := e.loss(float64(sum), targets[from+i])
			loss += l
			if gradient {
				out[i] = float32(slope * scale)
			}
		}
		if gradient {
			e.addPairs(&pairs, out)
		}
	}
	return loss
}

// addPairs adds ratings, by their slopes, to the gradients of their users and items. The rows that are touched for the
// first time are cleared together, before.
func (e *Engine) addPairs(p *kernel.Pairs, slopes []float32) {
	users, items := &e.tables[0], &e.tables[1]
	knownUsers, knownItems := users.n, items.n
	places := e.places[:2*len(slopes)]
	for i := 0; i < len(places); i += 2 {
		places[i], places[i+1] = users.place(p.Index[i]), items.place(p.Index[i+1]-p.First)
	}
	clear(users.grad[knownUsers*users.width : users.n*users.width])
	clear(items.grad[knownItems*items.width : items.n*items.width])
	e.exact.Slopes(p, slopes, places, users.grad, items.grad)
}
