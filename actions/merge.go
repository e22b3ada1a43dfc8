package actions

import (
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
)

// merging makes the weights of a trained model of trained arrays, which come in blocks, and of frozen ones. It adds the
// products of adapters to the weights of their layers, and leaves the adapters out.
type merging struct {
	graph    *model.Graph
	trained  disdel.Weights       // names and shapes, in the order of the graph
	frozen   map[string][]float32 // by name
	factor   float64              // of adapters
	adapters map[string]*lowRank  // by the name of the weight that it belongs to
}

// readAdapters reads the adapters, which are all of the trained arrays that are in memory at once.
func (m *merging) readAdapters(trained modelstore.Values) error {
	m.adapters = map[string]*lowRank{}
	parts := map[string]*[]float32{}
	for _, layer := range m.graph.AdaptedLayers() {
		weight, down, up := model.AdapterArrays(layer)
		a := &lowRank{factor: m.factor}
		m.adapters[weight], parts[down], parts[up] = a, &a.down, &a.up
	}
	if len(parts) == 0 {
		return nil
	}
	err := eachBlock(m.trained, trained, func(t disdel.Tensor, _ bool, block []float32) error {
		if part := parts[t.Name]; part != nil {
			*part = append(*part, block...)
		}
		return nil
	})
	for _, p := range m.graph.Params() {
		if a := m.adapters[p.Name]; a != nil {
			a.inputs, a.rank = p.Shape[1], len(a.up)/p.Shape[0]
		}
	}
	return err
}

// shapes are those of the model's arrays.
func (m *merging) shapes() (out disdel.Weights) {
	for _, p := range m.graph.Params() {
		if m.graph.AdapterOf(p) == 0 {
			out = append(out, disdel.Tensor{Name: p.Name, Shape: p.Shape})
		}
	}
	return out
}

// values are the values of the model's arrays: before each trained array come the frozen ones that precede it.
func (m *merging) values(trained modelstore.Values) modelstore.Values {
	return func(take func([]float32) error) error {
		params := m.graph.Params()
		frozen := func(until string) error {
			for len(params) > 0 && params[0].Name != until {
				if p := params[0]; p.Frozen {
					if err := m.adapters[p.Name].addTo(m.frozen[p.Name], take); err != nil {
						return err
					}
				}
				params = params[1:]
			}
			return nil
		}
		err := eachBlock(m.trained, trained, func(t disdel.Tensor, begins bool, block []float32) error {
			if begins {
				if err := frozen(t.Name); err != nil {
					return err
				}
			}
			if m.graph.AdapterOf(params[0]) != 0 {
				return nil
			}
			return take(block)
		})
		if err != nil {
			return err
		}
		return frozen("")
	}
}

// eachBlock calls f with the blocks of every array in turn. begins: the block is the first one of its array.
func eachBlock(like disdel.Weights, values modelstore.Values,
	f func(t disdel.Tensor, begins bool, block []float32) error,
) error {
	k, at := 0, 0
	return values(func(block []float32) error {
		for len(block) > 0 {
			size := model.Shape(like[k].Shape).Len()
			n := min(len(block), size-at)
			if err := f(like[k], at == 0, block[:n]); err != nil {
				return err
			}
			if block, at = block[n:], at+n; at == size {
				k, at = k+1, 0
			}
		}
		return nil
	})
}

// lowRank is an adapter: factor times the product of up [outputs rank] and down [rank inputs].
type lowRank struct {
	factor       float64
	inputs, rank int
	down, up     []float32
}

// mergedBlock is the number of values that are added at once.
const mergedBlock = 1 << 14

// addTo calls take with the blocks of a weight [outputs inputs] plus the product, whose sums are float64. A nil adapter
// adds nothing.
func (a *lowRank) addTo(weight []float32, take func([]float32) error) error {
	at, block := 0, make([]float32, 0, min(len(weight), mergedBlock))
	for values := range slices.Chunk(weight, mergedBlock) {
		block = append(block[:0], values...)
		for i := range block {
			if a != nil {
				block[i] = float32(float64(block[i]) + a.factor*a.product((at+i)/a.inputs, (at+i)%a.inputs))
			}
		}
		if err := take(block); err != nil {
			return err
		}
		at += len(block)
	}
	return nil
}

// product is a value of the product of up and down.
func (a *lowRank) product(row, column int) (sum float64) {
	for k := range a.rank {
		sum += float64(a.up[row*a.rank+k]) * float64(a.down[k*a.inputs+column])
	}
	return sum
}
