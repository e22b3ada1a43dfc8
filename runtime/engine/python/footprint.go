package python

import (
	"cmp"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// standardFactor is what glibc's allocator takes over what is alive, where the description does not say it.
const standardFactor = 1.5

// standardFloor is a process with PyTorch, where the description does not say it.
const standardFloor = 300 * disdel.MB

// libraryPages is room for the pages of PyTorch's libraries that a step reads. The kernel counts them for the container
// that reads them first. It takes them back when memory is short, but then each step waits for the disk.
const libraryPages = 48 * disdel.MB

// spreads are the standard deviations of a peak by how the memory came to be known, as shares.
var spreads = map[string]float64{
	disdel.MemoryTraced: 0.05, disdel.MemoryProbed: 0.08, disdel.MemoryLearned: 0.03, disdel.MemoryGiven: 0.1,
}

// footprintOf computes what a process takes: what lies in the shared file is exact, and its own memory is what the
// description says of the batch, times the allocator's factor.
func footprintOf(s *engine.Spec, c *disdel.CustomNetwork) engine.Footprint {
	p, l := c.Python, newLayout(s, c)
	f := engine.Footprint{Basis: footprint.Fitted, Spread: cmp.Or(spreads[p.Basis], spreads[disdel.MemoryGiven])}
	add := func(category footprint.Category, memory footprint.Memory, n disdel.Bytes) {
		f.Parts = append(f.Parts, footprint.Part{Category: category, Memory: memory, Bytes: n})
	}
	factor := cmp.Or(p.Factor, standardFactor)
	own := func(n disdel.Bytes) disdel.Bytes { return disdel.Bytes(factor * float64(n)) }
	trained, batches := trainedBytes(c), disdel.Bytes(l.Size-l.X[0])
	weights := weightBytes(c)
	add(footprint.Weights, footprint.Host, weights)
	add(footprint.Moments, footprint.Host, disdel.Bytes(len(momentNames(s)))*trained)
	train, infer := interpolate(p.Memory, s.BatchSize)
	if s.Training {
		add(footprint.Gradients, footprint.Host, own(trained))
		add(footprint.Activations, footprint.Host, own(train))
		f.Layers = make([]footprint.Layer, len(s.Graph.Nodes))
		f.Layers[len(f.Layers)-1] = footprint.Layer{
			Weights: f.Sum(footprint.Weights, footprint.Moments, footprint.Gradients),
			Others:  f.Sum(footprint.Activations),
		}
	} else {
		add(footprint.Activations, footprint.Host, own(infer))
		// The program builds its network with weights of its own before they move to the shared file.
		add(footprint.Workspace, footprint.Host, max(0, weights-own(infer)))
	}
	add(footprint.Batch, footprint.Host, batches)
	add(footprint.Batch, footprint.Heap, disdel.Bytes(s.BatchSize*(floatSize*model.Shape(c.Input).Len()+labelSize)))
	floor := cmp.Or(p.Floor, standardFloor)
	add(footprint.Process, footprint.Host, floor)
	f.Pages = min(floor/2, libraryPages)
	return f
}

func trainedBytes(c *disdel.CustomNetwork) (n disdel.Bytes) {
	for _, p := range c.Params {
		if p.Trainable {
			n += disdel.Bytes(floatSize * model.Shape(p.Shape).Len())
		}
	}
	return n
}

func weightBytes(c *disdel.CustomNetwork) (n disdel.Bytes) {
	for _, p := range c.Params {
		n += disdel.Bytes(floatSize * model.Shape(p.Shape).Len())
	}
	for _, p := range c.Python.Integers {
		n += disdel.Bytes(integerSize * model.Shape(p.Shape).Len())
	}
	return n
}

// interpolate is what a batch of so many rows takes: on the line between the two known batches around it, or on that
// of the nearest two. One known batch is taken for proportional to its rows above it, and for the same below it.
func interpolate(known []disdel.PythonMemory, rows int) (train, infer disdel.Bytes) {
	if len(known) == 0 {
		return 0, 0
	}
	known = slices.SortedFunc(slices.Values(known), func(a, b disdel.PythonMemory) int { return a.Batch - b.Batch })
	if len(known) == 1 {
		by := max(1, float64(rows)/float64(max(1, known[0].Batch)))
		return disdel.Bytes(by * float64(known[0].Train)), disdel.Bytes(by * float64(known[0].Infer))
	}
	high := 1
	for high < len(known)-1 && known[high].Batch < rows {
		high++
	}
	a, b := known[high-1], known[high]
	at := float64(rows-a.Batch) / float64(max(1, b.Batch-a.Batch))
	line := func(from, to disdel.Bytes) disdel.Bytes {
		return max(0, from+disdel.Bytes(at*float64(to-from)))
	}
	train, infer = line(a.Train, b.Train), line(a.Infer, b.Infer)
	if rows < known[0].Batch { // below the smallest known batch a line may lose what does not depend on rows
		train, infer = max(train, known[0].Train/2), max(infer, known[0].Infer/2)
	}
	return train, infer
}
