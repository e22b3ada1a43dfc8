package estimator

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/spelling"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// Input is what an estimate is made from.
type Input struct {
	Graph       *model.Graph
	BatchSize   int          // rows a step
	Rows        int          // of the shard, or held out
	Part        int          // rows of the data set that the rows are read from; below Rows: Rows
	Drawn       bool         // the rows are drawn at random from the part, whose rows all have a place during reading
	SampleBytes disdel.Bytes // of one row as stored
	OnDisk      bool         // the rows are in a file; labels and a row for each thread are in memory
	Resizing    disdel.Bytes // of one row while a thread resizes it; 0: rows keep their stored size
	InBlocks    bool         // an evaluation reads the weights without a copy beside the engine
	Epochs      int
	Optimizer   disdel.Optimizer
	ClipNorm    float64            // above 0: all gradients are kept
	Exact       bool               // convolutions by their definition
	Continues   bool               // texts are continued, one at a time
	Precision   disdel.Precision   // of training steps
	StepMemory  disdel.StepMemory  // of training steps
	Threads     int                // that compute; below 1: 1
	Members     int                // updates that an aggregation reads; below 1: many
	Backend     string             // as the job names it; "": any
	Moments     disdel.StatePolicy // of the optimiser's moments
	Wire        disdel.Wire        // of updates
	Bucket      bool               // checkpoints and models are written to a bucket in the network, not to a folder
	Checkpoints bool               // the state that a worker keeps between rounds is also written to files
	Exchange    *disdel.Exchange   // with the Members after every step; nil: nothing is exchanged inside a round

	counts  *model.Counts       // of Graph; nil until count is called
	engine  footprint.Footprint // of the action's engine
	unknown error               // why engine is not known
}

// count returns the counts of the graph.
func (in *Input) count() *model.Counts {
	if in.counts == nil {
		c := in.Graph.Count()
		in.counts = &c
	}
	return in.counts
}

// Engines knows the memory of a program's backends; engine.Table implements it.
type Engines interface {
	// Name is the backend that computes a network if a job asks for the given one; "" stands for any. custom describes a
	// network that a program brings; nil for others.
	Name(asked string, custom *disdel.CustomNetwork) string
	// Footprint is the memory that an engine of that backend takes.
	Footprint(asked string, s footprint.Spec) (footprint.Footprint, error)
}

// The methods of an Estimator.
const (
	MethodPaper    = "paper"    // the paper's Eq. 1 to 5
	MethodPlanned  = "planned"  // the engine's own plan
	MethodLearned  = "learned"  // the plan, corrected by peaks of earlier jobs
	methodMeasured = "measured" // the backend's footprint is fitted to measured peaks
)

// Estimator estimates memory by a method, at a level of risk. It is safe for concurrent use.
type Estimator struct {
	engines Engines
	method  string
	risk    float64
	past    []sample
}

// DefaultRisk is the accepted chance that an action runs out of memory.
const DefaultRisk = 0.001

// highestRisk is the chance of a peak above Estimate.High: a larger risk would set the limit below the interval.
const highestRisk = 0.05

// Planned returns an Estimator of the method planned at DefaultRisk.
func Planned(engines Engines) Estimator { return Estimator{engines: engines} }

// New returns an Estimator. method "" is planned, risk 0 is DefaultRisk. The method learned learns from past, the
// records of jobs of any kind, newest first; other methods ignore them. New returns Invalid for an unknown method and
// for a risk that is negative or above 0.05.
func New(engines Engines, method string, risk float64, past []disdel.Record) (Estimator, error) {
	methods := []string{MethodPaper, MethodPlanned, MethodLearned}
	e := Estimator{engines: engines, method: method, risk: risk}
	if !(risk >= 0 && risk <= highestRisk) {
		return e, &disdel.Error{
			Kind: disdel.Invalid, Op: "choose estimator", Msg: fmt.Sprintf("a risk of %v", risk),
			Hint: fmt.Sprintf("the risk is a share above 0 and at most %v: --risk 0.001 is one action in 1,000", highestRisk),
		}
	}
	switch method {
	case "", MethodPlanned, MethodPaper:
	case MethodLearned:
		e.past = e.samples(past)
	default:
		hint := "paper, planned or learned"
		if near := spelling.Closest(method, methods); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return e, &disdel.Error{
			Kind: disdel.Invalid, Op: "choose estimator",
			Msg: fmt.Sprintf("there is no estimator %q", method), Hint: hint,
		}
	}
	return e, nil
}

// Train estimates a train action.
func (e Estimator) Train(in Input) disdel.Estimate {
	if e.method == MethodPaper {
		return Paper(in)
	}
	out, _ := e.TrainOrRefuse(in)
	return out
}

// Evaluate estimates an action that only computes forwards over rows: evaluate or infer.
func (e Estimator) Evaluate(in Input) disdel.Estimate {
	if e.method == MethodPaper {
		return paperEvaluate(in)
	}
	in.count()
	e.ask(&in, max(1, min(in.BatchSize, in.Rows)), false) // as the action does
	return e.finish(disdel.TaskEvaluate, in, calibrated.evaluate(in))
}

// EvaluateByLayers estimates an action that computes one slice of the network after the other for all rows of a batch,
// in micro-batches of model.SliceRows. It returns Invalid for a network that is one piece.
func (e Estimator) EvaluateByLayers(in Input) (largest disdel.Estimate, err error) {
	parts, err := in.Graph.Slices()
	if err != nil {
		return largest, err
	}
	rows, widest := max(1, min(in.BatchSize, in.Rows)), 0
	for _, g := range parts[1:] {
		widest = max(widest, g.Input().Len())
	}
	between := float * disdel.Bytes(rows*(in.Graph.Input().Len()+2*widest))
	for _, g := range parts {
		part := in
		part.Graph, part.counts, part.InBlocks = g, nil, true
		part.BatchSize = min(rows, model.SliceRows)
		part.count()
		e.ask(&part, part.BatchSize, false)
		est := calibrated.evaluate(part)
		est.Package += disdel.Bytes(len(in.Graph.Nodes)-len(g.Nodes)) * calibrated.EvaluateNode
		est.Misc += between
		if est = e.finish(disdel.TaskEvaluate, part, est); est.Total > largest.Total {
			largest = est
		}
	}
	largest.ByLayers = true
	return largest, nil
}

// Aggregate estimates an action that reduces updates.
func (e Estimator) Aggregate(in Input) disdel.Estimate {
	if e.method == MethodPaper {
		return paperAggregate(in)
	}
	in.count()
	return e.finish(disdel.TaskAggregate, in, calibrated.aggregate(in))
}

// ask fills in the engine's footprint for batches of so many rows. Without backends the footprint is zero, and the
// estimate says so.
func (e Estimator) ask(in *Input, batch int, training bool) {
	if e.engines == nil {
		in.unknown = &disdel.Error{Kind: disdel.Invalid, Op: "estimate memory", Msg: "the estimator was given no backends"}
		return
	}
	in.engine, in.unknown = e.engines.Footprint(in.Backend, footprint.Spec{
		Graph: in.Graph, BatchSize: batch, Training: training, Optimizer: in.Optimizer, ClipNorm: in.ClipNorm,
		Exact: in.Exact, Precision: in.Precision, StepMemory: in.StepMemory, Threads: in.Threads,
		Continues: in.Continues,
	})
}

// TrainOrRefuse is Train, and the error of a backend that does not train as in says. Without backends it is Train.
func (e Estimator) TrainOrRefuse(in Input) (disdel.Estimate, error) {
	if e.method == MethodPaper {
		return Paper(in), nil
	}
	in.count()
	e.ask(&in, max(in.BatchSize, 1), true)
	out := e.finish(disdel.TaskTrain, in, calibrated.train(in))
	if e.engines == nil {
		return out, nil
	}
	return out, in.unknown
}

// Saves tells whether a train action of in takes less memory in precision p. It is false if the engine lacks p or is
// unknown.
func (e Estimator) Saves(in Input, p disdel.Precision) bool {
	other, batch := in, max(in.BatchSize, 1)
	other.Precision = p
	e.ask(&in, batch, true)
	e.ask(&other, batch, true)
	return in.unknown == nil && other.unknown == nil &&
		other.engine.Outside(footprint.Device).Total() < in.engine.Outside(footprint.Device).Total()
}

// computes is the name of the backend that computes a network if a job asks for the given one.
func (e Estimator) computes(asked string, custom *disdel.CustomNetwork) string {
	if e.engines == nil {
		return asked
	}
	return e.engines.Name(asked, custom)
}

// Default tells whether a backend computes networks that name none.
func (e Estimator) Default(backend string) bool {
	return e.computes(backend, nil) == e.computes("", nil)
}

// finish corrects the terms by earlier jobs, and adds interval, margin and total.
func (e Estimator) finish(task disdel.Task, in Input, est disdel.Estimate) disdel.Estimate {
	risk := e.risk
	if risk == 0 {
		risk = DefaultRisk
	}
	n := calibrated.keepGarbage(calibrated.phases(task, in, sum(est)))
	if e.method == MethodLearned {
		n = e.learn(task, in, n)
	}
	return calibrated.margin(n, risk)
}

// sum fills in fit (Eq. 2) and the likely peak (Eq. 1 without its margin).
func sum(e disdel.Estimate) disdel.Estimate {
	e.Training = e.Parameters + e.Activations + e.Misc + e.Workspace
	e.Likely = e.Training + e.Package + e.Shard + e.Model
	return e
}

// ContainerRule is DiSDeL's rule for the number of workers (III-B.1). It starts with two containers. While the
// estimate m_e of each is above limit M, it adds ceil((m_e - M) / M) containers and estimates again with the smaller
// shards. Only the shard shrinks, so a model that exceeds M without data never fits. More than maximum containers would
// leave shards without a batch. Both are OverLimit with the arithmetic. steps are the decisions in words.
func ContainerRule(limit disdel.Bytes, maximum int, estimate func(containers int) disdel.Estimate) (containers int,
	e disdel.Estimate, steps []string, err error,
) {
	return containerRule(limit, maximum, estimate, func(e disdel.Estimate) bool { return e.Total-e.Shard > limit })
}

// SharedContainerRule is ContainerRule for workers that share a batch, which shrinks with the shard. A model that
// exceeds M without data may still fit with more workers, up to maximum.
func SharedContainerRule(
	limit disdel.Bytes, maximum int, estimate func(containers int) disdel.Estimate,
) (containers int, e disdel.Estimate, steps []string, err error) {
	return containerRule(limit, maximum, estimate, func(e disdel.Estimate) bool {
		return e.Total-e.Shard > limit && estimate(maximum).Total > limit
	})
}

// containerRule is both rules. hopeless tells whether more containers cannot bring an estimate below the limit.
func containerRule(limit disdel.Bytes, maximum int, estimate func(containers int) disdel.Estimate,
	hopeless func(disdel.Estimate) bool,
) (containers int, e disdel.Estimate, steps []string, err error) {
	containers = min(2, maximum)
	for {
		e = estimate(containers)
		if e.Total <= limit {
			return containers, e, append(steps,
				fmt.Sprintf("workers: %d need %v each, and %v are allowed", containers, e.Total, limit)), nil
		}
		if containers >= maximum || hopeless(e) {
			return 0, e, steps, overLimit(limit, maximum, e)
		}
		more := int((e.Total - limit + limit - 1) / limit)
		steps = append(steps, fmt.Sprintf("workers: %d would need %v each, above %v: add %d", containers, e.Total, limit,
			more))
		containers = min(containers+more, maximum)
	}
}

func overLimit(limit disdel.Bytes, maximum int, e disdel.Estimate) error {
	fixed := e.Total - e.Shard
	out := &disdel.Error{
		Kind: disdel.OverLimit, Op: "plan job",
		Hint: "lower training.batchSize, choose a smaller network, or raise the memory limit",
	}
	if fixed > limit {
		out.Msg = fmt.Sprintf("a train action needs %v without any data (fit %v, package %v, model %v, margin %v), and the "+
			"limit is %v: no number of workers makes it fit",
			fixed, e.Training, e.Package, e.Model, e.Margin, limit)
		return out
	}
	out.Msg = fmt.Sprintf("a train action needs %v even with %d workers, the most that leave each a whole batch, and "+
		"the limit is %v", e.Total, maximum, limit)
	return out
}
