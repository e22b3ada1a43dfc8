package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/spelling"
	"github.com/disdel/disdel/model"
)

// Resolved is a job with its network and data set.
type Resolved struct {
	Job     disdel.Job
	Network disdel.Network
	Graph   *model.Graph
	Data    disdel.DataInfo
	Labels  []string // class names, if the data set has them
	Notes   []string // changes that the job file does not say
}

// Datasets finds the data sets that a job can name, as dataset.Store does.
type Datasets interface {
	Manifest(ctx context.Context, name string) (dataset.Manifest, error)
	List(ctx context.Context) ([]dataset.Manifest, error)
	// ClassRows reads the number of training rows of each class, for balanced class weights.
	ClassRows(ctx context.Context, name string) ([]int, error)
}

// Locator returns the place of a field in the job file, 0 if there is none.
type Locator func(path string) (line, column int)

// Resolve finds the network and the data set of a job and checks what a job file alone cannot tell. It returns every
// fault at once, including earlier, those of the file's own check: in file order, as *disdel.Faults.
func Resolve(ctx context.Context, job disdel.Job, data Datasets, file string, locate Locator,
	earlier []disdel.Fault,
) (Resolved, error) {
	// a program may have set only one of the two fields
	job.Training = job.Training.Resized(job.Training.JobBatch())
	r := resolver{Resolved: Resolved{Job: job}, locate: locate, faults: earlier}
	if err := r.data(ctx, data); err != nil {
		return r.Resolved, err
	}
	r.network()
	r.replaceHead()
	r.freeze()
	r.adapt()
	r.recompute()
	r.fit()
	if len(r.faults) == 0 {
		return r.Resolved, nil
	}
	sort.SliceStable(r.faults, func(i, j int) bool {
		a, b := r.faults[i], r.faults[j]
		return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column
	})
	return r.Resolved, &disdel.Faults{File: file, Faults: r.faults}
}

type resolver struct {
	Resolved
	locate Locator
	faults []disdel.Fault
	found  bool // the data set exists
}

// fault adds a fault at path, unless the file's own check has one there.
func (r *resolver) fault(path, hint, format string, args ...any) {
	for _, f := range r.faults {
		if f.Path == path {
			return
		}
	}
	line, column := r.locate(path)
	r.faults = append(r.faults,
		disdel.Fault{Path: path, Line: line, Column: column, Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// given tells whether the job file has a field of an object. The place of a field that it does not have is that of the
// object.
func (r *resolver) given(object, field string) bool {
	line, column := r.locate(object + "." + field)
	aroundLine, aroundColumn := r.locate(object)
	return line != aroundLine || column != aroundColumn
}

// DataName is the name of the data set in data.source.
func DataName(source string) string { return strings.TrimPrefix(source, "dataset://") }

func (r *resolver) data(ctx context.Context, store Datasets) error {
	name := DataName(r.Job.Data.Source)
	if name == "" || name == r.Job.Data.Source {
		return nil // the file's own check has reported it
	}
	m, err := store.Manifest(ctx, name)
	switch disdel.KindOf(err) {
	case disdel.UnknownKind:
	case disdel.NotFound, disdel.Invalid:
		hint := disdel.AsError(err).Hint
		if near := spelling.Closest(name, names(ctx, store)); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		r.fault("data.source", hint, "there is no data set %q here", name)
		return nil
	default:
		return err
	}
	if want := r.Job.Data.Checksum; want != "" && want != m.Checksum() {
		r.fault("data.checksum", "", "data set %s has checksum %s", name, m.Checksum())
	}
	if r.Job.Data.Resize > 0 && (len(m.Sample) != 3 || m.Sample[1] == 1 && m.Sample[2] > 1) {
		r.fault("data.resize", "take it out", "the rows of %s are %v, no images", name, m.Sample)
		return nil
	}
	if r.Job.Data.Keep == disdel.KeepDisk && m.Sparse != nil {
		r.fault("data.keep", "take it out", "the rows of %s are sparse, and stay in memory", m.Name)
	}
	r.Resolved.Data, r.Labels, r.found = m.Info(r.Job.Data.Split).Resized(r.Job.Data.Resize), m.ClassNames, true
	r.Resolved.Data.Name = name // with the owner of a shared one
	r.numericLabels(m)
	r.augment(m)
	return r.weighClasses(ctx, m, store)
}

// weighClasses replaces the job's class weights by one weight for each class of the data set.
func (r *resolver) weighClasses(ctx context.Context, m dataset.Manifest, store Datasets) error {
	const path = "training.classWeights"
	w := &r.Job.Training.ClassWeights
	if *w == "" || w.Check() != nil { // the file's own check has reported it
		return nil
	}
	if len(m.Targets) > 0 || m.Sparse != nil || m.NextToken {
		r.fault(path, "take it out", "the rows of %s have no classes to weigh", r.Resolved.Data.Name)
		return nil
	}
	rows := make([]int, m.Classes)
	if *w == disdel.BalancedWeights {
		var err error
		if rows, err = store.ClassRows(ctx, r.Resolved.Data.Name); err != nil {
			return err
		}
	}
	weights, err := w.For(m.ClassNames, rows)
	if err != nil {
		r.fault(path, "write a class of "+r.Resolved.Data.Name+": disdel dataset show "+r.Resolved.Data.Name, "%v", err)
		return nil
	}
	*w = weights
	return nil
}

// numericLabels refuses labels that are numbers to predict, and notes many numbers that are used as classes.
func (r *resolver) numericLabels(m dataset.Manifest) {
	if why := m.NumericTarget(); why != "" {
		r.fault("data.source", "add the data set again with --overwrite: "+dataset.NumericTargetHint,
			"the label of %s: %s", m.Name, why)
	} else if note := m.NumericClasses(); note != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("the label of %s: %s", m.Name, note))
	}
}

// augment checks the augmentation of images.
func (r *resolver) augment(m dataset.Manifest) {
	how := r.Job.Data.Augment
	if how == (disdel.Augment{}) {
		return
	}
	if why := dataset.CheckAugment(how, r.Resolved.Data.Sample); why != "" || m.Sparse != nil {
		r.fault("data.augment", "take it out, or lower crop", "%s: %s, of shape %v", m.Name,
			cmp.Or(why, "the rows are no images"), m.Sample)
		return
	}
	r.Resolved.Data.Augment = how
}

// names lists the data sets, as far as possible.
func names(ctx context.Context, store Datasets) []string {
	list, _ := store.List(ctx)
	out := make([]string, len(list))
	for i, m := range list {
		out[i] = m.Name
	}
	return out
}

// network builds the graph. Without a data set the network is checked at its own standard input.
func (r *resolver) network() {
	m := r.Job.Model
	r.Network = disdel.Network{
		Name: m.Name, Layers: m.Layers, Custom: m.Description, Input: r.Resolved.Data.Sample,
		Classes: r.Resolved.Data.Classes, Targets: r.Resolved.Data.Targets, Init: m.Init,
		NextToken: r.Resolved.Data.NextToken,
	}
	if sparse, ok := model.FindSparse(m.Name); ok {
		r.sparse(sparse)
		return
	}
	if r.found && r.Resolved.Data.Sparse != nil {
		r.fault("model", "write name: logistic, linear or pmf", "the rows of %s are sparse, and networks take dense ones",
			r.Resolved.Data.Name)
		return
	}
	if m.Name != "" {
		entry, ok := model.Find(m.Name)
		if !ok {
			near := cmp.Or(model.Nearest(m.Name), model.NearestSparse(m.Name))
			r.fault("model.name", "disdel model list", "there is no network %q%s", m.Name, didYouMean(near))
			return
		}
		if !r.found {
			r.Network.Input, r.Network.Classes = entry.Input, entry.Classes
		}
	}
	if m.Custom != "" && !r.custom(m) || m.Python != nil && !r.python(m.Python) {
		return
	}
	m = r.Job.Model // a program's network may have become layers
	for _, f := range model.CheckLayers("model.layers", m.Layers) {
		r.fault(f.Path, f.Hint, "%s", f.Msg)
	}
	if !r.found || m.Name == "" && len(m.Layers) == 0 && !m.NeedsProgram() {
		return
	}
	if slices.ContainsFunc(r.faults, func(f disdel.Fault) bool { return strings.HasPrefix(f.Path, "model.") }) {
		return // building it would report the same again
	}
	r.resizeHead()
	r.Network.Init.Freeze = "" // freeze does that, when it is known which layers are drawn
	r.twoClasses()
	r.endInSoftmax()
	g, err := model.Build(r.Network)
	if err != nil {
		e := disdel.AsError(err)
		r.fault("model", e.Hint, "the network cannot be built for inputs of %v: %s", r.Network.Input,
			cmp.Or(e.Msg, e.Error()))
		return
	}
	r.Graph = g
	if !slices.ContainsFunc(g.Params(), func(p model.Param) bool { return p.Trainable }) {
		r.fault("model", "add a dense or a convolution layer", "the network has no weights, and so nothing to learn")
	}
}

func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", name)
}

// fit checks the numbers of the job against the data.
func (r *resolver) fit() {
	if !r.found {
		return
	}
	d, t, workers := r.Resolved.Data, r.Job.Training, r.Job.Distribution.Workers
	switch shard := d.Train / max(workers, 1); {
	case workers > d.Train:
		r.fault("distribution.workers", "", "%d workers, and only %d training rows", workers, d.Train)
	case t.WorkerBatch(workers) > shard:
		hint, rows := fmt.Sprintf("use at most %d", shard), t.WorkerBatch(workers)
		if maximum := d.Train / rows; workers > 1 && maximum > 0 && !t.Shared() {
			hint = fmt.Sprintf("at most %s with batch %d, or a batch of at most %d",
				disdel.Counted(maximum, "worker"), rows, shard)
		}
		r.fault(t.BatchField(), hint, "%d rows a batch, and the smallest shard has %d", rows, shard)
	}
	if e := t.EarlyStop; e != nil && e.Metric != disdel.MetricLoss && d.HeldOut == 0 {
		r.fault("training.earlyStop.metric", "raise data.split.validation", "%s needs held-out rows, and there are none",
			e.Metric)
	}
	if t.Goal != nil && d.HeldOut == 0 {
		r.fault("training.goal", "raise data.split.validation", "a goal needs held-out rows, and there are none")
	}
	r.fitMetrics()
	if r.Graph != nil || len(r.Job.Model.Layers) > 0 { // a wrong name may stand for a network with a loss of its own
		r.fitLoss()
	}
	if r.Graph == nil {
		return
	}
	if known := r.Graph.Vocabulary(); known > 0 && known < d.Tokens {
		r.fault("model", fmt.Sprintf("write vocabulary: %d in its embedding", d.Tokens),
			"the embedding has a vocabulary of %d, and the rows of %s have %d tokens", known, d.Name, d.Tokens)
	}
	r.fitSparse()
	if len(d.Targets) > 0 {
		r.fitTargets()
		return
	}
	if c := r.Network.Custom; c != nil && c.Python != nil && c.Python.OwnLoss {
		return // training.loss does not count
	}
	binary := t.Loss == "binaryCrossEntropy"
	if d.NextToken {
		return
	}
	classes := t.Loss == "crossEntropy" || binary || t.Loss == "mse" && d.Sparse == nil // mse needs one output per class
	if classes && r.Graph.Output().Len() != d.Classes {
		number, hint := "", fmt.Sprintf("write units: %d in its last dense layer", d.Classes)
		if t.Loss == disdel.LossMSE {
			hint += "; if the classes are numbers to predict, add the data set again with --target COLUMN"
			number = ": mse needs one output for each class"
		}
		r.fault("model", hint,
			"the network has %d outputs, and the data %d classes%s", r.Graph.Output().Len(), d.Classes, number)
	}
	// Its logarithms are clamped outside 0 to 1, where the gradient no longer leads anywhere.
	last := r.Graph.Nodes[len(r.Graph.Nodes)-1].Op
	if binary && last != model.OpSigmoid && last != model.OpSoftmax && r.Graph.Custom() == nil {
		r.fault("training.loss", "end the network in sigmoid or softmax, or use crossEntropy",
			"binaryCrossEntropy needs outputs that are probabilities, and the network ends in %v", last)
	}
}

// fitMetrics checks that evaluations on the data have the metrics that the job stops by.
func (r *resolver) fitMetrics() {
	d, t := r.Resolved.Data, r.Job.Training
	check := func(path, metric string) {
		numbers := d.Numbers() && (metric == disdel.MetricRMSE || d.Sparse == nil)
		switch metric {
		case disdel.MetricAccuracy:
			if d.Numbers() {
				r.fault(path, "write rmse or a loss", "numbers have no accuracy")
			}
		case disdel.MetricTop5:
			if d.Classes <= disdel.TopClasses || d.Numbers() || d.MultiLabel() || d.NextToken || d.Sparse != nil {
				r.fault(path, "write accuracy or a loss",
					"top5 is for rows of one of more than %d classes, and those of %s are not", disdel.TopClasses, d.Name)
			} else if r.Job.Model.Python != nil {
				r.fault(path, "write accuracy or a loss", "evaluations of a Python program have no top5")
			}
		case disdel.MetricPerplexity:
			if !d.NextToken {
				r.fault(path, "write a loss, or add texts with --text-files", "evaluations on %s have no perplexity", d.Name)
			}
		case disdel.MetricF1, disdel.MetricMicroF1:
			if !d.MultiLabel() {
				r.fault(path, "write another metric, or add the data set with --label COLUMN,COLUMN",
					"%s is for rows with several labels, and those of %s have none", metric, d.Name)
			}
		case disdel.MetricRMSE, disdel.MetricMAE, disdel.MetricR2:
			if !numbers {
				r.fault(path, "write accuracy or a loss", "evaluations on %s have no %s", d.Name, metric)
			}
		}
	}
	if e := t.EarlyStop; e != nil {
		check("training.earlyStop.metric", e.Metric)
	}
	if t.Goal != nil {
		m, _ := t.Goal.Target()
		check("training.goal."+m.Name, m.Name)
	}
}

// fitTargets checks the network and the loss of a job that predicts numbers or several labels. Without a loss in the
// job file it is mse, of labels binaryCrossEntropy.
func (r *resolver) fitTargets() {
	d, t, m := r.Resolved.Data, &r.Job.Training, r.Job.Model
	names := make([]string, len(d.Targets))
	for k, target := range d.Targets {
		names[k] = target.Name
	}
	if outputs := r.Graph.Output().Len(); outputs != len(names) {
		r.fault("model", fmt.Sprintf("write units: %d in its last dense layer", len(names)),
			"the network has %d outputs, and %s has %s to predict: %s", outputs, d.Name,
			disdel.Counted(len(names), d.TargetWord()), strings.Join(names, ", "))
	}
	const native = "numbers and several labels are predicted by networks of the native backend only"
	switch last := r.Graph.Nodes[len(r.Graph.Nodes)-1].Op; {
	case t.LabelSmoothing > 0:
		r.fault("training.labelSmoothing", "take it out", "numbers to predict and several labels are not smoothed")
	case m.Python != nil:
		r.fault("model.python", "write model.layers or model.name", native)
	case m.Custom != "":
		r.fault("model.custom", "write model.layers or model.name", native)
	case t.Backend == disdel.BackendCUDA:
		r.fault("resources.device", "take it out", native)
	case cmp.Or(t.Backend, disdel.BackendNative) != disdel.BackendNative:
		r.fault("training.backend", "take it out", native)
	case d.MultiLabel() && last != model.OpSigmoid:
		r.fault("model", "end the network in sigmoid: dense: {units: "+fmt.Sprint(len(names))+", activation: sigmoid}",
			"each of several labels has a probability of its own, and the network ends in %v", last)
	case d.MultiLabel(): // it ends in sigmoid
	case slices.Contains([]model.Op{model.OpSoftmax, model.OpSigmoid, model.OpTanh, model.OpReLU, model.OpReLU6}, last):
		r.fault("model", "take the activation of the last layer out",
			"the network ends in %v, which bounds its outputs. Targets are standardised: their mean is 0, and half of them "+
				"are usually below it", last)
	}
}

// CheckPlatform returns what a job needs that the platform does not allow.
func CheckPlatform(job disdel.Job, p disdel.PlatformLimits) error {
	r := job.Resources
	refused := func(hint, format string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "check job against the platform", Msg: fmt.Sprintf(format, args...),
			Hint: hint,
		}
	}
	over := func(format string, args ...any) error {
		return refused("change the job file, or have an admin raise the platform's limit", format, args...)
	}
	switch {
	case r.Memory > p.MaxMemory:
		return over("resources.memory is %v, and the platform allows at most %v an action", r.Memory, p.MaxMemory)
	case r.Memory > 0 && r.Memory < p.MinMemory:
		return refused(fmt.Sprintf("--set resources.memory=%dMB, or leave it out", p.MinMemory.MB()),
			"resources.memory is %v, and the platform allows no less than %v", r.Memory, p.MinMemory)
	case disdel.Millis(r.Timeout) > p.MaxTimeout:
		return over("resources.timeout is %v, and the platform allows at most %v", r.Timeout, p.MaxTimeout)
	case p.Pool > 0 && r.Memory > p.Pool:
		return over("resources.memory is %v, and the whole pool has %v: the action would wait for ever", r.Memory, p.Pool)
	default:
		return nil
	}
}

// resizeHead gives the last layer of a list of layers the outputs that the data set needs, if the job replaces it.
func (r *resolver) resizeHead() {
	m, d := &r.Job.Model, r.Resolved.Data
	if !m.Init.ReplaceHead || !r.found || m.Python != nil {
		return
	}
	outputs, layers := d.Classes, m.Layers
	if len(d.Targets) > 0 {
		outputs = len(d.Targets)
	} else if two, ok := model.TwoOutputs(layers); ok {
		layers = two
	}
	if layers, ok := model.WithOutputs(layers, outputs); ok {
		m.Layers, r.Network.Layers = layers, layers
	}
}

// replaceHead adds the last layer with weights to the layers that are drawn, if the job replaces it.
func (r *resolver) replaceHead() {
	init := &r.Job.Model.Init
	if r.Graph == nil || !init.ReplaceHead {
		return
	}
	head, ok := r.Graph.Head()
	if !ok {
		r.fault(headPath, "name the layers in model.init.except",
			"the last layer of the network is no dense or convolution layer with weights of its own after other layers")
		return
	}
	if !init.Excepts(head + ".") {
		init.Except = strings.Join(append(init.Excepted(), head), ", ")
	}
	r.Network.Init = *init
}

// freeze freezes the layers that the job names, and writes their own names into the job: patterns mean the same later,
// when a resumed job draws no layer any more.
func (r *resolver) freeze() {
	init := &r.Job.Model.Init
	if r.Graph == nil || init.Freeze == "" {
		return
	}
	if err := r.Graph.Freeze(*init); err != nil {
		e := disdel.AsError(err)
		r.fault(freezePath, e.Hint, "%s", e.Msg)
		return
	}
	init.Freeze = strings.Join(r.Graph.FrozenLayers(), ", ")
	r.Network.Init = *init
}

// adapt adds the adapters that the job names, and writes the names of their layers into the job, as freeze does.
func (r *resolver) adapt() {
	lora := r.Job.Model.LoRA
	if r.Graph == nil || lora == nil {
		return
	}
	var faults *disdel.Faults
	if errors.As(r.Graph.Adapt(r.Job.Model.Init, *lora), &faults) {
		for _, f := range faults.Faults {
			r.fault(f.Path, f.Hint, "%s", f.Msg)
		}
		return
	}
	named := *lora
	named.Layers = strings.Join(r.Graph.AdaptedLayers(), ", ")
	named.Whole = strings.Join(r.Graph.WholeLayers(), ", ")
	r.Job.Model.LoRA, r.Network.LoRA = &named, &named
}

// recompute checks the layers whose outputs the job keeps.
func (r *resolver) recompute() {
	if r.Graph == nil {
		return
	}
	if _, err := r.Graph.Kept(r.Job.Training.Recompute.Layers()); err != nil {
		e := disdel.AsError(err)
		r.fault("training.recompute", e.Hint, "%s", e.Msg)
	}
}

// InitialPath is the field of the weights that training starts with; exceptPath that of layers which are drawn anyway.
const (
	InitialPath = "model.init.weights"
	exceptPath  = "model.init.except"
	headPath    = "model.init.replaceHead"
	freezePath  = "model.init.freeze"
)

const layersHint = "disdel model show NETWORK --layers names the network's arrays"

// mostInitial limits the reported faults of weights: another network has hundreds.
const mostInitial = 20

// CheckInitial compares arrays of weights, their names and shapes, with the network that starts with them, and
// returns everything that does not fit: arrays that are missing, unknown or of another shape. It ignores the layers
// that init excepts, in the network and among the arrays, and adapters. If init replaces the last layer, it also
// ignores the arrays' own last layer where that has a name which the network does not have.
func CheckInitial(g *model.Graph, init disdel.Init, arrays disdel.Weights) []disdel.Fault {
	have, known := map[string][]int{}, map[string]bool{}
	for _, a := range arrays {
		have[a.Name] = a.Shape
	}
	var out []disdel.Fault
	var misfits []string
	add := func(name, format string, args ...any) {
		misfits = append(misfits, name)
		out = append(out, disdel.Fault{Path: InitialPath, Msg: fmt.Sprintf(format, args...)})
	}
	for _, p := range g.Params() {
		known[p.Name] = true
		if init.Excepts(p.Name) || g.AdapterOf(p) != 0 {
			continue
		}
		switch shape, there := have[p.Name]; {
		case !there:
			add(p.Name, "%s: there are no weights for %s %v", init.Weights, p.Name, p.Shape)
		case !slices.Equal(shape, p.Shape):
			add(p.Name, "%s: %s is %v, and the network's is %v", init.Weights, p.Name, shape, p.Shape)
		}
	}
	former := formerHead(g, init, arrays, known)
	for _, a := range arrays {
		if !known[a.Name] && !init.Excepts(a.Name) && layerOf(a.Name) != former {
			add(a.Name, "%s: the network has no %s %v", init.Weights, a.Name, a.Shape)
		}
	}
	if len(out) > 0 {
		init.ReplaceHead = true
		out[0].Hint = initialHint(g, misfits, formerHead(g, init, arrays, known))
	}
	if n := len(out); n > mostInitial {
		out = append(out[:mostInitial], disdel.Fault{
			Path: InitialPath, Msg: fmt.Sprintf("%s: %d arrays more do not fit", init.Weights, n-mostInitial),
		})
	}
	for _, layer := range init.Excepted() {
		target := disdel.Init{Except: layer}
		if !slices.ContainsFunc(g.Params(), func(p model.Param) bool { return target.Excepts(p.Name) }) &&
			!slices.ContainsFunc(arrays, func(a disdel.Tensor) bool { return target.Excepts(a.Name) }) {
			out = append(out, disdel.Fault{
				Path: exceptPath, Msg: fmt.Sprintf("the network has no layer %q with weights", layer), Hint: layersHint,
			})
		}
	}
	return out
}

// formerHead is the last layer of given weights, which the network replaces by a layer of another name; "": there is
// none. A language model that becomes a classifier, for instance, gets a pooling layer before its new last layer.
func formerHead(g *model.Graph, init disdel.Init, arrays disdel.Weights, known map[string]bool) (former string) {
	head, ok := g.Head()
	if !init.ReplaceHead || !ok {
		return ""
	}
	for _, a := range arrays {
		switch layer := layerOf(a.Name); {
		case layer == head: // it has the same name
			return ""
		case known[a.Name] || init.Excepts(a.Name) || layer == former:
		case former != "": // the network lacks several layers: it is another one
			return ""
		default:
			former = layer
		}
	}
	return former
}

// layerOf is the layer of an array: fc1 of fc1.weight.
func layerOf(array string) string { return array[:max(0, strings.LastIndexByte(array, '.'))] }

// initialHint says what to do: if only the last layer differs, and maybe its name, it may be drawn.
func initialHint(g *model.Graph, misfits []string, former string) string {
	params := g.Params()
	last := g.Nodes[params[len(params)-1].Node].Name
	for _, name := range misfits {
		if !strings.HasPrefix(name, last+".") && layerOf(name) != former {
			return layersHint
		}
	}
	if head, ok := g.Head(); ok && head == last {
		hint := "for other classes: replaceHead: true gives the last layer, " + last + ", new weights. So does except: " +
			last
		if former != "" {
			hint += ", " + former
		}
		return hint
	}
	return fmt.Sprintf("except: %s gives this layer new weights, for other classes", last)
}

// sparse builds the graph of a model of sparse rows, whose sizes come from the data set.
func (r *resolver) sparse(m model.SparseModel) {
	if !r.found {
		return // the missing data set is reported already
	}
	d := r.Resolved.Data
	switch {
	case d.Sparse == nil:
		r.fault("model.name", "add the data set with --libsvm, --csv or --ratings, or name a network",
			"%s learns from sparse rows, and those of %s are dense", m.Name, d.Name)
		return
	case m.Ratings && !d.Sparse.Ratings():
		r.fault("model.name", "write name: logistic or linear", "%s learns from ratings, and %s has none", m.Name, d.Name)
		return
	case m.Classes != d.Classes && m.Classes == 2:
		r.fault("model.name", "write name: linear, or pmf for ratings",
			"%s learns targets of 0 and 1, and those of %s are numbers", m.Name, d.Name)
		return
	case m.Classes != d.Classes:
		r.fault("model.name", "write name: logistic", "%s learns numbers, and the targets of %s are 0 and 1", m.Name, d.Name)
		return
	}
	r.Network = m.Describe(d, r.Job.Model.Rank, r.Job.Model.Init)
	g, err := model.Build(r.Network)
	if err != nil {
		e := disdel.AsError(err)
		r.fault("model", e.Hint, "the model cannot be built: %s", cmp.Or(e.Msg, e.Error()))
		return
	}
	r.Graph = g
}

// fitSparse checks a job's goal against its data: a loss that one guess for all rows reaches is no goal.
func (r *resolver) fitSparse() {
	d, e, loss := r.Resolved.Data, r.Job.Training.EarlyStop, r.Job.Training.Loss
	if g := r.Job.Training.Goal; d.Sparse != nil && g != nil {
		r.sparseGoal(*g)
		return
	}
	if d.Sparse == nil || e == nil || e.Target == nil {
		return
	}
	switch guess := d.Sparse.Guess(loss); {
	case e.Metric == disdel.MetricRMSE && *e.Target**e.Target >= guess,
		e.Of().Name == disdel.MetricLoss && *e.Target >= guess:
		r.fault("training.earlyStop.target", "", "one guess for all rows of %s has a loss of %.4g: a target is below it",
			d.Name, guess)
	}
}

func (r *resolver) sparseGoal(g disdel.Goal) {
	d, guess := r.Resolved.Data, r.Resolved.Data.Sparse.Guess(r.Job.Training.Loss)
	if gap, ok := g.GapOf(disdel.Figures{Loss: &guess}); ok && g.Enough() >= gap {
		r.fault("training.goal", "", "one guess for all rows of %s has a %s: a goal is below it", d.Name, g.Text(gap))
	}
}
