package jobfile

import (
	"cmp"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/spelling"
	"github.com/disdel/disdel/model"
)

// Fields with rules beyond the table.
const (
	sourcePath = "data.source"
	kerasPath  = "model.keras"
)

var laterSource = regexp.MustCompile(`^(file:|https?://|rediss?://)`)

// defaultOptimizer is the optimiser of a file that names none, with its own defaults.
const defaultOptimizer = "training.optimizer.adam"

// defaults fills in the fields of the object at path that are not given. Pointers and lists are unchanged.
func (r *reader) defaults(pattern, path string, v reflect.Value) {
	for _, f := range children(pattern) {
		at := join(path, f.name())
		if f.later || v.Kind() != reflect.Struct || r.isSet(at) {
			continue
		}
		switch m := member(v, f.name()); {
		case f.form == object && m.Kind() == reflect.Struct:
			r.defaults(f.path, at, m)
		case f.def != "" && f.form != object:
			f.setDefault(m)
		}
	}
}

func (f *field) setDefault(v reflect.Value) {
	if f.auto && f.def == "auto" {
		v.SetZero()
		return
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: f.def, Tag: "!!str"}
	switch f.form {
	case integer, number:
		n.Tag = "!!float"
	case toggle:
		n.Tag = "!!bool"
	}
	x, _, _ := decode(n, f)
	x.store(v)
}

// finish fills in the defaults that depend on other fields and checks the rules between fields.
func (r *reader) finish(job *disdel.Job) {
	r.model(&job.Model)
	r.sparse(job)
	r.python(job)
	r.device(job)
	r.precision(job)
	r.stepMemory(job)
	r.frozen(job)
	r.batch(&job.Training)
	r.smoothing(job)
	r.classWeights(job)
	r.optimizer(&job.Training.Optimizer)
	r.shortMoments(&job.Training)
	r.exactlyOne("training.schedule", "write cosine: {}", "warmup")
	r.steps(job.Training.Schedule)
	r.earlyStop(job.Training.EarlyStop)
	r.goal(job)
	r.split(&job.Data.Split, job.Model.Init.Seed)
	r.bounds(job)
	r.backoff(job.Reliability.Retries.Backoff)
	r.moments(job)
	r.policy(job.Distribution)
	r.exchange(job)
	r.stages(job)
	if !r.isSet("output.model") {
		job.Output.Model = job.Metadata.Name
	}
}

const (
	exceptPath = "model.init.except"
	headPath   = "model.init.replaceHead"
	freezePath = "model.init.freeze"
	loraPath   = "model.lora"
)

func (r *reader) model(m *disdel.Model) {
	const rule = "give exactly one of name, keras, layers, custom and python"
	count := 0
	for _, path := range []string{"model.name", "model.keras", "model.layers", "model.custom", pythonPath} {
		if r.isSet(path) {
			count++
		}
	}
	switch {
	case count > 1:
		r.fault(r.places["model"], "model", "take all but one out", rule)
	case count == 0 && r.isSet("model") && r.sound("model") && !r.failedBelow("model"):
		r.fault(r.places["model"], "model", "write name: lenet5, or layers", rule)
	case r.isSet(kerasPath) && r.sound(kerasPath):
		r.keras(m)
	}
	m.Keras = ""
	for path, wanted := range map[string]bool{
		exceptPath: m.Init.Except != "", headPath: m.Init.ReplaceHead, freezePath: m.Init.Freeze != "",
	} {
		if wanted && r.isSet(path) && !r.isSet("model.init.weights") {
			r.fault(r.places[path], path, "take it out, or name weights", "all layers are drawn where no weights are given")
		}
	}
	r.adapters(m)
	r.layers(model.CheckLayers("model.layers", m.Layers))
}

// adapters names all layers where LoRA names none. It refuses LoRA without given weights, and beside frozen layers.
func (r *reader) adapters(m *disdel.Model) {
	if m.LoRA == nil {
		return
	}
	m.LoRA.Layers = cmp.Or(m.LoRA.Layers, "*")
	switch {
	case !r.isSet("model.init.weights"):
		r.fault(r.places[loraPath], loraPath, "name a trained model in model.init.weights, or take it out",
			"adapters are trained beside given weights")
	case m.Init.Freeze != "":
		r.fault(r.places[freezePath], freezePath, "take it out",
			"model.lora freezes all layers with given weights but those that model.lora.whole names")
	}
}

// frozen refuses frozen layers and adapters for engines that train all weights. It needs the job's engine.
func (r *reader) frozen(job *disdel.Job) {
	engine := engineOf(job)
	if engine != disdel.BackendGorgonia && engine != disdel.BackendCUDA || !r.sound(backendPath, "resources.device") {
		return
	}
	wants := map[string]bool{freezePath: job.Model.Init.Freeze != "", loraPath: job.Model.LoRA != nil}
	for path, wanted := range wants {
		if wanted && r.sound(path) {
			r.fault(r.places[path], path, "take it out, or train with the native backend on the processor",
				"%s trains all layers", engine)
		}
	}
}

// layers adds the faults of package model, except those that follow from a known fault.
func (r *reader) layers(faults []disdel.Fault) {
	file := File{places: r.places}
	for _, f := range faults {
		if r.sound(f.Path, outer(f.Path)) && !r.misspelt[f.Path] {
			line, column := file.Locate(f.Path)
			r.fault(place{line, column}, f.Path, f.Hint, "%s", f.Msg)
		}
	}
}

// outer is the path of the object or list around path.
func outer(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// batch uses training.batch instead of batchSize; with rows per worker both mean the same.
func (r *reader) batch(t *disdel.Training) {
	const old, path = "training.batchSize", "training.batch"
	if t.Batch == nil {
		return
	}
	if r.isSet(old) {
		r.fault(r.places[path], path, "take one of them out", "does not go with batchSize")
	}
	t.BatchSize = t.Batch.Size
	if t.Batch.Of != disdel.BatchOfJob {
		t.Batch = nil
	}
}

// smoothing checks that the job's loss and engine can spread labels.
func (r *reader) smoothing(job *disdel.Job) {
	const path, loss = "training.labelSmoothing", "training.loss"
	switch t := job.Training; {
	case t.LabelSmoothing == 0 || !r.sound(path, loss, backendPath):
	case t.Loss != disdel.LossCrossEntropy:
		r.fault(r.places[path], path, "take it out", "does not go with the loss %s", t.Loss)
	case cmp.Or(t.Backend, disdel.BackendNative) != disdel.BackendNative || job.Model.NeedsProgram():
		r.fault(r.places[path], path, "take it out", "only the native backend has it")
	}
}

// classWeights checks that the job's loss and engine can weigh classes.
func (r *reader) classWeights(job *disdel.Job) {
	const path, loss = "training.classWeights", "training.loss"
	t := job.Training
	if t.ClassWeights == "" || !r.sound(path, loss, backendPath) {
		return
	}
	err := t.ClassWeights.Check()
	switch {
	case err != nil:
		r.fault(r.places[path], path, "write balanced, or CLASS=WEIGHT with commas between: cat=2,dog=0.5", "%v", err)
	case t.Loss != disdel.LossCrossEntropy:
		r.fault(r.places[path], path, "take it out", "does not go with the loss %s", t.Loss)
	case cmp.Or(t.Backend, disdel.BackendNative) != disdel.BackendNative || job.Model.NeedsProgram():
		r.fault(r.places[path], path, "take it out", "only the native backend has it")
	}
}

func (r *reader) optimizer(o *disdel.Optimizer) {
	const path = "training.optimizer"
	if !r.isSet(path) {
		o.Adam = &disdel.Adam{}
		r.defaults(defaultOptimizer, defaultOptimizer, reflect.ValueOf(o.Adam).Elem())
	}
	r.exactlyOne(path, "write adam: {learningRate: 0.001}")
	const momentum, nesterov = path + ".sgd.momentum", path + ".sgd.nesterov"
	if s := o.SGD; s != nil && s.Nesterov && s.Momentum == 0 && r.sound(momentum) {
		r.fault(r.places[nesterov], nesterov, "write momentum: 0.9", "needs a momentum above 0")
	}
}

// steps checks that a schedule of steps has either a distance or a rising list of epochs.
func (r *reader) steps(s *disdel.Schedule) {
	const path = "training.schedule.step"
	const list = path + ".milestones"
	switch {
	case s == nil || s.Step == nil || r.failedBelow(path):
	case (s.Step.Every > 0) == (len(s.Step.Milestones) > 0):
		r.fault(r.places[path], path, "write every: 10, or milestones: [30, 60]", "needs either every or milestones")
	case !slices.IsSortedFunc(s.Step.Milestones, func(a, b int) int { return cmp.Or(cmp.Compare(a, b), -1) }):
		r.fault(r.places[list], list, "write [30, 60]", "must rise: each number above the one before")
	}
}

// exactlyOne adds a fault if the object at path does not have exactly one of its fields; hint is for an empty object.
// A field beside may be given too, or alone.
func (r *reader) exactlyOne(path, hint string, others ...string) {
	names := slices.DeleteFunc(childNames(path), func(name string) bool { return slices.Contains(others, name) })
	count := 0
	for _, name := range names {
		if r.isSet(join(path, name)) {
			count++
		}
	}
	rule := "give exactly one of " + andList(names)
	switch {
	case count > 1:
		r.fault(r.places[path], path, "take all but one out", "%s", rule)
	case slices.ContainsFunc(others, func(name string) bool { return r.isSet(join(path, name)) }):
	case count == 0 && r.isSet(path) && r.sound(path) && !r.failedBelow(path):
		r.fault(r.places[path], path, hint, "%s", rule)
	}
}

// failedBelow tells whether there is a fault inside the object at path.
func (r *reader) failedBelow(path string) bool {
	for p := range r.failed {
		if strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// earlyStop checks that the metric has the bounds that it needs, and no others.
func (r *reader) earlyStop(e *disdel.EarlyStop) {
	const path = "training.earlyStop"
	if e == nil || e.Metric == "" {
		return
	}
	target, patience, keep := path+".target", path+".patience", path+".keep"
	switch {
	case e.Target == nil:
	case e.Of().Larger && *e.Target > 1:
		r.fault(r.places[target], target, "write target: 0.9", "the %s is at most 1", e.Of().Title)
	case e.Metric != disdel.MetricR2 && *e.Target <= 0:
		r.fault(r.places[target], target, "", "must be above 0: only %s may be lower", disdel.MetricR2)
	}
	switch {
	case e.Metric == disdel.MetricLoss:
		if !r.isSet(target) {
			r.fault(r.places[path], target, "write target: 0.05", "missing: %s needs it", e.Metric)
		}
		for _, other := range []string{patience, keep} {
			if r.isSet(other) && r.sound(other) {
				r.fault(r.places[other], other, "take it out", "does not go with %s", e.Metric)
			}
		}
		return
	case e.Of().Larger && !r.isSet(target) && !r.isSet(patience):
		r.fault(r.places[path], target, "write target: 0.9", "missing: %s needs it, or a patience", e.Metric)
	case !r.isSet(target) && !r.isSet(patience):
		r.fault(r.places[path], patience, "write patience: 3", "missing: %s needs it, or a target", e.Metric)
	}
	if !r.isSet(keep) {
		e.Keep = disdel.KeepBest
	}
}

// goal checks that there are enough evaluations to show that a goal holds, and that nothing else ends the training.
func (r *reader) goal(job *disdel.Job) {
	const path = "training.goal"
	const every, sync, stop = "training.validateEvery", "distribution.sync", "training.earlyStop"
	if job.Training.Goal == nil || !r.sound(path) {
		return
	}
	metrics := []string{"accuracy", "top5", "f1", "loss", "rmse", "mae", "perplexity"}
	goals := 0
	for _, metric := range metrics {
		if r.isSet(path + "." + metric) {
			goals++
		}
	}
	one := "give exactly one of " + strings.Join(metrics, ", ")
	switch {
	case goals > 1:
		r.fault(r.places[path], path, "take all but one out", "%s", one)
	case goals == 0 && !r.failedBelow(path):
		r.fault(r.places[path], path, "write accuracy: 0.9", "%s", one)
	}
	if r.isSet(stop) {
		r.fault(r.places[stop], stop, "take one of them out", "does not go with training.goal, which ends the training too")
	}
	if job.Training.ValidateEvery == 0 && r.sound(every) {
		r.fault(r.places[every], every, "write validateEvery: 1", "a goal is looked for in evaluations during the training")
	}
	if job.Distribution.Sync == disdel.SyncEnd && r.sound(sync) {
		r.fault(r.places[sync], sync, "write sync: epoch", "a goal has to hold for %d evaluations, and sync: end makes one",
			disdel.GoalHeld)
	}
}

// split completes the shares: if one is given, the other is the rest. Decimal fractions do not add up exactly.
func (r *reader) split(s *disdel.Split, seed int64) {
	const path, tolerance = "data.split", 1e-6
	train, validation := r.isSet(path+".train"), r.isSet(path+".validation")
	switch {
	case !r.sound(path+".train", path+".validation"):
	case train && !validation:
		s.Validation = 1 - s.Train
	case validation && !train:
		s.Train = 1 - s.Validation
	case train && math.Abs(s.Train+s.Validation-1) > tolerance:
		r.fault(r.places[path], path, "", "train and validation add up to %.6g, not to 1", s.Train+s.Validation)
	}
	if !r.isSet(path + ".seed") {
		s.Seed = seed
	}
}

// bounds compares limits with each other.
func (r *reader) bounds(job *disdel.Job) {
	res, deadline := job.Resources, job.Reliability.Deadline
	if res.MaxMemory > 0 && res.Memory > res.MaxMemory {
		r.fault(r.places["resources.maxMemory"], "resources.maxMemory", "", "must be at least resources.memory, which is %v",
			res.Memory)
	}
	if deadline > 0 && res.Timeout >= deadline {
		r.fault(r.places["reliability.deadline"], "reliability.deadline", "", "must be above resources.timeout, which is %v",
			res.Timeout)
	}
}

// moments refuses to round second moments: one that becomes too small, or negative, makes the next steps huge.
func (r *reader) moments(job *disdel.Job) {
	const path, wire = "distribution.aggregation.optimizer", "distribution.aggregation.wire"
	a, o := job.Distribution.Aggregation, job.Training.Optimizer
	squares := o.SGD == nil && o.Lion == nil
	if a.OptimizerState == disdel.StateAverage && a.Wire != disdel.WireFloat32 && squares && r.sound(path, wire) {
		r.fault(r.places[path], path, "write reset or keep, or wire: float32",
			"%s's second moments cannot be averaged over %s", o.Name(), a.Wire)
	}
}

// policy checks the bounds of a policy, and that an epoch ends for it to decide.
func (r *reader) policy(d disdel.Distribution) {
	const policy, minimum, maximum = "distribution.policy", "distribution.minWorkers", "distribution.maxWorkers"
	const workers, sync = "distribution.workers", "distribution.sync"
	if !r.sound(policy, minimum, maximum, workers, sync) {
		return
	}
	switch {
	case d.MaxWorkers > 0 && d.MinWorkers > d.MaxWorkers:
		r.fault(r.places[maximum], maximum, "", "must be at least distribution.minWorkers, which is %d", d.MinWorkers)
	case d.Workers > 0 && d.Workers < d.MinWorkers:
		r.fault(r.places[minimum], minimum, "", "must be at most distribution.workers, which is %d", d.Workers)
	case d.MaxWorkers > 0 && d.Workers > d.MaxWorkers:
		r.fault(r.places[maximum], maximum, "", "must be at least distribution.workers, which is %d", d.Workers)
	case d.Policy != disdel.PolicyStatic && d.Sync == disdel.SyncEnd:
		r.fault(r.places[policy], policy, "write sync: epoch",
			"%s decides at the end of an epoch, and sync: end averages only once", d.Policy)
	}
}

// backoff checks that the first pause is not longer than the longest. The fault is at the one that the file gives.
func (r *reader) backoff(b disdel.Backoff) {
	const first, longest = "reliability.retries.backoff.initial", "reliability.retries.backoff.max"
	switch {
	case b.Initial <= b.Max || !r.sound(first, longest):
	case r.isSet(longest):
		r.fault(r.places[longest], longest, "", "must be at least %s, which is %v", first, b.Initial)
	default:
		r.fault(r.places[first], first, "", "must be at most %s, which is %v", longest, b.Max)
	}
}

// nearWord is the hint for a word that is none of words.
func nearWord(word string, words []string) string {
	if len(word) > longestGuess {
		return ""
	}
	if best := spelling.Closest(word, words); best != "" && len(words) > 1 {
		return didYouMean(best)
	}
	return ""
}

// sparse fills in the defaults of a model of sparse rows, and refuses what such a model cannot have.
func (r *reader) sparse(job *disdel.Job) {
	const rank, loss, backend, lamb = "model.rank", "training.loss", "training.backend", "training.optimizer.lamb"
	m, isSparse := model.FindSparse(job.Model.Name)
	if !m.Ratings && r.isSet(rank) && r.sound(rank, "model.name") {
		r.fault(r.places[rank], rank, "take it out, or write name: pmf", "only pmf has a rank")
	}
	if !isSparse {
		r.dense(job)
		return
	}
	switch {
	case !r.isSet(loss):
		job.Training.Loss = m.Loss
	case job.Training.Loss != m.Loss && r.sound(loss):
		r.fault(r.places[loss], loss, "leave it out", "%s is trained by %s", m.Name, m.Loss)
	}
	switch {
	case !r.isSet(backend):
		job.Training.Backend = disdel.BackendSparse
	case job.Training.Backend != disdel.BackendSparse && r.sound(backend):
		r.fault(r.places[backend], backend, "leave it out", "%s is trained by %s alone", m.Name, disdel.BackendSparse)
	}
	if job.Training.Optimizer.LAMB != nil && r.sound(lamb) {
		r.fault(r.places[lamb], lamb, "choose adamw", "a step needs whole arrays, and %s updates rows of the batch", m.Name)
	}
	if m.Ratings && !r.isSet(rank) {
		job.Model.Rank = cmp.Or(job.Model.Rank, model.DefaultRank)
	}
}

// dense refuses what only models of sparse rows have.
func (r *reader) dense(job *disdel.Job) {
	const loss, backend = "training.loss", "training.backend"
	if l := job.Training.Loss; (l == disdel.LossSquared || l == disdel.LossLogistic) && r.isSet(loss) && r.sound(loss) {
		r.fault(r.places[loss], loss, "write mse or binaryCrossEntropy", "%s is a loss of logistic, linear and pmf", l)
	}
	if job.Training.Backend == disdel.BackendSparse && r.isSet(backend) && r.sound(backend) {
		r.fault(r.places[backend], backend, "leave it out", "it is that of logistic, linear and pmf")
	}
}

// exchange refuses what does not fit workers that exchange updates inside a round: anything that ends one of them
// before the others, who wait for it.
func (r *reader) exchange(job *disdel.Job) {
	const path = "distribution.exchange"
	if job.Distribution.Exchange == nil || !r.sound(path) {
		return
	}
	not := func(wrong bool, at, hint, why string) {
		if wrong && r.sound(at) {
			r.fault(r.places[at], at, hint, "does not go with distribution.exchange: %s", why)
		}
	}
	d, stop := job.Distribution, job.Training.EarlyStop
	not(d.Aggregation.Wire != disdel.WireFloat32, "distribution.aggregation.wire", "write wire: float32",
		"what is exchanged has its own threshold")
	not(stop != nil && stop.Metric == disdel.MetricLoss, "training.earlyStop.metric", "write metric: valLoss",
		"each worker has a training loss of its own")
	queue := path + ".batches"
	if !d.Exchange.Queued() || !r.sound(queue) {
		return
	}
	if d.Exchange.Order != disdel.OrderEager {
		r.fault(r.places[queue], queue, "write order: eager beside it",
			"a queue takes order: eager, since who is there first takes the next batch")
	}
	if d.Sync != disdel.SyncEpoch {
		r.fault(r.places[queue], queue, "write distribution.sync: epoch", "a queue has the batches of one epoch, "+
			"and sync is %v", d.Sync)
	}
}

// stages refuses what several actions that train one network together do not have. It needs the job's engine.
func (r *reader) stages(job *disdel.Job) {
	const path = "distribution.stages"
	if job.Distribution.Stages < 2 || !r.sound(path) {
		return
	}
	not := func(wrong bool, at, hint, why string) {
		if wrong && r.sound(at) {
			r.fault(r.places[at], at, hint, "does not go with distribution.stages: %s", why)
		}
	}
	d, t := job.Distribution, job.Training
	not(engineOf(job) != disdel.BackendNative, backendPath, "leave it or distribution.stages out",
		engineOf(job)+" trains whole networks")
	not(d.Exchange != nil, "distribution.exchange", "leave it out", "no action has all weights of a step")
	not(d.Aggregation.Wire != disdel.WireFloat32, "distribution.aggregation.wire", "write wire: float32",
		"the updates of stages are put together value by value")
	not(d.Aggregation.Shards > 1, "distribution.aggregation.shards", "leave it out", "stages are put together whole")
	not(d.Aggregation.OptimizerState == disdel.StateAverage, "distribution.aggregation.optimizer", "write keep or reset",
		"each stage has moments of its own")
	not(d.Policy != disdel.PolicyStatic, "distribution.policy", "write policy: static", "stages are planned once")
	not(d.Missing.Policy == disdel.MissingProceed, "distribution.missing.policy", "write retry or wait",
		"a network without one of its stages is none")
	not(t.EarlyStop != nil && t.EarlyStop.Metric == disdel.MetricLoss, "training.earlyStop.metric",
		"write metric: valLoss", "only the last stage knows the training loss")
	not(!t.Precision.Plain(), "training.precision", "leave it out", "stages compute with float32")
}

// engineOf is the backend that trains a job.
func engineOf(job *disdel.Job) string {
	_, sparse := model.FindSparse(job.Model.Name)
	switch {
	case job.Model.Custom != "":
		return disdel.BackendGorgonia
	case job.Model.Python != nil && job.Training.Backend != disdel.BackendNative:
		return disdel.BackendPython
	case sparse:
		return disdel.BackendSparse
	}
	return cmp.Or(job.Training.Backend, disdel.BackendNative)
}

// stepMemory removes the default, and refuses ways to save memory that the job's engine does not have. It needs the
// job's engine and precision.
func (r *reader) stepMemory(job *disdel.Job) {
	const parts, again, moments = "training.microBatch", "training.recompute", "training.optimizerState"
	t := &job.Training
	if t.Recompute == disdel.RecomputeNone {
		t.Recompute = ""
	}
	if t.StateFormat == disdel.StateFloat32 {
		t.StateFormat = ""
	}
	if !r.sound(parts, again, moments, "training.precision", backendPath, "resources.device") {
		return
	}
	if engine := engineOf(job); engine != disdel.BackendNative {
		for path, wanted := range map[string]bool{
			parts: t.MicroBatch > 0, again: t.Recompute.Some(), moments: t.StateFormat != "",
		} {
			if wanted {
				r.fault(r.places[path], path, "leave it out", "%s does not have it", engine)
			}
		}
		return
	}
	if t.Recompute.Some() && t.Precision.Short() {
		r.fault(r.places[again], again, "leave it or training.precision out", "activations of %s are not computed again",
			t.Precision)
	}
}

// shortMoments refuses moments of 8 bits or in a file where there are none, and 8 bits where they must not be rounded.
func (r *reader) shortMoments(t *disdel.Training) {
	const path = "training.optimizerState"
	if t.StateFormat == "" || !r.sound(path, "training.optimizer", "training.exact") {
		return
	}
	switch name := t.Optimizer.Name(); {
	case t.Optimizer.Moments() == 0:
		r.fault(r.places[path], path, "leave it out", "%s keeps no moments", name)
	case t.StateFormat.Paged():
	case t.Optimizer.Adagrad != nil:
		r.fault(r.places[path], path, "leave it out or choose rmsprop", "8 bits lose what %s adds to its sums", name)
	case t.Optimizer.LAMB != nil:
		r.fault(r.places[path], path, "write paged or choose adamw", "%s needs moments that are not rounded to 8 bits", name)
	case t.Exact:
		r.fault(r.places[path], path, "leave it or training.exact out", "8 bits round moments")
	}
}

// precision removes the default, and refuses what the job's engine does not have: the processor's has bf16, that of
// GPUs has all, the others have none. It needs the job's engine.
func (r *reader) precision(job *disdel.Job) {
	const path = "training.precision"
	t := &job.Training
	if t.Precision.Plain() {
		t.Precision = ""
		return
	}
	engine := engineOf(job)
	has := engine == disdel.BackendCUDA || engine == disdel.BackendNative && t.Precision.Short()
	switch {
	case has || !r.sound(path, backendPath, "resources.device"):
	case t.Precision == disdel.PrecisionTF32 && engine == disdel.BackendNative:
		r.fault(r.places[path], path, "write resources.device: gpu", "GPUs alone have %s", t.Precision)
	default:
		r.fault(r.places[path], path, "leave it out", "%s computes with float32 alone", engine)
	}
}

const backendPath = "training.backend"

// device chooses the engine of GPUs for a job with a GPU, and refuses what does not fit a GPU.
func (r *reader) device(job *disdel.Job) {
	const device, share = "resources.device", "resources.gpu"
	_, sparse := model.FindSparse(job.Model.Name)
	switch onGPU := job.Resources.Device == disdel.DeviceGPU; {
	case !r.sound(device, share, backendPath):
	case !onGPU && r.isSet(share):
		r.fault(r.places[share], share, "write device: gpu beside it",
			"it says what a job takes of GPUs, and this one is not trained by one")
	case !onGPU || job.Model.Python != nil:
	case sparse || job.Model.Custom != "":
		r.fault(r.places[device], device, "leave it out", "%s is trained by the processor alone",
			cmp.Or(job.Model.Custom, job.Model.Name))
	case r.isSet(backendPath):
		r.fault(r.places[backendPath], backendPath, "leave it out", "GPUs have an engine of their own")
	default:
		job.Training.Backend = disdel.BackendCUDA
	}
}
