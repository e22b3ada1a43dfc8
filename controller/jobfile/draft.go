package jobfile

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
)

// Draft is what a new job file is written for: a data set, and perhaps a network that Keras wrote.
type Draft struct {
	Name      string             // of the job and its model: a DNS label
	Dataset   string             // name of the data set
	Sample    []int              // shape of a row: [channels height width], of sparse rows [columns]
	Classes   int                // 0: the targets are numbers, of sparse rows
	Targets   []disdel.Target    // numbers to predict or labels, of dense rows; nil: rows have classes, or are sparse
	Rows      int                // of the data set, without held-out rows of its own
	HeldOut   int                // held-out rows of its own
	NextToken bool               // rows are texts for a language model; Classes is the number of tokens
	Tokens    int                // that the tokenizer of texts with classes knows; 0: rows are no such texts
	Sparse    *disdel.SparseData // nil: the rows are dense
	Length    float64            // mean squared length of a sparse row
	Keras     string             // file of the network, as the job file names it; "": disdel chooses layers
	Python    string             // file of a PyTorch program with a class Net, the same; "": none
}

// arguments are those of the class Net of Draft.Python.
func (d Draft) arguments() string {
	if d.Table() {
		return fmt.Sprintf("{columns: %d, classes: %d}", d.width(), d.Classes)
	}
	return fmt.Sprintf("{channels: %d, classes: %d}", d.Sample[0], d.Classes)
}

// Text returns a job file for the data, with a comment for each line. Its network, batch size, epochs and learning
// rate are a start that suits the kind and the number of rows, not the best ones.
func (d Draft) Text() []byte {
	p := &draftPage{}
	fmt.Fprintf(&p.text, "# Train on the data set %s: %s.\n#   disdel submit FILE\n"+
		"# Every value below can be changed. disdel explain FIELD says more about a field.\n", d.Dataset, d.rowsText())
	p.add("apiVersion", disdel.APIVersion, "")
	p.add("kind", "TrainingJob", "")
	p.add("metadata", "", "")
	p.add("metadata.name", yamlText(d.Name), "")
	p.add("model", "", "")
	d.network(p)
	p.add("data", "", "")
	p.add("data.source", "dataset://"+d.Dataset, "")
	if d.HeldOut == 0 {
		p.add("data.split", "{train: 0.8, validation: 0.2}", "")
	}
	if side := d.resized(); side > 0 {
		p.add("data.resize", fmt.Sprint(side), "Smaller images train faster.")
	}
	p.add("training", "", "")
	p.add("training.epochs", fmt.Sprint(d.epochs()), "")
	p.add("training.batchSize", fmt.Sprint(d.batchSize()), "")
	if d.multiLabel() {
		p.add("training.loss", disdel.LossBinaryCrossEntropy, "Each label is right or wrong for itself.")
	} else if len(d.Targets) > 0 {
		p.add("training.loss", disdel.LossMSE, "A few rows far off count less with huber or mae.")
	}
	p.add("training.optimizer", d.optimizer(), "A rate 10 times lower is safer, but slower.")
	if d.evaluated() >= fewestEvaluated {
		p.add("training.earlyStop", "{metric: valLoss, patience: 8}", "The model keeps the best weights.")
	}
	return []byte(p.text.String())
}

// yamlText is a text as a value of YAML. It is in quotes if YAML reads it as a number, a date or another word.
func yamlText(text string) string {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil || value != text {
		return strconv.Quote(text)
	}
	return text
}

// rowsText describes the rows in a few words.
func (d Draft) rowsText() string {
	rows := fmt.Sprintf("%d rows", d.Rows+d.HeldOut)
	switch {
	case d.Sparse != nil && d.Sparse.Ratings():
		return rows + " of ratings"
	case d.Sparse != nil:
		return fmt.Sprintf("%s of %d sparse columns", rows, d.Sample[0])
	case d.NextToken:
		return fmt.Sprintf("%s of %d tokens, to learn the next one of %d", rows, d.width(), d.Classes)
	case d.Tokens > 0:
		return fmt.Sprintf("%s of %d tokens of %d, %s", rows, d.width(), d.Tokens, d.learned())
	case d.Table():
		return fmt.Sprintf("%s of %d numbers, %s", rows, d.width(), d.learned())
	default:
		return fmt.Sprintf("%s of images of %dx%d pixels in %d channels, %s", rows, d.Sample[1], d.Sample[2],
			d.Sample[0], d.learned())
	}
}

// multiLabel tells whether rows have several labels.
func (d Draft) multiLabel() bool { return disdel.DataInfo{Targets: d.Targets}.MultiLabel() }

// learned describes what dense rows teach.
func (d Draft) learned() string {
	if len(d.Targets) > 0 {
		names := make([]string, len(d.Targets))
		for k, t := range d.Targets {
			names[k] = t.Name
		}
		return "to predict " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%d classes", d.Classes)
}

// network adds the section model.
func (d Draft) network(p *draftPage) {
	switch {
	case d.Python != "":
		p.add("model.python", "", "")
		p.add("model.python.file", strconv.Quote(d.Python), "")
		p.add("model.python.entry", "Net", "")
		p.add("model.python.arguments", d.arguments(), "")
	case d.Keras != "":
		p.add("model.keras", strconv.Quote(d.Keras), "")
	case d.Sparse != nil && d.Sparse.Ratings():
		p.add("model.name", "pmf", "Matrix factorisation predicts the rating of a user for an item.")
		p.add("model.rank", "20", "")
	case d.Sparse != nil && d.Classes == 2:
		p.add("model.name", "logistic", "Logistic regression tells two classes apart.")
	case d.Sparse != nil:
		p.add("model.name", "linear", "Linear regression predicts a number.")
	case d.NextToken:
		p.add("model.name", "gpt-tiny", "gpt-small and gpt2 are larger networks for more text.")
	default:
		p.add("model.layers", "", "")
		for _, layer := range d.layers() {
			p.layer(layer)
		}
	}
}

// draftLayer is one layer, and what it is for.
type draftLayer struct{ text, why string }

// tokenWidth is the length of the vectors of tokens: short texts with few classes need no more.
const tokenWidth = 32

// Sides of images, in pixels, for which layers are chosen.
const (
	leastSide  = 4  // smaller images are tables
	pooledSide = 8  // images are halved until they are smaller
	largeSide  = 96 // larger images are resized
	usualSide  = 64 // to this side
)

// layers chooses a small network: convolutions for images, dense layers for tables.
func (d Draft) layers() (out []draftLayer) {
	if d.Tokens > 0 {
		return []draftLayer{
			{
				fmt.Sprintf("embedding: {vocabulary: %d, width: %d, padded: true}", d.Tokens, tokenWidth),
				"A vector for each token. Token 0 only fills short texts.",
			},
			{"takePosition: {take: mean}", "The mean does not see the order of words; transformer: {heads: 4} above it does."},
			{fmt.Sprintf("dense: {units: %d, activation: softmax}", d.Classes), "One probability for each class."},
		}
	}
	if !d.Table() {
		side, filters := min(d.Sample[1], d.Sample[2]), 16
		if to := d.resized(); to > 0 {
			side = to
		}
		for ; side >= pooledSide; side, filters = side/2, min(2*filters, 64) {
			out = append(out,
				draftLayer{
					fmt.Sprintf("conv: {filters: %d, kernel: 3, padding: 1, activation: relu}", filters),
					fmt.Sprintf("%d filters of 3x3 pixels look for patterns.", filters),
				},
				draftLayer{"maxPool: {kernel: 2}", "Halves height and width."})
		}
	}
	out = append(out, draftLayer{
		fmt.Sprintf("dense: {units: %d, activation: relu}", d.hidden()), "A hidden layer combines all values.",
	})
	if d.width() > d.Rows {
		out = append(out, draftLayer{
			"dropout: {rate: 0.2}", "There are more values than rows: dropout makes it harder to learn them by heart.",
		})
	}
	if n := len(d.Targets); d.multiLabel() {
		return append(out, draftLayer{
			fmt.Sprintf("dense: {units: %d, activation: sigmoid}", n), "One probability for each label.",
		})
	} else if n > 0 {
		return append(out, draftLayer{fmt.Sprintf("dense: {units: %d}", n), "One number for each target."})
	}
	return append(out, draftLayer{
		fmt.Sprintf("dense: {units: %d, activation: softmax}", d.Classes), "One probability for each class.",
	})
}

// Table tells whether dense rows are a table rather than images.
func (d Draft) Table() bool { return min(d.Sample[1], d.Sample[2]) < leastSide }

// width is the number of values of a row.
func (d Draft) width() int {
	n := 1
	for _, side := range d.Sample {
		n *= side
	}
	return n
}

// hidden is the width of the hidden layer: it grows with values and classes.
func (d Draft) hidden() int {
	return powerOfTwo(2*d.Classes+int(math.Sqrt(float64(d.width()))), 16, 128)
}

// resized is the side that large images are resized to; 0: they keep their size. Networks of Keras have a size of
// their own.
func (d Draft) resized() int {
	if d.Sparse == nil && d.Keras == "" && !d.Table() && max(d.Sample[1], d.Sample[2]) > largeSide {
		return usualSide
	}
	return 0
}

// shard is the number of rows that each of two workers trains on.
func (d Draft) shard() int {
	rows := float64(d.Rows)
	if d.HeldOut == 0 {
		rows *= 0.8
	}
	return max(1, int(rows/2))
}

// fewestEvaluated is how many held-out rows can tell when training gets worse.
const fewestEvaluated = 10

// evaluated is the number of held-out rows.
func (d Draft) evaluated() int {
	if d.HeldOut > 0 {
		return d.HeldOut
	}
	return d.Rows / 5
}

// batchSize leaves about eight steps in an epoch of a small data set.
func (d Draft) batchSize() int {
	if d.Sparse != nil {
		return powerOfTwo(d.shard()/32, 1, 512)
	}
	if d.NextToken { // each row has many targets
		return powerOfTwo(d.shard()/8, 1, 16)
	}
	return powerOfTwo(d.shard()/8, 1, 64)
}

// enoughSteps is the number of updates after which a small network has usually learned.
const enoughSteps = 1500

// epochs gives small data sets more passes than large ones.
func (d Draft) epochs() int {
	steps := max(1, d.shard()/d.batchSize())
	return min(max(5, (enoughSteps+steps-1)/steps), 40)
}

// optimizer chooses a learning rate.
func (d Draft) optimizer() string {
	switch {
	case d.Sparse != nil && d.Sparse.Ratings():
		return "{sgd: {learningRate: 1.5, momentum: 0.8, nesterov: true}}"
	case d.Sparse != nil && d.Classes != 2:
		return fmt.Sprintf("{sgd: {learningRate: %s}}", d.regressionRate())
	case d.NextToken:
		return "{adam: {learningRate: 0.003}}"
	case d.Sparse == nil && d.Table():
		return "{adam: {learningRate: 0.01}}"
	default:
		return "{adam: {learningRate: 0.002}}"
	}
}

// regressionRate is a rate with which linear regression is stable: a step takes a fifth of the error of its rows away,
// whatever the size of the targets. Adam would need a rate for their size.
func (d Draft) regressionRate() string {
	return strconv.FormatFloat(0.1/(1+d.Length), 'g', 1, 64)
}

// powerOfTwo is the largest power of two up to n, within minimum and maximum.
func powerOfTwo(n, minimum, maximum int) int {
	return min(max(1<<(bits.Len(uint(max(n, 1)))-1), minimum), maximum)
}

// draftPage is a job file that is being written.
type draftPage struct{ text strings.Builder }

// commentWidth is the width of comments, in columns.
const commentWidth = 100

// add writes a field below a comment: its meaning, and why it has this value. "" is an object or a list that follows.
func (p *draftPage) add(path, value, why string) {
	f := find(path)
	indent := strings.Repeat("  ", strings.Count(path, "."))
	if parent := f.parent() == ""; !parent || value != "" {
		p.comment(indent, f.meaning, why)
	}
	p.text.WriteString(strings.TrimRight(indent+f.name()+": "+value, " ") + "\n")
}

// layer writes an item of the list of layers.
func (p *draftPage) layer(l draftLayer) {
	p.comment("    ", l.why)
	p.text.WriteString("    - " + l.text + "\n")
}

// comment writes sentences as lines of comments.
func (p *draftPage) comment(indent string, sentences ...string) {
	line := indent + "#"
	for word := range strings.FieldsSeq(strings.Join(sentences, " ")) {
		if len(line)+1+len(word) > commentWidth {
			p.text.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	p.text.WriteString(line + "\n")
}
