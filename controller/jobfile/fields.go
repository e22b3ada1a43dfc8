package jobfile

import (
	"regexp"
	"slices"
	"sync"

	"github.com/disdel/disdel"
)

// pattern is compiled when a value is first held against it: what a file's names may look like would else take a
// millisecond of the start of every command and of every container.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// The shapes of names. A data set is a folder of its store and a job a package of OpenWhisk, so both are DNS labels
// (RFC 1123, section 2.1), in which no path can hide.
var (
	dnsLabel     = pattern(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	labelKey     = pattern(`^[A-Za-z0-9]([-A-Za-z0-9_./]{0,61}[A-Za-z0-9])?$`)
	labelText    = pattern(`^[^,=]{0,256}$`)
	dataURL      = pattern(`^dataset://[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	sha256Form   = pattern(`^sha256:[0-9a-f]{64}$`)
	layerForm    = pattern(`^[A-Za-z0-9_][-A-Za-z0-9_./]{0,99}$`)
	layersForm   = pattern(`^[A-Za-z0-9_][-A-Za-z0-9_./]*(, *[A-Za-z0-9_][-A-Za-z0-9_./]*)*$`)
	fileForm     = pattern(`^.{1,255}$`)
	shortText    = pattern(`^.{1,63}$`)
	layerInWords = "letters, digits and _ - . /, at most 100, the first a letter, digit or _"
	dnsInWords   = "lower-case letters, digits and dashes, at most 63, a letter or digit at both ends"
)

// fields is every field of disdel/v1, in the order of the file. A test holds it against disdel.Job.
var fields = slices.Concat(taskFields, runFields)

// taskFields say what is learned: everything up to training.
var taskFields = []field{
	{
		path: "apiVersion", form: text, required: true, oneOf: []string{disdel.APIVersion}, example: disdel.APIVersion,
		meaning: "Version of the job file's format.",
	},
	{
		path: "kind", form: text, required: true, oneOf: []string{disdel.JobKind}, example: disdel.JobKind,
		meaning: "What the file describes.",
	},
	{path: "requireContext", form: text, later: true, meaning: "Refuse to run in any other context."},

	{
		path: "metadata", form: object, required: true, example: "{name: digits}",
		meaning: "The job's name and filter labels.",
	},
	{
		path: "metadata.name", form: text, required: true, pattern: dnsLabel, looks: dnsInWords, example: "digits",
		meaning: "Name of the job. Ids, lists and the trained model are found by it.",
	},
	{path: "metadata.labels", form: object, example: "{team: vision}", meaning: "Labels to filter lists by."},
	{
		path: "metadata.labels.*", form: text, pattern: labelText,
		looks:   "at most 256 characters, without commas and equals signs",
		example: "vision", meaning: "Value of one label.",
	},

	{
		path: "model", form: object, required: true, example: "{name: lenet5}",
		meaning: "The network to train: exactly one of name, keras, layers and custom.",
	},
	{
		path: "model.name", form: text, pattern: shortText, looks: "1 to 63 characters", example: "lenet5",
		meaning: "A network of the zoo, or logistic, linear or pmf for sparse rows; `disdel model list` names them.",
	},
	{
		path: "model.keras", form: text, pattern: fileForm, looks: "the name of a file", example: "my.json",
		meaning: "A network that Keras wrote: a file with the text of model.to_json(). Its place is beside the job file.",
	},
	{
		path: "model.custom", form: text, pattern: shortText, looks: "1 to 63 characters", example: "digits-dense",
		meaning: "A network that only your own action binary has, such as a gorgonia graph; `disdel submit --action FILE` " +
			"names the binary.",
	},
	{
		path: "model.rank", form: integer, min: new(float64(1)), max: new(float64(1024)), defBy: "20, with name: pmf",
		example: "20",
		meaning: "With name: pmf: factors of each user and item. Other models have none.",
	},
	{path: "model.file", form: text, later: true, meaning: "A network written by another program."},
	{
		path: "model.layers", form: list, example: "[{dense: {units: 10, activation: softmax}}]",
		meaning: "A network of your own, layer by layer. Each item is an object with one key, the layer's kind.",
	},
	{
		path: "model.layers[].*", form: object, example: "{units: 10}",
		meaning: "Options of one layer; its key is the layer's kind.",
	},
	{
		path: "model.layers[].*.name", form: text, pattern: layerForm, looks: layerInWords, example: "conv1",
		meaning: "Name of the layer, for from and for its weights. Without one it is the layer's place: 0, 1, ...",
	},
	{
		path: "model.layers[].*.from", form: names, pattern: layerForm, looks: layerInWords, example: "input",
		meaning: "The layers whose output this one takes: one, or a list for add and concat. input is the data. Without " +
			"it, the layer before.",
	},
	{
		path: "model.layers[].*.shape", form: shape, min: new(float64(1)), example: "[1, 28, 28]",
		meaning: "What the network is made for, of an input: [channels, height, width], or [units] to take an image as a " +
			"vector.",
	},
	{
		path: "model.layers[].*.units", form: integer, min: new(float64(1)), example: "10",
		meaning: "Outputs of a dense layer.",
	},
	{
		path: "model.layers[].*.filters", form: integer, min: new(float64(1)), example: "32",
		meaning: "Output channels of a convolution.",
	},
	{
		path: "model.layers[].*.kernel", form: sides, min: new(float64(1)), example: "3",
		meaning: "Side of the square window of a convolution or pool, in pixels, or [height, width].",
	},
	{
		path: "model.layers[].*.stride", form: sides, min: new(float64(1)), example: "2",
		meaning: "Step of the window of a convolution or pool, in pixels, or [down, right].",
	},
	{
		path: "model.layers[].*.padding", form: padding, min: new(float64(0)), example: "1",
		meaning: "Zeros on every side before a convolution or pool, in pixels, or [top, bottom, left, right]. same pads as " +
			"TensorFlow does; an average leaves that padding out.",
	},
	{
		path: "model.layers[].*.dilation", form: sides, min: new(float64(1)), example: "2",
		meaning: "Pixels from one place of a convolution's kernel to the next, or [down, right].",
	},
	{
		path: "model.layers[].*.groups", form: integer, min: new(float64(1)), example: "8",
		meaning: "Groups of channels of a convolution; as many as channels is depthwise.",
	},
	{
		path: "model.layers[].*.bias", form: boolean, example: "false",
		meaning: "Whether a convolution or dense layer adds a bias; it does by default.",
	},
	{
		path: "model.layers[].*.eps", form: number, above: new(float64(0)), example: "1e-3",
		meaning: "Keeps the division of a batch norm away from zero; 1e-05 by default.",
	},
	{
		path: "model.layers[].*.momentum", form: number, above: new(float64(0)), max: new(float64(1)), example: "0.01",
		meaning: "Share of the newest batch in a batch norm's running statistics, 0.1 by default: 1 minus what Keras calls " +
			"momentum.",
	},
	{
		path: "model.layers[].*.scale", form: boolean, example: "false",
		meaning: "Whether a batch norm has weights; it does by default.",
	},
	{
		path: "model.layers[].*.center", form: boolean, example: "false",
		meaning: "Whether a batch norm has biases; it does by default.",
	},
	{
		path: "model.layers[].*.rate", form: number, min: new(float64(0)), below: new(float64(1)), example: "0.2",
		meaning: "Share of values that a dropout layer drops.",
	},
	{
		path: "model.layers[].*.activation", form: text, pattern: shortText,
		looks:   "the name of an activation, such as relu or softmax",
		example: "relu", meaning: "What follows a convolution or dense layer.",
	},
	{path: "model.init", form: object, example: "{seed: 42, scheme: glorot}", meaning: "How weights start."},
	{
		path: "model.init.seed", form: integer, wide: true, def: "42", example: "42",
		meaning: "Seed of the first weights: the same seed gives the same ones.",
	},
	{
		path: "model.init.scheme", form: text, oneOf: []string{"glorot", "he"}, def: "glorot", example: "glorot",
		meaning: "Distribution of the first weights: Glorot and Bengio's, or He's for networks of ReLUs.",
	},
	{
		path: "model.init.weights", form: text, pattern: fileForm, looks: "NAME, NAME:vN, NAME:TAG or a .safetensors file",
		example: "digits:v3",
		meaning: "What training begins with, in place of drawn weights: a trained model, or a file in the format " +
			"safetensors, with PyTorch's names and layouts. Its place is beside the job file.",
	},
	{
		path: "model.init.except", form: text, pattern: layersForm, looks: "names of layers, with commas between them",
		example: "fc",
		meaning: "With weights: layers that are drawn all the same, such as the last one where the classes are others.",
	},

	{path: "data", form: object, required: true, example: "{source: dataset://digits}", meaning: "What to learn from."},
	{
		path: "data.source", form: text, required: true, pattern: dataURL, looks: "dataset:// and the name of a data set",
		example: "dataset://digits", meaning: "The data set; `disdel dataset list` names those that are here.",
	},
	{path: "data.format", form: text, later: true, meaning: "Format of the source."},
	{
		path: "data.checksum", form: text, pattern: sha256Form, looks: "sha256: and 64 lower-case hex digits",
		example: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		meaning: "Checksum of the data set; other data is refused.",
	},
	{
		path: "data.split", form: object, example: "{train: 0.8, validation: 0.2}",
		meaning: "Which share of the rows is held out, where the data set brings no held-out rows of its own.",
	},
	{
		path: "data.split.train", form: number, above: new(float64(0)), max: new(float64(1)), def: "0.8", example: "0.8",
		meaning: "Share of the rows to learn from; where only one share is given, the other is the rest.",
	},
	{
		path: "data.split.validation", form: number, min: new(float64(0)), below: new(float64(1)), def: "0.2", example: "0.2",
		meaning: "Share of the rows held out to evaluate on.",
	},
	{
		path: "data.split.seed", form: integer, wide: true, defBy: "model.init.seed", example: "1",
		meaning: "Seed of the draw that tells the shares apart.",
	},
	{
		path: "data.resize", form: integer, min: new(float64(1)), max: new(float64(4096)), defBy: "as they are",
		example: "75",
		meaning: "Height and width, in pixels, that images are resized to as batches are made: bilinear, as PyTorch's and " +
			"TensorFlow's. Networks that need larger images than the data has can learn from it so.",
	},
	{
		path: "data.augment", form: object, example: "{crop: 4, flip: true}",
		meaning: "How training sees images otherwise in every epoch, drawn by model.init.seed for each row. Held-out rows " +
			"stay as they are.",
	},
	{
		path: "data.augment.crop", form: integer, min: new(float64(1)), max: new(float64(4095)), defBy: "they stay",
		example: "4",
		meaning: "Pixels that an image is moved by at most, up or down and left or right, over zeros: what is left of it " +
			"is a crop of the padded image.",
	},
	{
		path: "data.augment.flip", form: toggle, def: "false", example: "true",
		meaning: "Mirror an image from left to right every other time.",
	},

	{path: "training", form: object, required: true, example: "{epochs: 5}", meaning: "The hyper-parameters."},
	{
		path: "training.epochs", form: integer, required: true, min: new(float64(1)), example: "5",
		meaning: "Passes over the training rows.",
	},
	{
		path: "training.batchSize", form: integer, min: new(float64(1)), def: "64", example: "64",
		meaning: "Rows of one step; at most the rows of the smallest shard. More rows need more memory.",
	},
	{
		path: "training.batch", form: object, example: "{size: 64, of: job}",
		meaning: "Rows of one step and whose they are, in place of batchSize.",
	},
	{
		path: "training.batch.size", form: integer, min: new(float64(1)), def: "64", example: "64",
		meaning: "Rows of one step.",
	},
	{
		path: "training.batch.of", form: text, oneOf: []string{string(disdel.BatchOfWorker), string(disdel.BatchOfJob)},
		def: string(disdel.BatchOfWorker), example: "job",
		meaning: "worker: every worker takes so many rows a step, as with batchSize. job: the workers share them, each its " +
			"part rounded up, so that an action needs less memory the more workers there are (DiSDeL's batch splitting).",
	},
	{
		path: "training.optimizer", form: object, def: "{adam: {learningRate: 0.001}}",
		example: "{adam: {learningRate: 0.001}}",
		meaning: "How weights follow the gradient: exactly one of sgd, adam, adamw and lion.",
	},
	{
		path: "training.optimizer.sgd", form: object, example: "{learningRate: 0.1, momentum: 0.9}",
		meaning: "Stochastic gradient descent.",
	},
	{
		path: "training.optimizer.sgd.learningRate", form: number, required: true, above: new(float64(0)), example: "0.1",
		meaning: "Length of a step.",
	},
	{
		path: "training.optimizer.sgd.momentum", form: number, min: new(float64(0)), below: new(float64(1)), def: "0",
		example: "0.9", meaning: "Share of the last step that is kept.",
	},
	{
		path: "training.optimizer.sgd.weightDecay", form: number, min: new(float64(0)), def: "0", example: "0.0005",
		meaning: "Pull of the weights towards zero, added to the gradient (L2).",
	},
	{
		path: "training.optimizer.sgd.nesterov", form: toggle, def: "false", example: "true",
		meaning: "Whether the gradient is taken where the momentum leads (Nesterov's momentum, as Sutskever 2013 has it); " +
			"needs momentum.",
	},
	{
		path: "training.optimizer.adam", form: object, example: "{learningRate: 0.001}",
		meaning: "Kingma and Ba's optimiser.",
	},
	{
		path: "training.optimizer.adam.learningRate", form: number, above: new(float64(0)), def: "0.001", example: "0.001",
		meaning: "Length of a step.",
	},
	{
		path: "training.optimizer.adam.beta1", form: number, above: new(float64(0)), below: new(float64(1)), def: "0.9",
		example: "0.9", meaning: "Decay of the gradient's mean.",
	},
	{
		path: "training.optimizer.adam.beta2", form: number, above: new(float64(0)), below: new(float64(1)), def: "0.999",
		example: "0.999", meaning: "Decay of the gradient's square.",
	},
	{
		path: "training.optimizer.adam.epsilon", form: number, above: new(float64(0)), def: "1e-08", example: "1e-7",
		meaning: "Keeps the division away from zero.",
	},
	{
		path: "training.optimizer.adam.weightDecay", form: number, min: new(float64(0)), def: "0", example: "0.0005",
		meaning: "Pull of the weights towards zero, added to the gradient (L2); adamw takes it off the weights.",
	},
	{
		path: "training.optimizer.adamw", form: object, example: "{learningRate: 0.001, weightDecay: 0.01}",
		meaning: "Adam with decoupled weight decay (Loshchilov and Hutter 2019).",
	},
	{
		path: "training.optimizer.adamw.learningRate", form: number, above: new(float64(0)), def: "0.001", example: "0.001",
		meaning: "Length of a step.",
	},
	{
		path: "training.optimizer.adamw.beta1", form: number, above: new(float64(0)), below: new(float64(1)), def: "0.9",
		example: "0.9", meaning: "Decay of the gradient's mean.",
	},
	{
		path: "training.optimizer.adamw.beta2", form: number, above: new(float64(0)), below: new(float64(1)), def: "0.999",
		example: "0.999", meaning: "Decay of the gradient's square.",
	},
	{
		path: "training.optimizer.adamw.epsilon", form: number, above: new(float64(0)), def: "1e-08", example: "1e-7",
		meaning: "Keeps the division away from zero.",
	},
	{
		path: "training.optimizer.adamw.weightDecay", form: number, min: new(float64(0)), def: "0.01", example: "0.05",
		meaning: "Share of the weights, times the learning rate, that every step takes off; PyTorch's default.",
	},
	{
		path: "training.optimizer.lion", form: object, example: "{learningRate: 0.0001, weightDecay: 0.1}",
		meaning: "Moves weights by the sign of a mean of gradients (Chen 2023): with half of Adam's memory.",
	},
	{
		path: "training.optimizer.lion.learningRate", form: number, above: new(float64(0)), def: "0.0001",
		example: "0.0003", meaning: "Length of a step: of every weight the same. A third to a tenth of Adam's.",
	},
	{
		path: "training.optimizer.lion.beta1", form: number, above: new(float64(0)), below: new(float64(1)), def: "0.9",
		example: "0.95", meaning: "Share of the mean in what a step goes by; the rest is the gradient.",
	},
	{
		path: "training.optimizer.lion.beta2", form: number, above: new(float64(0)), below: new(float64(1)), def: "0.99",
		example: "0.98", meaning: "Decay of the gradient's mean.",
	},
	{
		path: "training.optimizer.lion.weightDecay", form: number, min: new(float64(0)), def: "0", example: "0.1",
		meaning: "Share of the weights, times the learning rate, that every step takes off.",
	},
	{
		path: "training.loss", form: text, def: "crossEntropy",
		oneOf:   []string{"crossEntropy", "binaryCrossEntropy", "mse", disdel.LossSquared, disdel.LossLogistic},
		example: "crossEntropy",
		meaning: "What training makes small: crossEntropy of classes, binaryCrossEntropy of every output as a probability, " +
			"or mse (mean squared error). Models of sparse rows have their own: squared of linear and pmf, logistic of logistic.",
	},
	{
		path: "training.schedule", form: object, example: "{step: {every: 10, factor: 0.1}}",
		meaning: "How the learning rate changes with the epochs: exactly one of step and cosine. Without one it stays.",
	},
	{
		path: "training.schedule.step", form: object, example: "{every: 10, factor: 0.1}",
		meaning: "Multiplies the learning rate at every so many epochs.",
	},
	{
		path: "training.schedule.step.every", form: integer, required: true, min: new(float64(1)), example: "10",
		meaning: "Epochs from one step to the next.",
	},
	{
		path: "training.schedule.step.factor", form: number, required: true, above: new(float64(0)), example: "0.1",
		meaning: "What the learning rate is multiplied with.",
	},
	{
		path: "training.schedule.cosine", form: object, example: "{floor: 0.01}",
		meaning: "Lets the learning rate fall along half a cosine over all epochs (Loshchilov and Hutter 2017, without " +
			"restarts).",
	},
	{
		path: "training.schedule.cosine.floor", form: number, min: new(float64(0)), max: new(float64(1)), def: "0",
		example: "0.01",
		meaning: "Share of the learning rate that it falls towards.",
	},
	{
		path: "training.clipNorm", form: number, above: new(float64(0)), defBy: "none", example: "1",
		meaning: "Longest gradient, over all weights together; a longer one is scaled down to it (Pascanu 2013). Needs " +
			"memory for all gradients at once.",
	},
	{
		path: "training.exact", form: toggle, def: "false", example: "true",
		meaning: "Whether convolutions are computed by their definition alone. Otherwise those at stride 1 go by " +
			"Winograd's algorithm where there is one that is faster, whose results differ by rounding.",
	},
	{
		path: "training.precision", form: text, oneOf: precisions, defBy: string(disdel.PrecisionFloat32),
		example: string(disdel.PrecisionBF16),
		meaning: "Numbers that a step of training computes with. bf16 rounds what matrix products " +
			"multiply to bfloat16 and, on " +
			"the processor, keeps activations for the way back so, in half the memory; tf32, of GPUs alone, rounds it to ten " +
			"bits of the fraction. Sums, weights and evaluation stay float32.",
	},
	{
		path: "training.earlyStop", form: object, example: "{metric: valLoss, patience: 3}",
		meaning: "Ends training before its last epoch.",
	},
	{
		path: "training.earlyStop.metric", form: text, required: true,
		oneOf: []string{disdel.MetricLoss, disdel.MetricValLoss, disdel.MetricAccuracy}, example: "valLoss",
		meaning: "What is watched: an epoch's mean training loss, or the loss or the accuracy on held-out rows.",
	},
	{
		path: "training.earlyStop.target", form: number, above: new(float64(0)), example: "0.05",
		meaning: "Stop when the metric has come to this: a loss that is at most so much, or an accuracy that is at least " +
			"so much.",
	},
	{
		path: "training.earlyStop.patience", form: integer, min: new(float64(1)), example: "3",
		meaning: "With valLoss and accuracy: stop after so many evaluations in a row without a better one.",
	},
	{
		path: "training.earlyStop.keep", form: text, oneOf: []string{disdel.KeepBest, disdel.KeepLast},
		defBy: "best, with valLoss and accuracy", example: "last",
		meaning: "With valLoss and accuracy: whose weights the model gets, those of the best evaluation or those of the " +
			"last round. " +
			"best writes the weights after every evaluation that is the best so far.",
	},
	{
		path: "training.goal", form: object, example: "{accuracy: 0.9, within: 10m}",
		meaning: "What the job is to come to on held-out rows, and within what: exactly one of " +
			"accuracy, loss and rmse. It ends " +
			"once that has held for three evaluations in a row; what no plan is likely to reach is refused before anything " +
			"is spent.",
	},
	{
		path: "training.goal.accuracy", form: number, above: new(float64(0)), max: new(float64(1)), example: "0.9",
		meaning: "Least accuracy on held-out rows.",
	},
	{
		path: "training.goal.loss", form: number, above: new(float64(0)), example: "0.3",
		meaning: "Highest loss on held-out rows.",
	},
	{
		path: "training.goal.rmse", form: number, above: new(float64(0)), example: "0.9",
		meaning: "With linear and pmf: highest root of the mean squared error on held-out rows.",
	},
	{
		path: "training.goal.within", form: duration, above: new(float64(0)), defBy: "any time", example: "10m",
		meaning: "Time that the goal may take, kept to as reliability.deadline is; the shorter one counts.",
	},
	{
		path: "training.goal.cost", form: cost, above: new(float64(0)), defBy: "any cost", example: "50GB-s",
		meaning: "What the goal may cost, kept to as resources.maxCost is; the lower one counts.",
	},
	{
		path: "training.validateEvery", form: integer, min: new(float64(0)), def: "1", example: "1",
		meaning: "Rounds between evaluations of the held-out rows; 0 evaluates only at the end.",
	},
	{
		path: "training.backend", form: text, oneOf: disdel.Backends(), def: disdel.BackendNative,
		example: disdel.BackendGorgonia,
		meaning: "Engine that trains: native executes a static plan; gorgonia, an expression graph, is slower and takes " +
			"more memory; sparse is that of models of sparse rows, and theirs by default.",
	},
}
