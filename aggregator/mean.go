package aggregator

import "github.com/disdel/disdel"

// Mean is a running weighted mean of updates. It sums in float64 in the order of Add, so that equal orders give equal bits
// and the error does not grow with the fan-in; it holds one sum whatever the number of updates.
type Mean struct {
	like    disdel.Weights
	sums    [][]float64
	samples float64
}

// Add adds weights that stand for samples. It returns Corrupt for shapes other than the first one's.
func (m *Mean) Add(w disdel.Weights, samples float64) error {
	if m.sums == nil {
		m.like = w
		m.sums = make([][]float64, len(w))
		for i, t := range w {
			m.sums[i] = make([]float64, len(t.Data))
		}
	}
	if err := sameShapes(w, m.like); err != nil {
		return &disdel.Error{Kind: disdel.Corrupt, Op: "average updates", Err: err}
	}
	for i, t := range w {
		sum := m.sums[i]
		for k, v := range t.Data {
			sum[k] += samples * float64(v)
		}
	}
	m.samples += samples
	return nil
}

// Result is the mean and the samples behind it. It takes over the memory of the last update added.
func (m *Mean) Result() (disdel.Weights, float64) {
	out := make(disdel.Weights, len(m.like))
	for i, t := range m.like {
		for k := range t.Data {
			t.Data[k] = float32(m.sums[i][k] / m.samples)
		}
		out[i] = t
		m.sums[i] = nil
	}
	return out, m.samples
}
