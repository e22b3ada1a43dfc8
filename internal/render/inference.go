package render

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/service/infer"
)

// Inference is the answers of a model, and the document of infer -o json.
type Inference struct {
	Model         string              `json:"model"`
	Accuracy      *float64            `json:"accuracy,omitempty"` // of the model on the rows held out of its training
	Classes       []int               `json:"classes"`
	Names         []string            `json:"names,omitempty"`
	Labels        []int32             `json:"labels,omitempty"` // as the input has them
	Right         *int                `json:"right,omitempty"`  // how many classes are the labels
	Probabilities [][]float32         `json:"probabilities"`
	PlainOutputs  bool                `json:"plainOutputs,omitempty"` // which Probabilities are, for example after mse
	Warnings      []string            `json:"warnings,omitempty"`
	Actions       []disdel.Activation `json:"actions"`

	// Of a network of numbers, instead of classes: the values of each row, in the units of the targets.
	TargetNames []string    `json:"targetNames,omitempty"`
	Values      [][]float64 `json:"values,omitempty"`
	Numbers     [][]float64 `json:"numbers,omitempty"` // as the input has them
	// Yes are, of a network of several labels, the labels of each row with a probability of at least 0.5.
	Yes [][]string `json:"yes,omitempty"`

	// Of a model of sparse rows, instead of classes: a prediction for each row, or items for each user.
	Predictions     []float32            `json:"predictions,omitempty"`
	Targets         []float32            `json:"targets,omitempty"` // as the input has them
	Recommendations []disdel.Recommended `json:"recommendations,omitempty"`

	Continued []infer.Continued `json:"continued,omitempty"` // of a language model, instead of classes
}

// AnswerFile lets a model classify the rows of a file, or continue its texts.
func AnswerFile(ctx context.Context, s *infer.Predictor, m *infer.Model, file string, text []byte,
	how disdel.Continuation,
) (Inference, error) {
	file, text, err := m.Unpack(file, text)
	if err != nil {
		return Inference{}, err
	}
	if texts, ok := m.Texts(file, text); m.Graph.PredictsTokens() && ok || how != (disdel.Continuation{}) {
		doc, err := Inference{Model: m.Ref(), Warnings: terminal.NonEmpty(better(m))}, error(nil)
		doc.Classes, doc.Probabilities = []int{}, [][]float32{}
		doc.Continued, doc.Actions, err = s.Continue(ctx, m, texts, how)
		return doc, err
	}
	if m.Network.Sparse != nil {
		return answerSparse(ctx, s, m, file, text)
	}
	inputs, err := m.Read(file, text)
	if err != nil {
		return Inference{}, err
	}
	warnings := append(inputs.Notes, m.Warning(inputs.Rows), better(m))
	doc := Inference{Model: m.Ref(), Warnings: terminal.NonEmpty(warnings...)}
	if m.Data.HeldOut > 0 && len(m.Network.Targets) == 0 {
		doc.Accuracy = &m.Accuracy
	}
	answers, err := s.Infer(ctx, m, inputs.Rows)
	doc.Classes, doc.Probabilities, doc.Actions = answers.Classes, answers.Probabilities, answers.Actions
	if len(m.Network.Targets) > 0 {
		doc.predict(&m.Network, answers.Probabilities, inputs.Numbers)
		return doc, err
	}
	doc.PlainOutputs = endsPlain(m.Graph)
	doc.compare(inputs.Labels, m.Labels)
	return doc, err
}

// endsPlain tells whether the outputs of a graph are no probabilities. A program's are taken for some.
func endsPlain(g *model.Graph) bool {
	last := g.Nodes[len(g.Nodes)-1].Op
	return last != model.OpSoftmax && last != model.OpSigmoid && last != model.OpCustom
}

// Certainty is the word for the number of an answer's class: probability, or output if the network ends in plain
// outputs.
func Certainty(plainOutputs bool) string {
	if plainOutputs {
		return "output"
	}
	return "probability"
}

// predict converts the outputs of a network of numbers.
func (d *Inference) predict(n *disdel.Network, outputs [][]float32, targets [][]float64) {
	d.Classes, d.Probabilities = []int{}, [][]float32{}
	if !slices.ContainsFunc(targets, func(row []float64) bool { return len(row) != len(n.Targets) }) {
		d.Numbers = targets
	}
	for _, t := range n.Targets {
		d.TargetNames = append(d.TargetNames, t.Name)
	}
	for _, row := range outputs {
		d.Values = append(d.Values, n.Values(row))
		if n.MultiLabel() {
			d.Yes = append(d.Yes, n.LabelsOf(row))
		}
	}
}

// printNumbers is a table of predicted numbers, a row each, beside those of the input.
func printNumbers(w io.Writer, doc Inference) {
	head := []string{"INPUT"}
	for _, name := range doc.TargetNames {
		if head = append(head, strings.ToUpper(name)); doc.Numbers != nil {
			head = append(head, "GIVEN")
		}
	}
	format := "%.6g"
	if doc.Yes != nil { // probabilities
		head, format = append(head, "YES"), "%.4f"
	}
	rows := [][]string{head}
	for i, values := range doc.Values {
		row := []string{fmt.Sprint(i)}
		for k, v := range values {
			if row = append(row, fmt.Sprintf(format, v)); i < len(doc.Numbers) {
				row = append(row, fmt.Sprintf("%.6g", doc.Numbers[i][k]))
			}
		}
		if i < len(doc.Yes) {
			row = append(row, cmp.Or(terminal.OneLine(strings.Join(doc.Yes[i], ", ")), "-"))
		}
		rows = append(rows, row)
	}
	terminal.Table(w, rows...)
}

// QualityText is a model's name and accuracy.
func QualityText(m *modelstore.Model) string {
	if m.Data.HeldOut == 0 {
		return m.Ref() + ", accuracy unknown: nothing was held out"
	}
	if m.RankedBy == "" && (m.Network.Sparse != nil || len(m.Network.Targets) > 0) {
		return fmt.Sprintf("%s, %s held out", m.Ref(), m.Scores.Text())
	}
	metric := m.Metric()
	if v := metric.Value(m.Figures()); v != nil {
		return fmt.Sprintf("%s, %s held out", m.Ref(), metric.Text(*v))
	}
	return fmt.Sprintf("%s, accuracy %.4f held out", m.Ref(), m.Accuracy)
}

// better says that an older version of a model is much better.
func better(m *infer.Model) string {
	if m.Better == nil {
		return ""
	}
	return fmt.Sprintf("%s is the newest version, and an older one is better: %s; disdel infer %s", m.Ref(),
		QualityText(m.Better), m.Better.Ref())
}

// compare names the classes and compares them with the labels of the input.
func (d *Inference) compare(labels []int32, names []string) {
	right := 0
	for i, k := range d.Classes {
		if len(names) > 0 {
			d.Names = append(d.Names, className(names, k))
		}
		if i < len(labels) && int(labels[i]) == k {
			right++
		}
	}
	if labels != nil {
		d.Labels, d.Right = labels, &right
	}
}

func className(names []string, k int) string {
	if k < 0 || k >= len(names) {
		return ""
	}
	return names[k]
}

// PrintInference is a table of answers, a row each.
func PrintInference(w io.Writer, doc Inference) {
	if doc.Predictions != nil || doc.Recommendations != nil {
		printSparseModel(w, doc)
		return
	}
	if doc.TargetNames != nil {
		printNumbers(w, doc)
		return
	}
	if doc.Continued != nil {
		printContinued(w, doc)
		return
	}
	head := []string{"INPUT", "CLASS", "NAME"}
	if doc.Labels != nil {
		head = append(head, "LABEL")
	}
	rows := [][]string{append(head, strings.ToUpper(Certainty(doc.PlainOutputs)))}
	for i, k := range doc.Classes {
		row := []string{fmt.Sprint(i), fmt.Sprint(k), className(doc.Names, i)}
		if doc.Labels != nil {
			row = append(row, fmt.Sprint(doc.Labels[i]))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.4f", doc.Probabilities[i][k])))
	}
	terminal.Table(w, rows...)
	if doc.Right != nil {
		fmt.Fprintf(w, "\n%d of %d right\n", *doc.Right, len(doc.Classes))
	}
}

// printContinued prints each text with its continuation, and how fast the action was.
func printContinued(w io.Writer, doc Inference) {
	tokens := 0
	for _, c := range doc.Continued {
		fmt.Fprintf(w, "%s%s\n\n", terminal.Clean(c.Text), terminal.Clean(c.Continuation))
		tokens += c.Tokens
	}
	var took disdel.Millis
	for _, a := range doc.Actions {
		took += a.Phases["compute"]
	}
	if seconds := time.Duration(took).Seconds(); seconds > 0 {
		rate := float64(tokens) / seconds
		fmt.Fprintf(w, "%s in %.2f s, %.0f a second\n", disdel.Counted(tokens, "token"), seconds, rate)
	}
}

// FileAnswers are the answers for several files.
type FileAnswers struct {
	Model string       `json:"model"`
	Files []FileAnswer `json:"files"`
}

// FileAnswer is the answer for one file.
type FileAnswer struct {
	File string `json:"file"`
	Inference
}

// PrintFileAnswers is a table of the answers for files, a row each.
func PrintFileAnswers(w io.Writer, doc FileAnswers) {
	head := []string{"FILE", "INPUT", "CLASS", "NAME", "PROBABILITY"}
	rows := [][]string{head}
	for _, f := range doc.Files {
		head[len(head)-1] = strings.ToUpper(Certainty(f.PlainOutputs)) // the same for all: they are of one model
		for i, k := range f.Classes {
			rows = append(rows, []string{
				f.File, fmt.Sprint(i), fmt.Sprint(k), className(f.Names, i), fmt.Sprintf("%.4f", f.Probabilities[i][k]),
			})
		}
	}
	if len(rows) > 1 {
		terminal.Table(w, rows...)
	}
	for _, f := range doc.Files {
		if f.Predictions != nil || f.Recommendations != nil || f.TargetNames != nil {
			fmt.Fprintf(w, "%s:\n", terminal.OneLine(f.File))
			PrintInference(w, f.Inference)
		}
	}
}

// rowFormats are the endings of files that NewAnswerWriter writes.
var rowFormats = []string{".csv", ".jsonl", ".npy"}

// NewAnswerWriter writes answers for the rows of a data set as they come. The ending of the file is the format: .csv,
// .jsonl or .npy. It returns Invalid for another ending.
//
// A line of .csv has the row, the class, its name, the label and the probability of each class (p0, p1 ...). For sparse
// rows it has row, prediction and target; for numbers row, and NAME and NAME_given of each target. A line of .jsonl has
// the same as an object. A .npy file has the probabilities, float32 [rows classes], or the predictions: [rows] of
// sparse rows, [rows targets] of numbers. Numbers are written so that they parse to the same bits.
func NewAnswerWriter(ending string, w io.Writer) (infer.DataSink, error) {
	switch strings.ToLower(ending) {
	case ".csv":
		return &csvRows{w: csv.NewWriter(w)}, nil
	case ".jsonl":
		return jsonRows{json.NewEncoder(w)}, nil
	case ".npy":
		return &npyRows{w: w}, nil
	default:
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "write answers", Msg: fmt.Sprintf("there is no format %q for rows", ending),
			Hint: "end the file's name in " + strings.Join(rowFormats, ", "),
		}
	}
}

// jsonRows writes one JSON object a line.
type jsonRows struct{ w *json.Encoder }

func (r jsonRows) Begin(infer.DataHead) error { return nil }

func (r jsonRows) Take(row infer.DataRow) error {
	err := r.w.Encode(row)
	if _, odd := err.(*json.UnsupportedValueError); odd { //nolint:errorlint // it is never wrapped
		return &disdel.Error{
			Kind: disdel.Diverged, Op: "write answers", Msg: fmt.Sprintf("the model says no number of row %d", row.Row),
			Hint: "write a .csv or .npy file, or ask a model whose training did not diverge",
		}
	}
	return err
}

// csvRows writes a table with a head.
type csvRows struct {
	w      *csv.Writer
	named  bool
	record []string
}

func (r *csvRows) Begin(head infer.DataHead) error {
	record := []string{"row", "prediction", "target"}
	if len(head.Targets) > 0 {
		record = []string{"row"}
		for _, name := range head.Targets {
			record = append(record, name, name+"_given")
		}
	}
	if head.Classes > 0 {
		record = []string{"row", "class"}
		if r.named = len(head.Names) > 0; r.named {
			record = append(record, "name")
		}
		record = append(record, "label")
		for k := range head.Classes {
			record = append(record, fmt.Sprintf("p%d", k))
		}
	}
	return r.write(record)
}

func (r *csvRows) Take(row infer.DataRow) error {
	record := append(r.record[:0], strconv.Itoa(row.Row))
	switch {
	case row.Predicted != nil:
		record = append(record, decimal(row.Prediction), decimal(row.Target))
	case row.Numbers != nil:
		for k, v := range row.Values {
			record = append(record, decimal(float32(v)), decimal(float32(row.Given[k])))
		}
	default:
		record = append(record, strconv.Itoa(row.Class))
		if r.named {
			record = append(record, row.Name)
		}
		record = append(record, strconv.Itoa(int(row.Label)))
		for _, p := range row.Probabilities {
			record = append(record, decimal(p))
		}
	}
	return r.write(record)
}

// write flushes every line: the caller buffers.
func (r *csvRows) write(record []string) error {
	r.record = record
	if err := r.w.Write(record); err != nil {
		return err
	}
	r.w.Flush()
	return r.w.Error()
}

// decimal is the shortest text that parses to the same bits.
func decimal(v float32) string { return strconv.FormatFloat(float64(v), 'g', -1, 32) }

// npyRows writes a NumPy array.
type npyRows struct {
	w      io.Writer
	buffer []byte
}

// npyBlock is what the head of a NumPy file is a multiple of.
const npyBlock = 64

func (r *npyRows) Begin(head infer.DataHead) error {
	shape := fmt.Sprintf("(%d,)", head.Rows)
	if head.Classes > 0 {
		shape = fmt.Sprintf("(%d, %d)", head.Rows, head.Classes)
	} else if n := len(head.Targets); n > 0 {
		shape = fmt.Sprintf("(%d, %d)", head.Rows, n)
	}
	text := "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }"
	const before = len("\x93NUMPY\x01\x00") + 2
	text += strings.Repeat(" ", (npyBlock-(before+len(text)+1)%npyBlock)%npyBlock) + "\n"
	out := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(text)))
	_, err := r.w.Write(append(out, text...))
	return err
}

func (r *npyRows) Take(row infer.DataRow) error {
	r.buffer = r.buffer[:0]
	if p := row.Predicted; p != nil {
		r.buffer = binary.LittleEndian.AppendUint32(r.buffer, math.Float32bits(p.Prediction))
	} else if n := row.Numbers; n != nil {
		for _, v := range n.Values {
			r.buffer = binary.LittleEndian.AppendUint32(r.buffer, math.Float32bits(float32(v)))
		}
	} else {
		for _, v := range row.Probabilities {
			r.buffer = binary.LittleEndian.AppendUint32(r.buffer, math.Float32bits(v))
		}
	}
	_, err := r.w.Write(r.buffer)
	return err
}

// DataAnswers is how a data set was answered for, as -o json shows it.
type DataAnswers struct {
	File string `json:"file,omitempty"` // that the answers are in
	infer.DataAnswers
}

// AnswerData has a model of a service answer for the rows of a data set.
func AnswerData(ctx context.Context, s *infer.Predictor, m *infer.Model, ask infer.DataRequest,
	to infer.DataSink,
) (infer.DataAnswers, error) {
	out, err := s.InferData(ctx, m, ask, to)
	out.Warnings = append(out.Warnings, terminal.NonEmpty(better(m))...)
	return out, err
}

// PrintDataAnswers says how a data set was answered for, and where the answers are.
func PrintDataAnswers(w io.Writer, d DataAnswers) {
	fmt.Fprintf(w, "%s on %s, part %s: %d rows", d.Model, d.Dataset, d.Part, d.Rows)
	if d.Classes > 0 {
		fmt.Fprintf(w, ", %d as their labels say", d.Right)
	}
	if d.File != "" {
		fmt.Fprintf(w, ", in %s", d.File)
	}
	fmt.Fprintln(w)
	if len(d.Answers) == 0 {
		return
	}
	fmt.Fprintf(w, "\nanswers in %s, until you delete them:\n", d.Address)
	row := 0
	for _, a := range d.Answers {
		fmt.Fprintf(w, "%s  rows %d to %d, %v\n", a.Key, row, row+a.Rows-1, a.Size)
		row += a.Rows
	}
}
