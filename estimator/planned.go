package estimator

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// calibration is what was measured of this runtime and its engine by `make bench-estimator`, on linux/amd64. What a
// process holds beside weights on their way follows from how aggregator and actions handle them: who changes that
// changes these.
type calibration struct {
	// Package is a runtime that has answered /init and opened its store, as the kernel counts it for a container: the
	// Go runtime, the program's data, buffers and page tables. The program's own pages are not in it: see Pages.
	Package disdel.Bytes
	Thread  disdel.Bytes // of each but the first: its stacks and its caches of free memory
	Chunk   disdel.Bytes // of a data set, read at once, without its labels
	// What is held beside weights by who pushes them (columns, encoded and not) and who fetches them (columns
	// received).
	Push, Fetch transferOverhead
	// The same of who reduces updates, each of which that is read ahead is a column: a sum, columns sent, and what is
	// garbage by then.
	Reduce reducing
	// What every node of a network takes, with its arrays, whatever their size: names, shapes, what the engine knows of
	// them.
	TrainNode, EvaluateNode, AggregateNode disdel.Bytes

	// IdleSigma is the standard deviation of the peak of a process that does nothing, HeapSigma that of what is on the Go
	// heap, as a share of it.
	IdleSigma disdel.Bytes
	HeapSigma float64
	// Aggregator is how much less than Package a runtime takes that makes no engine.
	Aggregator disdel.Bytes
	// Residuals are where the interval of nine cases in ten lies around the likely peak, by task.
	Residuals map[disdel.Task]quantiles
	// WatchShare is the share of the limit at which the runtime stops an action before the kernel does.
	WatchShare float64
	// Pages is room for the pages of the program that are in use. The kernel counts them for the container that first
	// asks for them and takes them back when memory is short, so that nobody is killed for them, but one without room
	// for them crawls.
	Pages disdel.Bytes
	// Garbage is what the collector can leave at most, as a share of what is on the heap: the GOGC of an action, as the
	// runtime command sets it, and what is allocated while it works.
	Garbage float64
}

// calibrated is the calibration of this version.
var calibrated = calibration{
	Package: 6*disdel.MB + 512*disdel.KB, Thread: 192 * disdel.KB, Chunk: 4 * disdel.MB,
	Push:  transferOverhead{least: 256 * disdel.KB, share: 2, most: 6*disdel.MB + 512*disdel.KB},
	Fetch: transferOverhead{share: 1, most: 3*disdel.MB + 256*disdel.KB},
	Reduce: reducing{
		least: 102 * disdel.KB, share: 0.5, member: 1.4, ahead: 3, first: 307 * disdel.KB,
		bend: 2 * disdel.MB, then: 1.1, most: 5*disdel.MB + 205*disdel.KB,
	},
	TrainNode: 4500, EvaluateNode: 3200, AggregateNode: 500,
	IdleSigma: 448 * disdel.KB, HeapSigma: 0.015, WatchShare: 0.97, Pages: disdel.MB, Garbage: 1,
	Aggregator: 256 * disdel.KB, Residuals: residuals(),
}

// quantiles are the 5 % and the 95 % quantile of how far peaks are from the likely one, in standard deviations.
type quantiles struct{ low, high float64 }

// residuals are the quantiles of 1,369 train peaks, 700 of evaluations and 706 of aggregations of 360 drawn jobs: the
// seeds 5 to 7, at exact limits and at the least limit of 128 MB. For each seed, this prints the table behind them:
// bin/bench-estimator -parts generated,defaults,calibration -records FILE -seed 5.
func residuals() map[disdel.Task]quantiles {
	return map[disdel.Task]quantiles{
		disdel.TaskTrain: {-0.95, 1.47}, disdel.TaskEvaluate: {-1.02, 0.91}, disdel.TaskAggregate: {-1.45, 2.47},
	}
}

// transferOverhead is the memory that a transfer of weights takes beside the weights themselves: in proportion to them
// as long as they are a few columns, and then no more.
type transferOverhead struct {
	least disdel.Bytes
	share float64 // of the weights
	most  disdel.Bytes
}

func (b transferOverhead) of(weights disdel.Bytes) disdel.Bytes {
	return b.least + min(disdel.Bytes(b.share*float64(weights)), b.most)
}

// reducing is what is held beside a mean on its way: in proportion to it and to the members that are read at once as
// long as all is one column, then columns, which fill up.
type reducing struct {
	least         disdel.Bytes
	share, member float64 // of the weights, and of them again for each member
	ahead         int     // members that are read at once, at most
	bend          disdel.Bytes
	then          float64 // of the weights: what is above bend where all is more than one column
	most          disdel.Bytes
	first         disdel.Bytes // less in a container's first reduction, and a quarter at most
}

func (r reducing) of(in Input) disdel.Bytes {
	weights, members := in.carried(), in.Members
	if in.Members < 1 || members > r.ahead {
		members = r.ahead
	}
	one := r.least + disdel.Bytes((r.share+r.member*float64(members))*float64(weights))
	columns := r.bend + disdel.Bytes(r.then*float64(weights))
	n := min(one, columns)
	if in.Epochs == 1 {
		n -= min(n/4, r.first)
	}
	return min(n, r.most)
}

// nodes is what the nodes of the network take at so much each.
func (in Input) nodes(each disdel.Bytes) disdel.Bytes {
	return disdel.Bytes(len(in.Graph.Nodes)) * each
}

// carried is a reference or an update: weights, and moments where these are averaged, too.
func (in Input) carried() disdel.Bytes {
	n := in.count()
	w := float * disdel.Bytes(n.Trainable+n.NonTrainable)
	if in.Moments == disdel.StateAverage {
		w += in.moments()
	}
	return w
}

func (in Input) moments() disdel.Bytes {
	return float * disdel.Bytes(in.Optimizer.Moments()) * disdel.Bytes(in.count().Trainable)
}

// column is as much of an update as aggregator moves at once, and readAhead how many of them a reduction holds.
const (
	column    = 1000 * disdel.KB
	readAhead = 3
)

// narrow is the bytes of a value on the wire, over those of a float32: 0 where updates are sent as they are.
func (in Input) narrow() float64 {
	if !in.Wire.Differences() {
		return 0
	}
	return in.Wire.SmallShare()
}

// chosen is what a format holds that picks what it sends, and may take more than the values: a column of the weights
// that it goes by, and one being written.
func (in Input) chosen() disdel.Bytes {
	n := in.narrow()
	if n <= 1 {
		return 0
	}
	return disdel.Bytes((1 + n) * float64(min(in.carried(), column)))
}

// moved is what a train action holds of weights outside its engine, in the phase where that is most. A state that is
// stored or recalled inside a round goes array by array, and is hardly more than the update.
func (c calibration) moved(in Input) disdel.Bytes {
	w := in.carried()
	fetch, push := w+c.Fetch.of(w), w+c.Push.of(w)
	// the reference, what earlier rounds lost, the update and what it is encoded to, by a column
	if n := in.narrow(); n > 0 {
		fetch += w
		push = 3*w + disdel.Bytes(n*float64(w)) + c.Push.least + min(2*w, column) + in.chosen()
	}
	if in.Moments == disdel.StateKeep {
		push = max(push, in.kept(c))
	}
	return max(fetch, push)
}

// kept is what storing the moments that a worker continues with takes: the largest array, and a column as values and as
// bytes, or where all is one column that and its message. Fitted footprints were fitted when their backends copied
// their state as a whole, once more for a checkpoint's file, and still have room for that.
func (in Input) kept(c calibration) disdel.Bytes {
	all := in.moments()
	if in.fitted() {
		n := all + c.Push.of(all)
		if in.Checkpoints {
			n += all
		}
		return n
	}
	largest, rounded := 0, disdel.Bytes(0)
	for _, p := range in.Graph.Params() {
		largest = max(largest, p.Len())
	}
	if n := in.narrow(); n > 0 { // what the update lost is kept, too, and it waits encoded
		w := in.carried()
		all += w
		rounded = w + disdel.Bytes(n*float64(w))
	}
	return float*disdel.Bytes(largest) + c.Push.least + min(3*all, 5*column/2) + rounded
}

// train is Eq. 1 with the engine's footprint in the place of Eq. 2 to 4, one batch in the place of Eq. 5's epochs, and
// measured constants for the process. What is off the Go heap is exact.
func (c calibration) train(in Input) disdel.Estimate {
	if in.fitted() {
		return c.fittedTrain(in)
	}
	e := c.planned(in, c.TrainNode)
	e.Model, e.Shard = c.moved(in)+in.exchanged(), in.rows()+in.order()
	return e
}

// evaluate estimates an action that only computes forwards over rows.
func (c calibration) evaluate(in Input) disdel.Estimate {
	if in.fitted() {
		return c.fittedEvaluate(in)
	}
	e := c.planned(in, c.EvaluateNode)
	w := in.carried()
	e.Model, e.Shard = w+c.Fetch.of(w), in.rows()+in.ranked()
	// a batch comes when the weights are in their places, and what they came in is given back
	e.Misc = max(0, e.Misc-e.Model)
	return e
}

// aggregate estimates an action that reduces updates column by column, so that it does not matter how many there are.
func (c calibration) aggregate(in Input) disdel.Estimate {
	w := in.carried()
	beside := c.Reduce.of(in)
	sums := min(2*w, 2*column, beside) // float64
	if n := in.narrow(); n > 1 {       // columns that are read ahead are longer
		beside += disdel.Bytes(readAhead * (n - 1) * float64(min(w, column)))
	}
	return disdel.Estimate{
		Method: MethodPlanned, Package: c.Package - c.Aggregator + in.nodes(c.AggregateNode), Model: w, Parameters: sums,
		Workspace: beside - sums,
	}
}

// planned is the terms of an engine that lays its memory out before, and what its threads and nodes take beside it.
func (c calibration) planned(in Input, node disdel.Bytes) disdel.Estimate {
	e := c.terms(in)
	e.Package += disdel.Bytes(max(in.Threads, 1)-1)*c.Thread + in.nodes(node)
	if e.Device > 0 { // the batch that follows is filled beside the one that a device computes, by a thread more
		e.Package += c.Thread
		e.Misc += in.batch()
	}
	return e
}

// batch is a batch as it is handed over: inputs and labels.
func (in Input) batch() disdel.Bytes {
	return disdel.Bytes(max(1, in.BatchSize)) * (float*disdel.Bytes(in.Graph.Input().Len()) + label)
}

// terms are those that the engine's footprint has. What lies on a device is no part of the process's memory.
func (c calibration) terms(in Input) disdel.Estimate {
	f := in.engine.Outside(footprint.Device)
	e := disdel.Estimate{
		Method: MethodPlanned, Package: c.Package + f.Sum(footprint.Process),
		Parameters:  f.Sum(footprint.Weights, footprint.Moments, footprint.Gradients),
		Weights:     f.Sum(footprint.Weights),
		Activations: f.Sum(footprint.Activations, footprint.Backward),
		Workspace:   f.Sum(footprint.Workspace), Misc: f.Sum(footprint.Batch),
		Device: in.engine.In(footprint.Device), DeviceParts: deviceParts(in.engine),
	}
	if in.fitted() {
		e.Method = methodMeasured
	}
	if in.engine.Layers != nil {
		e.Layers = layers(in)
	}
	if in.engine.Layers != nil && in.Precision.Short() && e.Device == 0 {
		e.Notes = append(e.Notes, in.Precision.Meaning())
	}
	if in.unknown != nil {
		e.Notes = append(e.Notes, "what the engine takes is not known: "+in.unknown.Error())
	}
	return e
}

// deviceParts are the categories of what lies on a device, nil where nothing does.
func deviceParts(f footprint.Footprint) (out []disdel.MemoryPart) {
	for _, p := range f.Parts {
		if p.Memory == footprint.Device && p.Bytes > 0 {
			out = append(out, disdel.MemoryPart{Name: string(p.Category), Bytes: p.Bytes})
		}
	}
	return out
}

// rows is what an action holds of its rows: each with its label, and what every thread resizes one in.
func (in Input) rows() disdel.Bytes {
	return disdel.Bytes(in.Rows)*(in.SampleBytes+label) + disdel.Bytes(max(1, in.Threads))*in.Resizing
}

// order is the order that a train action goes through its rows in.
func (in Input) order() disdel.Bytes { return disdel.Bytes(in.Rows) * place }

const label, place = 4, 4 // bytes

// ranked is the predictions that an evaluation of probabilities keeps, to rank them at its end.
func (in Input) ranked() disdel.Bytes {
	if !in.Graph.Probability() {
		return 0
	}
	return disdel.Bytes(in.Rows) * place
}

// reading is what an action holds while it reads its rows, beside its package: they come a chunk at a time, before the
// engine is made. Of rows drawn by lot each of the data set has a place.
func (c calibration) reading(in Input) disdel.Bytes {
	part := disdel.Bytes(max(in.Rows, in.Part))
	full := max(1, c.Chunk/max(in.SampleBytes, 1)) // rows of a chunk: dataset counts their labels on top
	n := in.rows() + min(part, full)*(in.SampleBytes+label)
	if in.Drawn {
		n += part * place
	}
	return n
}

// layers is what the layers of a network take: every node of the graph but the input.
func layers(in Input) []disdel.LayerEstimate {
	n := in.count()
	out := make([]disdel.LayerEstimate, len(n.Layers))
	for i, l := range n.Layers {
		took := in.engine.Layers[i+1]
		out[i] = disdel.LayerEstimate{
			Name: l.Name, Op: l.Op, Output: l.Output, Parameters: l.Trainable, Activations: l.Outputs, MACs: l.MACs,
			ParameterBytes: took.Weights, ActivationBytes: took.Others,
		}
	}
	return out
}

// fitted tells whether the engine's footprint is factors that were fitted to measured peaks, and not a plan. Then what
// the process takes for threads and nodes is within the factors.
func (in Input) fitted() bool { return in.engine.Basis == footprint.Fitted }

// fittedTrain estimates a train action by such a footprint.
func (c calibration) fittedTrain(in Input) disdel.Estimate {
	e := c.terms(in)
	e.Shard = disdel.Bytes(in.Rows) * (in.SampleBytes + float) // and its label
	e.Model = c.fittedMoved(in) + in.exchanged()
	return e
}

// fittedEvaluate is the same for an action that only computes forwards.
func (c calibration) fittedEvaluate(in Input) disdel.Estimate {
	e := c.terms(in)
	e.Shard, e.Model = disdel.Bytes(in.Rows)*(in.SampleBytes+float), in.carried()
	if in.Epochs > 1 { // a later one takes more than the first
		e.Workspace += in.engine.Later
	}
	return e
}

// fittedMoved is the reference read and the update sent, and what upkeep and wire format add to that. Columns are
// within the spread.
func (c calibration) fittedMoved(in Input) disdel.Bytes {
	w := in.carried()
	return w + max(w, c.moved(in)-c.Push.of(w))
}

// An entry of a delta is an index and a value, and comes in up to nine bytes.
const (
	entryBytes = 8
	entryWire  = 9
)

// exchanged is what a train action holds on the heap to exchange updates after every step: all weights as the engine
// has them, as everybody has them and what is its own; the deltas of the steps that are not folded yet; and those of
// the step that is read, as they come and as they are added. What it wrote and read is garbage after each step, of
// which there is as much again before it is collected, and disdel.ExchangeGarbage.
func (in Input) exchanged() disdel.Bytes {
	x := in.Exchange
	if x == nil || in.Members == 1 {
		return 0
	}
	vectors, members := 3, disdel.Bytes(max(2, in.Members))
	ahead := disdel.Bytes(x.Slack + 1)
	if x.Slack > 0 || x.Order == disdel.OrderEager {
		vectors++ // what was sent and is not folded yet
	}
	kept := ahead * entryBytes // own ones
	if x.Order == disdel.OrderEager {
		vectors++ // what a step begins with
		kept *= members
	}
	n := in.count()
	weights := disdel.Bytes(n.Trainable + n.NonTrainable)
	touched := min(weights, disdel.Bytes(in.Graph.Touched(max(1, in.BatchSize))))
	return float*disdel.Bytes(vectors)*weights + touched*(kept+2*members*(entryBytes+entryWire)) + disdel.ExchangeGarbage
}
