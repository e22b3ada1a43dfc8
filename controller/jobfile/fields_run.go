package jobfile

import (
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// Words that a state of the workers' own may have.
var upkeeps = []string{string(disdel.StateAverage), string(disdel.StateReset), string(disdel.StateKeep)}

var wires = func() (words []string) {
	for _, w := range disdel.Wires() {
		words = append(words, string(w))
	}
	return words
}()

// policies says what each does.
func policies() string {
	var all []string
	for _, p := range scheduler.Policies() {
		all = append(all, p.Name()+" "+p.Meaning())
	}
	return strings.Join(all, "; ")
}

// runFields say how the job is run: everything from distribution on.
var runFields = []field{
	{path: "distribution", form: object, example: "{workers: 2, sync: epoch}", meaning: "How the work is spread."},
	{
		path: "distribution.workers", form: integer, auto: true, min: new(float64(1)), def: "auto", example: "2",
		meaning: "Train actions side by side. auto starts at two and adds by DiSDeL's rule until each fits its memory, " +
			"or takes the fewest that earlier jobs of the kind were as fast with.",
	},
	{
		path: "distribution.policy", form: text, def: disdel.PolicyStatic, example: "elastic",
		oneOf: scheduler.PolicyNames(),
		meaning: "How the workers change while the job runs: " + policies() + ". {name: coach, min: 2, max: 8} says " +
			"minWorkers and maxWorkers with it.",
	},
	{
		path: "distribution.minWorkers", form: integer, min: new(float64(1)), defBy: "1", example: "2",
		meaning: "Fewest train actions that a policy may choose; static does not use it.",
	},
	{
		path: "distribution.maxWorkers", form: integer, min: new(float64(1)), defBy: "what the data and the platform allow",
		example: "8",
		meaning: "Most train actions that a policy may choose, and most that an automatic number comes to; static does not " +
			"use it.",
	},
	{
		path: "distribution.sync", form: syncMode, oneOf: []string{string(disdel.SyncEpoch), string(disdel.SyncEnd)},
		def: "epoch", example: "epoch",
		meaning: "When the workers' weights are averaged: after every epoch, once at the end (DiSDeL's one-shot " +
			"averaging), or after every K batches.",
	},
	{
		path: "distribution.sync.every", form: integer, required: true, min: new(float64(1)), example: "16",
		meaning: "Batches from one average to the next; the end of an epoch brings one too (KubeML's K-AVG).",
	},
	{
		path: "distribution.aggregation", form: object, example: "{fanIn: 4}",
		meaning: "Shape of the aggregation tree, and what of the workers' state is averaged.",
	},
	{
		path: "distribution.aggregation.fanIn", form: integer, auto: true, min: new(float64(2)), def: "auto", example: "4",
		meaning: "Workers of one aggregation action. auto goes by bytes read: 2 GB of updates a round, and 64 workers at " +
			"most.",
	},
	{
		path: "distribution.aggregation.wire", form: text, def: "float32", example: "bfloat16",
		oneOf: wires,
		meaning: "Format of an update on its way. What the narrow ones round away is added to the next round's update " +
			"(error feedback). significant sends only what has changed by more than threshold says, and the rest once it has.",
	},
	{
		path: "distribution.aggregation.threshold", form: number, min: new(float64(0)), def: "0.7", example: "0.5",
		meaning: "With wire: significant: a weight's change is sent once it is more than threshold / sqrt(t) of the " +
			"weight, " +
			"t being the round, from 1 (MLLess' significance filter). 0 sends every change. Other wires do not use it.",
	},
	{
		path: "distribution.aggregation.optimizer", form: text, oneOf: upkeeps, def: "reset", example: "average",
		meaning: "What becomes of an optimiser's moments when a round ends: average takes their mean over the workers as " +
			"for weights, " +
			"reset starts them anew, keep lets every worker go on with its own. SGD without momentum has none.",
	},
	{
		path: "distribution.aggregation.statistics", form: text, oneOf: upkeeps, def: "average", example: "keep",
		meaning: "What becomes of batch norms' running statistics when a round ends: average takes their mean over the " +
			"workers as for weights, " +
			"reset starts them anew, keep lets every worker go on with its own.",
	},
	{
		path: "distribution.missing", form: object, example: "{policy: proceed, after: 2m}",
		meaning: "What is done about a worker whose update does not come.",
	},
	{
		path: "distribution.missing.policy", form: text, def: "retry", example: "proceed",
		oneOf: []string{string(disdel.MissingRetry), string(disdel.MissingWait), string(disdel.MissingProceed)},
		meaning: "retry invokes the worker again, as often as reliability.retries allows, and then fails; wait invokes it " +
			"until the update comes or the " +
			"job's deadline passes; proceed goes on without it, with the mean of those that came, weighted by their samples.",
	},
	{
		path: "distribution.missing.after", form: duration, above: new(float64(0)), def: "1m", example: "2m",
		meaning: "With proceed: time that the others wait, from the first update of the round on. Other policies do not " +
			"use it.",
	},

	{
		path: "distribution.exchange", form: object, example: "{threshold: 0.7}",
		meaning: "Has the workers exchange their updates after every step, inside a round; without it they are averaged " +
			"when it ends. All of them must run at once.",
	},
	{
		path: "distribution.exchange.threshold", form: number, min: new(float64(0)), def: "0", example: "0.7",
		meaning: "A weight's change is sent once it is more than threshold / sqrt(t) of the weight, t being the round's " +
			"step (MLLess' significance filter), and kept until then. 0 sends every change.",
	},
	{
		path: "distribution.exchange.slack", form: integer, min: new(float64(0)), max: new(float64(1000)), def: "0",
		example: "3",
		meaning: "Steps that workers may be apart: a step begins with everybody's updates up to so many steps before the " +
			"last.",
	},
	{
		path: "distribution.exchange.order", form: text, oneOf: []string{disdel.OrderFixed, disdel.OrderEager},
		def: disdel.OrderFixed, example: disdel.OrderEager,
		meaning: "Order in which updates are added: fixed, by step and worker, so that every run comes to the same bits; " +
			"or eager, each as soon as it is there, so that two runs differ.",
	},
	{
		path: "distribution.exchange.combine", form: text, oneOf: []string{disdel.CombineMean, disdel.CombineSum},
		def: disdel.CombineMean, example: disdel.CombineSum,
		meaning: "Whether a step is the mean of the workers' updates, as if they had computed on one batch, or their sum, " +
			"as MLLess has it.",
	},
	{
		path: "distribution.exchange.batches", form: text, oneOf: []string{disdel.BatchesShard, disdel.BatchesQueue},
		def: disdel.BatchesShard, example: disdel.BatchesShard,
		meaning: "Whose rows a worker takes: shard, its own, or queue, the next batch of the epoch whenever it has ended " +
			"one, so that nobody waits for a slow worker until the epoch ends. A queue takes order: eager and sync: epoch.",
	},
	{
		path: "distribution.exchange.values", form: text,
		oneOf: []string{string(disdel.WireFloat32), string(disdel.WireBfloat16), string(disdel.WireInt8)},
		def:   string(disdel.WireFloat32), example: string(disdel.WireInt8),
		meaning: "Number format of the updates that are exchanged. What bfloat16 and int8 lose is sent later, and all of " +
			"it when a round ends.",
	},

	{path: "resources", form: object, example: "{maxMemory: 512MB}", meaning: "What the job may use."},
	{
		path: "resources.memory", form: size, auto: true, above: new(float64(0)), def: "auto", example: "256MB",
		meaning: "Memory of a train action. auto goes by the estimate. A plain integer is in MB; MB and Mi are 2^20 bytes.",
	},
	{
		path: "resources.maxMemory", form: size, above: new(float64(0)), defBy: "the platform's maximum", example: "512MB",
		meaning: "Ceiling of memory where it is auto.",
	},
	{
		path: "resources.timeout", form: duration, auto: true, above: new(float64(0)), def: "auto", example: "5m",
		meaning: "Time that one action may take. auto goes by earlier jobs or a probe, else by maxCost, else it is the " +
			"platform's maximum.",
	},
	{
		path: "resources.threads", form: integer, auto: true, min: new(float64(1)), max: new(float64(1024)), def: "auto",
		example: "8",
		meaning: "Threads of a train action. auto divides the platform's processors among the actions that run at once: " +
			"those of " +
			"this machine, those that `disdel platform up` tells of, or those that containers of an earlier job there have " +
			"found; else one.",
	},
	{
		path: "resources.maxCost", form: cost, above: new(float64(0)), defBy: "none", example: "50GB-s",
		meaning: "Most that the whole job may cost by use; one GB-s is 1,024 MB held for a second. A higher forecast is " +
			"refused, and a job that comes to it stops at its newest checkpoint, to be resumed with more. Actions are told " +
			"how long it holds them.",
	},
	{
		path: "resources.price", form: number, above: new(float64(0)), defBy: "none", example: "0.0000167",
		meaning: "Money that one GB-s costs, in whatever money; costs by use are told in it too.",
	},
	{
		path: "resources.risk", form: number, above: new(float64(0)), max: new(0.05), def: "0.001", example: "0.001",
		meaning: "Accepted chance that an action is killed for memory. Sets the limit from the estimate's interval. Used " +
			"only when memory is auto.",
	},
	{
		path: "resources.device", form: text, auto: true, oneOf: []string{disdel.DeviceCPU, disdel.DeviceGPU}, def: "auto",
		example: disdel.DeviceCPU,
		meaning: "What trains: the processor, or a GPU of NVIDIA for each train action, where actions run a program that " +
			"`make cuda` has built. auto takes a GPU where the platform has one for the job, else the processor.",
	},
	{
		path: "resources.gpu", form: object, example: "{count: 2, memory: 8GB}",
		meaning: "What the job takes of GPUs; with device: gpu.",
	},
	{
		path: "resources.gpu.count", form: integer, auto: true, min: new(float64(1)), max: new(float64(1024)), def: "auto",
		example: "2", meaning: "GPUs that the train actions are divided among, at most. auto takes all that there are.",
	},
	{
		path: "resources.gpu.memory", form: size, auto: true, above: new(float64(0)), def: "auto", example: "8GB",
		meaning: "Memory of a GPU that each train action may take: several share one where it holds their memory. auto " +
			"goes by the estimate.",
	},

	{
		path: "reliability", form: object, example: "{deadline: 30m}",
		meaning: "Bounds of the job as a whole, and what is done against failures.",
	},
	{
		path: "reliability.checkpointEvery", form: integer, min: new(float64(0)), def: "1", example: "5",
		meaning: "Rounds between checkpoints, from which a job can be resumed; 0 stores none.",
	},
	{
		path: "reliability.deadline", form: duration, above: new(float64(0)), defBy: "none", example: "30m",
		meaning: "Time that the whole job may take.",
	},
	{
		path: "reliability.retries", form: object, example: "{limit: 6, perWorker: 3}",
		meaning: "How failed work is tried again.",
	},
	{
		path: "reliability.retries.limit", form: integer, min: new(float64(0)), def: "6", example: "6",
		meaning: "Retries of the whole job. Those that the platform is to blame for do not count.",
	},
	{
		path: "reliability.retries.perWorker", form: integer, min: new(float64(0)), def: "3", example: "3",
		meaning: "Retries of one worker in one round.",
	},
	{
		path: "reliability.retries.backoff", form: object, example: "{initial: 1s, max: 30s}",
		meaning: "Pause before work is tried again that may pass unchanged: initial, then twice the last, at most max.",
	},
	{
		path: "reliability.retries.backoff.initial", form: duration, above: new(float64(0)), def: "1s", example: "2s",
		meaning: "The first pause; at most max.",
	},
	{
		path: "reliability.retries.backoff.max", form: duration, above: new(float64(0)), def: "30s", example: "1m",
		meaning: "The longest pause.",
	},
	{
		path: "reliability.retries.memoryFactor", form: number, above: new(float64(1)), def: "1.25", example: "1.5",
		meaning: "Least growth of the memory limit after an action was killed for memory.",
	},
	{
		path: "reliability.retries.timeoutFactor", form: number, above: new(float64(1)), def: "2", example: "2",
		meaning: "Least growth of the timeout after an action ran out of time.",
	},
	{path: "reliability.onFailure", form: list, later: true, meaning: "What is done about which failure."},

	{path: "output", form: object, example: "{model: digits, keep: 5}", meaning: "Where the trained model goes."},
	{
		path: "output.model", form: text, pattern: dnsLabel, looks: dnsInWords, defBy: "metadata.name", example: "digits",
		meaning: "Name of the trained model.",
	},
	{
		path: "output.keep", form: integer, min: new(float64(1)), def: "20", example: "5",
		meaning: "Newest versions of the model that are kept; the one with the highest held-out accuracy is kept besides.",
	},
	{path: "output.export", form: list, later: true, meaning: "Further formats of the trained model."},
}
