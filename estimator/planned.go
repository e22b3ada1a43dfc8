package estimator

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// calibration is what `make bench-estimator` measured of this runtime and its engine on linux/amd64. The memory
// around weights follows from how aggregator and actions handle them: whoever changes those changes these figures.
type calibration struct {
	// Package is the memory of a runtime after /init with an open store, as the kernel counts it for a container: the Go
	// runtime, the program's data, buffers and page tables. It excludes the program's own pages: see Pages.
	Package disdel.Bytes
	Thread  disdel.Bytes // of each but the first: its stacks and its caches of free memory
	Chunk   disdel.Bytes // of a data set, read at once, without its labels
	// Memory beside the weights while they are pushed (columns, encoded or not) and fetched (columns received).
	Push, Fetch transferOverhead
	// Memory around the columns of an aggregation.
	Reduce reducing
	// Memory to write files of weights to a bucket in the network, beside the weights that are in memory: the parts that
	// S3's client holds, and its connections.
	Upload transferOverhead
	// Memory of every node of a network beside the values of its arrays: names, shapes, the engine's own data.
	TrainNode, EvaluateNode, AggregateNode disdel.Bytes

	// IdleSigma is the standard deviation of the peak of an idle process. HeapSigma is that of the Go heap, as a share.
	IdleSigma disdel.Bytes
	HeapSigma float64
	// Aggregator is how much less than Package a runtime without an engine takes.
	Aggregator disdel.Bytes
	// Once is how much less an action with an engine takes in a job of one epoch: its process computes only once.
	Once disdel.Bytes
	// Residuals are the ends of the 90 % interval around the likely peak, by task.
	Residuals map[disdel.Task]quantiles
	// WatchShare is the share of the limit at which the runtime stops an action before the kernel does.
	WatchShare float64
	// Pages is room for the program's pages in use. The kernel counts them for the container that first asks for them
	// and takes them back when memory is short. So they kill no process, but a process without room for them crawls.
	Pages disdel.Bytes
	// Garbage is the most garbage on the heap, as a share of it: the GOGC of an action as the runtime command sets it,
	// and allocations while the collector works.
	Garbage float64
	// Kept is the garbage that a small action keeps, in its likely peak. It grows from KeptAbove on, and fades to none at
	// KeptBelow.
	Kept, KeptAbove, KeptBelow disdel.Bytes
}

// calibrated is the calibration of this version.
var calibrated = calibration{
	Package: 7*disdel.MB + 160*disdel.KB, Thread: 192 * disdel.KB, Chunk: 4 * disdel.MB,
	Push:      transferOverhead{minimum: 256 * disdel.KB, share: 2, maximum: 6*disdel.MB + 512*disdel.KB},
	Fetch:     transferOverhead{share: 1, maximum: 3*disdel.MB + 256*disdel.KB},
	Reduce:    reducing{minimum: 102 * disdel.KB, reused: 550 * disdel.KB, share: 0.06, first: 0.1},
	Upload:    transferOverhead{minimum: disdel.MB, share: 1.2, maximum: 14 * disdel.MB},
	TrainNode: 4500, EvaluateNode: 3200, AggregateNode: 500,
	IdleSigma: 400 * disdel.KB, HeapSigma: 0.015, WatchShare: 0.97, Pages: disdel.MB, Garbage: 1,
	Kept: 384 * disdel.KB, KeptAbove: 6*disdel.MB + 600*disdel.KB, KeptBelow: 11 * disdel.MB,
	Aggregator: 32 * disdel.KB, Once: 192 * disdel.KB, Residuals: residuals(),
}

// quantiles are the 5 % and the 95 % quantile of the difference between peak and likely peak, in standard deviations.
type quantiles struct{ low, high float64 }

// residuals are the quantiles of trainings and evaluations of 240 drawn jobs: the seeds 5 and 6, at exact limits and at
// the least limit of 128 MB. Those of aggregations are of 226 peaks of seed 31. For each seed, this prints the table
// behind them: bin/bench-estimator -parts generated,defaults,calibration -records FILE -seed 5.
func residuals() map[disdel.Task]quantiles {
	return map[disdel.Task]quantiles{
		disdel.TaskTrain: {-1.2, 1.5}, disdel.TaskEvaluate: {-1.4, 1.2}, disdel.TaskAggregate: {-1.8, 2.3},
	}
}

// transferOverhead is the memory that a transfer of weights takes beside the weights. It is proportional to the
// weights up to a few columns, and then constant.
type transferOverhead struct {
	minimum disdel.Bytes
	share   float64 // of the weights
	maximum disdel.Bytes
}

func (b transferOverhead) bytesFor(weights disdel.Bytes) disdel.Bytes {
	return b.minimum + min(disdel.Bytes(b.share*float64(weights)), b.maximum)
}

// reducing is the memory of an aggregation that computes a mean by columns. Some of the columns are in memory that the
// process had before, up to a third of them.
type reducing struct {
	minimum disdel.Bytes // beside the columns
	reused  disdel.Bytes // columns in memory that is there
	share   float64      // more of that, of the columns
	first   float64      // less in a container's first reduction, of the columns
}

func (r reducing) bytesFor(in Input) disdel.Bytes {
	columns := in.columns()
	n := r.minimum + columns - min(columns/3, r.reused+disdel.Bytes(r.share*float64(columns)))
	if in.Epochs == 1 {
		n -= disdel.Bytes(r.first * float64(columns))
	}
	return n
}

// columns is the memory of all columns that a reduction holds: those that it reads ahead, their sums, the means, and
// those that are being written, if there are more than one.
func (in Input) columns() disdel.Bytes {
	w := in.carried()
	one := min(w, column)
	n := in.readAhead() + sumSize*one + one + min(w-one, writeAhead*column)
	if short := in.narrow(); short > 0 && short < 1 { // values are decoded before they are added
		n += one
	}
	return n
}

// nodes is the memory of the network's nodes, given that of one.
func (in Input) nodes(each disdel.Bytes) disdel.Bytes {
	return disdel.Bytes(len(in.Graph.Nodes)) * each
}

// carried is the size of a reference or an update: weights without those of frozen layers, and moments if these are
// averaged, too.
func (in Input) carried() disdel.Bytes {
	n := in.count()
	w := float * disdel.Bytes(n.Trainable+n.NonTrainable-n.Frozen)
	if in.Moments == disdel.StateAverage {
		w += in.moments()
	}
	return w
}

func (in Input) moments() disdel.Bytes {
	return float * disdel.Bytes(in.Optimizer.Moments()) * disdel.Bytes(in.count().Trainable)
}

// column is the part of an update that aggregator moves at once. A reduction reads readAhead of them ahead, and writes
// writeAhead while it goes on.
const (
	column     = 1000 * disdel.KB
	readAhead  = 3
	writeAhead = 2
	sumSize    = 2 // float64 over float32
)

// narrow is the size of a value in the wire format, as a share of a float32; 0 if updates are sent as float32.
func (in Input) narrow() float64 {
	if !in.Wire.Differences() {
		return 0
	}
	return in.Wire.SmallShare()
}

// chosen is the memory of a format that selects what it sends and may take more than the values: one column of
// weights to compare with, and one that is being written.
func (in Input) chosen() disdel.Bytes {
	n := in.narrow()
	if n <= 1 {
		return 0
	}
	return disdel.Bytes((1 + n) * float64(min(in.carried(), column)))
}

// given is the memory to read frozen weights from the checkpoint that training began with, array by array.
func (in Input) given() disdel.Bytes {
	largest := 0
	if in.count().Frozen == 0 {
		return 0
	}
	for _, p := range in.Graph.Params() {
		if p.Frozen {
			largest = max(largest, p.Len())
		}
	}
	return 2 * float * disdel.Bytes(largest)
}

// moved is the memory of weights outside the engine of a train action, in the phase that takes most. A state that is
// stored or loaded inside a round goes array by array, and is hardly more than the update.
func (c calibration) moved(in Input) disdel.Bytes {
	w := in.carried()
	fetch, push := w+c.Fetch.bytesFor(w)+in.given(), w+c.Push.bytesFor(w)
	if in.trainsInBlocks() { // a few columns, and no copies
		fetch, push = 2*min(w, column)+c.Fetch.bytesFor(w)+in.given(), c.Push.bytesFor(w)
	}
	// the reference, the loss of earlier rounds, the update and its encoding, by a column
	if n := in.narrow(); n > 0 {
		fetch += w
		push = 3*w + disdel.Bytes(n*float64(w)) + c.Push.minimum + min(2*w, column) + in.chosen()
	}
	if in.Moments == disdel.StateKeep {
		push = max(push, in.kept(c))
	}
	return max(fetch, push)
}

// trainsInBlocks tells whether a train action reads and sends weights without a copy of them: where moments are in a
// file. It then stores large arrays in parts of storedValues, too.
func (in Input) trainsInBlocks() bool {
	return !in.fitted() && in.StepMemory.StateFormat.Paged() && in.narrow() == 0 && in.Moments != disdel.StateAverage &&
		in.Exchange == nil
}

const storedValues = 2 << 20

// kept is the memory to store the moments that a worker continues with: the largest array, and one column as values
// and as bytes (or, if everything is one column, that and its message). Fitted footprints were fitted when their
// backends copied the whole state, and once more for a checkpoint's file. They still have room for that.
func (in Input) kept(c calibration) disdel.Bytes {
	all := in.moments()
	if in.fitted() {
		n := all + c.Push.bytesFor(all)
		if in.Checkpoints {
			n += all
		}
		return n
	}
	largest, rounded := 0, disdel.Bytes(0)
	for _, p := range in.Graph.Params() {
		n := p.Len()
		if in.trainsInBlocks() {
			n = min(n, max(storedValues, n/p.Shape[0]))
		}
		largest = max(largest, n)
	}
	if n := in.narrow(); n > 0 { // the update's loss and its encoding are kept, too
		w := in.carried()
		all += w
		rounded = w + disdel.Bytes(n*float64(w))
	}
	return float*disdel.Bytes(largest) + c.Push.minimum + min(3*all, 5*column/2) + rounded
}

// train is Eq. 1 with the engine's footprint in place of Eq. 2 to 4, one batch in place of Eq. 5's epochs, and
// measured constants of the process. Everything outside of the Go heap is exact.
func (c calibration) train(in Input) disdel.Estimate {
	if in.fitted() {
		return c.fittedTrain(in)
	}
	e := c.planned(in, c.TrainNode)
	if s := in.Graph.Slice; s != nil { // a stage knows the whole network
		e.Package += disdel.Bytes(len(s.Whole.Nodes)-len(in.Graph.Nodes)) * c.EvaluateNode
	}
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
	e.Model, e.Shard = w+c.Fetch.bytesFor(w)+in.given(), in.rows()+in.ranked()
	if in.InBlocks { // a few columns, and no copy
		if n := 2*min(w, column) + c.Fetch.bytesFor(w) + in.given(); n < e.Model {
			e.Model, e.InBlocks = n, true
		}
	}
	// a batch comes when the weights are loaded, and their buffers are free again
	e.Misc = max(0, e.Misc-e.Model)
	return e
}

// aggregate estimates an action that reduces updates column by column: neither their number nor the size of the model
// matters, beyond a few columns. The last one has the frozen weights in memory when it writes the model.
func (c calibration) aggregate(in Input) disdel.Estimate {
	w, frozen := in.carried(), float*disdel.Bytes(in.count().Frozen)
	all, sums := c.Reduce.bytesFor(in), sumSize*min(w, column)
	if in.Bucket { // the next reference is read in columns
		all = max(all, c.Upload.bytesFor(w+frozen)+min(w, readAhead*column)+min(w, column))
	}
	return disdel.Estimate{
		Method: MethodPlanned, Package: c.Package - c.Aggregator + in.nodes(c.AggregateNode), Parameters: sums,
		Workspace: all - sums + frozen, Update: w,
	}
}

// readAhead is the memory of the columns that a reduction reads ahead. Every buffer holds the longest of the columns
// that come in turn: those of the members and, if these are differences, of the reference.
func (in Input) readAhead() disdel.Bytes {
	w, members := in.carried(), in.Members
	if members < 1 || members > readAhead {
		members = readAhead
	}
	one, n := min(w, column), in.narrow()
	if n == 0 || n >= 1 {
		all := min(readAhead*one, disdel.Bytes(members)*one+w-one)
		return disdel.Bytes(max(1, n) * float64(all))
	}
	short := disdel.Bytes(members) * disdel.Bytes(n*float64(one))
	if (in.Members+1)%readAhead == 0 { // the reference always has the same buffer
		return one + short
	}
	return min(readAhead*one, w+short)
}

// planned is the terms of an engine that plans its memory, and the memory of its threads and nodes.
func (c calibration) planned(in Input, node disdel.Bytes) disdel.Estimate {
	e := c.terms(in)
	e.Package += disdel.Bytes(max(in.Threads, 1)-1)*c.Thread + in.nodes(node)
	e.Package -= c.once(in)
	if e.Device > 0 { // another thread fills the next batch while a device computes
		e.Package += c.Thread
		e.Misc += in.batch()
	}
	return e
}

// once is how much less the process of an action with an engine takes because it computes only once.
func (c calibration) once(in Input) disdel.Bytes {
	if in.Epochs == 1 {
		return c.Once
	}
	return 0
}

// batch is the size of one batch: inputs and labels.
func (in Input) batch() disdel.Bytes {
	return disdel.Bytes(max(1, in.BatchSize)) * (float*disdel.Bytes(in.Graph.Input().Len()) + label)
}

// terms are the terms of the engine's footprint. Memory on a device is no part of the process's memory.
func (c calibration) terms(in Input) disdel.Estimate {
	f := in.engine.Outside(footprint.Device)
	e := disdel.Estimate{
		Method: MethodPlanned, Package: c.Package + f.Sum(footprint.Process),
		Parameters:  f.Sum(footprint.Weights, footprint.Moments, footprint.Gradients),
		Weights:     f.Sum(footprint.Weights),
		Activations: f.Sum(footprint.Activations, footprint.Backward),
		Workspace:   f.Sum(footprint.Workspace), Misc: f.Sum(footprint.Batch),
		Device: in.engine.In(footprint.Device), DeviceParts: deviceParts(in.engine), Extra: in.engine.Extra,
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

// deviceParts are the categories of the memory on a device, nil if there is none.
func deviceParts(f footprint.Footprint) (out []disdel.MemoryPart) {
	for _, p := range f.Parts {
		if p.Memory == footprint.Device && p.Bytes > 0 {
			out = append(out, disdel.MemoryPart{Name: string(p.Category), Bytes: p.Bytes})
		}
	}
	return out
}

// rows is the memory of the action's rows with their labels, and of the image that each thread resizes. Rows on disk
// have their places in the file instead.
func (in Input) rows() disdel.Bytes {
	threads := disdel.Bytes(max(1, in.Threads))
	if in.OnDisk {
		return disdel.Bytes(in.Rows)*(label+place) + threads*(in.Resizing+in.SampleBytes)
	}
	return disdel.Bytes(in.Rows)*(in.SampleBytes+label) + threads*in.Resizing
}

// order is the memory of the order in which a train action reads its rows.
func (in Input) order() disdel.Bytes { return disdel.Bytes(in.Rows) * place }

const label, place = 4, 4 // bytes

// ranked is the memory of the predictions that an evaluation of probabilities ranks at its end.
func (in Input) ranked() disdel.Bytes {
	if !in.Graph.Probability() {
		return 0
	}
	return disdel.Bytes(in.Rows) * place
}

// reading is the memory of an action while it reads its rows, beside its package. It reads a chunk at a time before
// it makes the engine. For rows that are drawn at random, each row of the data set has a place.
func (c calibration) reading(in Input) disdel.Bytes {
	part := disdel.Bytes(max(in.Rows, in.Part))
	full := max(1, c.Chunk/max(in.SampleBytes, 1)) // rows of a chunk, without labels
	n := in.rows() + min(part, full)*(in.SampleBytes+label)
	if in.Drawn {
		n += part * place
	}
	return n
}

// layers is the memory of the network's layers: every node of the graph but the input.
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

// fitted tells whether the engine's footprint is a fit to measured peaks, and not a plan. Then the factors include
// threads and nodes.
func (in Input) fitted() bool { return in.engine.Basis == footprint.Fitted }

// fittedTrain estimates a train action by a fitted footprint.
func (c calibration) fittedTrain(in Input) disdel.Estimate {
	e := c.terms(in)
	e.Shard = disdel.Bytes(in.Rows) * (in.SampleBytes + float) // and its label
	if in.OnDisk {
		e.Shard = in.rows()
	}
	e.Model = c.fittedMoved(in) + in.exchanged()
	return e
}

// fittedEvaluate estimates an action that only computes forwards by a fitted footprint.
func (c calibration) fittedEvaluate(in Input) disdel.Estimate {
	e := c.terms(in)
	e.Shard, e.Model = disdel.Bytes(in.Rows)*(in.SampleBytes+float), in.carried()
	if in.Epochs > 1 { // later evaluations take more than the first
		e.Workspace += in.engine.Later
	}
	return e
}

// fittedMoved is the reference and the update, and the additions of state policy and wire format. The spread includes
// columns.
func (c calibration) fittedMoved(in Input) disdel.Bytes {
	w := in.carried()
	return w + max(w, c.moved(in)-c.Push.bytesFor(w))
}

// An entry of a delta is an index and a value; on the wire it takes up to nine bytes.
const (
	entryBytes = 8
	entryWire  = 9
)

// exchanged is the heap of a train action that exchanges updates after every step: three copies of the weights (the
// engine's, the common ones, the worker's own), the deltas of the steps that are not folded yet, and those of the
// step that is being read. Garbage adds as much again, and disdel.ExchangeGarbage.
func (in Input) exchanged() disdel.Bytes {
	x := in.Exchange
	if x == nil || in.Members == 1 {
		return 0
	}
	vectors, members := 3, disdel.Bytes(max(2, in.Members))
	ahead := disdel.Bytes(x.Slack + 1)
	if x.Slack > 0 || x.Order == disdel.OrderEager {
		vectors++ // sent and not folded yet
	}
	kept := ahead * entryBytes // own deltas
	if x.Order == disdel.OrderEager {
		vectors++ // the weights at the start of a step
		kept *= members
	}
	n := in.count()
	weights := disdel.Bytes(n.Trainable + n.NonTrainable)
	touched := min(weights, disdel.Bytes(in.Graph.Touched(max(1, in.BatchSize))))
	return float*disdel.Bytes(vectors)*weights + touched*(kept+2*members*(entryBytes+entryWire)) + disdel.ExchangeGarbage
}
