package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/service/infer"
)

// PrintModels prints two tables, with fewer columns on a narrow terminal. With unread there are models that the list
// leaves out.
func PrintModels(w io.Writer, doc ModelList, unread error) {
	rows := [][]string{{"NETWORK", "INPUT", "PARAMETERS", "MACS", "TITLE"}}
	for _, n := range doc.Networks {
		rows = append(rows, []string{
			n.Name, model.Shape(n.Input).Text(), fmt.Sprint(n.Parameters), fmt.Sprint(n.MACs),
			n.Title,
		})
	}
	terminal.Table(w, terminal.Fitted(w, rows, "MACS", "TITLE")...)
	if len(doc.Models) == 0 {
		if unread == nil {
			fmt.Fprintln(w, "\nno trained models yet: disdel quickstart")
		}
		return
	}
	fmt.Fprintln(w)
	rows = [][]string{{"MODEL", "NETWORK", "DATA", "METRIC", "LOSS", "LEARNED", "EPOCHS", "SIZE", "CREATED", "JOB"}}
	for i := range doc.Models {
		m := &doc.Models[i]
		rows = append(rows, []string{
			strings.Join(append([]string{m.Ref()}, m.Tags...), " "), networkName(m.Network), m.Data.Name,
			modelFigure(m),
			fourDecimals(m.Loss, m.Measured()), learnedText(m.Learned), fmt.Sprint(m.Epochs),
			m.Size.String(), m.Created.Local().Format("2006-01-02 15:04"), string(m.Job),
		})
	}
	nameMetric(rows, slices.Index(rows[0], "METRIC"))
	terminal.Table(w, terminal.Fitted(w, rows, "JOB", "SIZE", "EPOCHS", "LOSS", "DATA", "CREATED")...)
}

func networkName(n disdel.Network) string {
	if n.Custom != nil {
		return n.Custom.Name
	}
	if n.Name != "" {
		return n.Name
	}
	return fmt.Sprintf("%d layers", len(n.Layers))
}

// PrintNetwork is a network and its layers.
func PrintNetwork(w io.Writer, d Network) {
	fmt.Fprintf(w, "%s: %s\ninput %s, %d classes, %d parameters (%d trainable), %d activations, %d multiply-accumulates "+
		"a sample\n\n",
		terminal.OneLine(d.Name), terminal.OneLine(d.Title), model.Shape(d.Input).Text(), d.Classes, d.Parameters,
		d.TrainableParameters, d.Activations, d.MACs)
	printCounts(w, d.Layers)
}

func printCounts(w io.Writer, list []model.LayerCount) {
	rows := [][]string{{"LAYER", "OP", "OUTPUT", "PARAMETERS", "ACTIVATIONS", "MACS"}}
	for _, l := range list {
		rows = append(rows, []string{
			l.Name, l.Op, model.Shape(l.Output).Text(), fmt.Sprint(l.Parameters),
			fmt.Sprint(l.Activations), fmt.Sprint(l.MACs),
		})
	}
	terminal.Table(w, rows...)
}

func printTensors(w io.Writer, list []Tensor) {
	rows := [][]string{{"TENSOR", "SHAPE", "VALUES"}}
	for _, t := range list {
		rows = append(rows, []string{t.Name, model.Shape(t.Shape).Text(), fmt.Sprint(t.Values)})
	}
	terminal.Table(w, rows...)
}

// PrintTrainedModel is a trained model, with its layers and tensors where they are asked for.
func PrintTrainedModel(w io.Writer, t TrainedModel, layers bool) {
	printModel(w, &t.Model)
	if layers {
		fmt.Fprintln(w)
		printCounts(w, t.Layers)
		fmt.Fprintln(w)
		printTensors(w, t.Tensors)
	}
}

func printModel(w io.Writer, m *modelstore.Model) {
	fmt.Fprintf(w, "model     %s\nnetwork   %s, input %s, %s\n",
		terminal.OneLine(m.Ref()), terminal.OneLine(networkName(m.Network)), model.Shape(m.Network.Input).Text(),
		terminal.OneLine(predictedText(&m.Network)))
	if c := m.Network.Custom; c != nil && c.Python != nil {
		fmt.Fprintf(w, "program   %s, code %s%s\n", terminal.OneLine(c.Python.Form), terminal.OneLine(c.Python.Code),
			terminal.OneLine(versionsText(c.Python)))
	}
	if len(m.Labels) > 0 {
		fmt.Fprintf(w, "classes   %s\n", terminal.OneLine(strings.Join(m.Labels, ", ")))
	}
	if m.Inputs != nil {
		fmt.Fprintf(w, "inputs    %.4g to %.4g\n", m.Inputs.Low, m.Inputs.High)
	}
	fmt.Fprintf(w, "data      %s (%d rows)\naccuracy  %s\ntrained   %s by %s, %s, job %s\nweights   %s, %s, %s\n",
		terminal.OneLine(m.Data.Name), m.Data.Train, modelAccuracy(m), disdel.Counted(m.Epochs, "epoch"),
		disdel.Counted(m.Workers, "worker"),
		m.Created.Local().Format("2006-01-02 15:04:05"), terminal.OneLine(string(m.Job)), terminal.OneLine(m.Path), m.Size,
		terminal.OneLine(strings.TrimPrefix(m.Checksum, "sha256:")))
	for _, text := range m.Warnings {
		fmt.Fprintf(w, "warning   %s\n", terminal.Clean(text))
	}
}

// modelFigure is a model's accuracy, or the RMSE of one that predicts numbers, in a table.
func modelFigure(m *modelstore.Model) string {
	if !m.Measured() {
		return "-"
	}
	if metric := m.Metric(); m.RankedBy != "" && metric.Name != disdel.MetricAccuracy {
		if v := metric.Value(m.Figures()); v != nil {
			return metric.Text(*v)
		}
	}
	return disdel.Figures{Accuracy: &m.Accuracy, Scores: m.Scores}.Text()
}

// predictedText is what a network answers with: classes, or the names of numbers.
func predictedText(n *disdel.Network) string {
	names := make([]string, len(n.Targets))
	for k, t := range n.Targets {
		names[k] = t.Name
	}
	if len(names) == 0 {
		return fmt.Sprintf("%d classes", n.Classes)
	}
	return disdel.Counted(len(names), disdel.DataInfo{Targets: n.Targets}.TargetWord()) + ": " + strings.Join(names, ", ")
}

func modelAccuracy(m *modelstore.Model) string {
	switch {
	case m.Measured() && m.Network.MultiLabel():
		return fmt.Sprintf("%.4f of all labels held out, %s, loss %.4f", m.Accuracy, m.Scores.Text(), m.Loss)
	case m.Measured() && len(m.Network.Targets) > 0:
		return fmt.Sprintf("- of numbers; %s held out, loss %.4f", m.Scores.Text(), m.Loss)
	case m.Measured() && m.Network.Sparse != nil && m.Network.Classes == 1:
		return fmt.Sprintf("- of numbers; %s held out, loss %.4f", m.Scores.Text(), m.Loss)
	case m.Measured() && m.Network.Sparse != nil:
		return fmt.Sprintf("%.4f held out, %s, loss %.4f", m.Accuracy, m.Scores.Text(), m.Loss)
	case m.Measured() && m.Network.NextToken:
		return fmt.Sprintf("%.4f held out, %s, loss %.4f", m.Accuracy, m.Scores.Text(), m.Loss)
	case m.Measured() && m.Top5 != nil:
		return fmt.Sprintf("%.4f held out, loss %.4f, top-5 accuracy %.4f", m.Accuracy, m.Loss, *m.Top5)
	case m.Measured():
		return fmt.Sprintf("%.4f held out, loss %.4f", m.Accuracy, m.Loss)
	case m.Data.HeldOut == 0:
		return "- no rows held out"
	default:
		return "- not evaluated"
	}
}

// learnedText is whether a model learned anything, "-" where nobody knows.
func learnedText(learned *bool) string {
	switch {
	case learned == nil:
		return "-"
	case *learned:
		return "yes"
	default:
		return "no"
	}
}

// ModelComparison is trained models beside each other, as -o json shows them.
type ModelComparison struct {
	Models []modelstore.Model `json:"models"`
}

// PrintModelComparison is a column for each model, and a line for each of their figures.
func PrintModelComparison(w io.Writer, c ModelComparison) {
	var rows [][]string
	for _, line := range []struct {
		name string
		text func(m *modelstore.Model) string
	}{
		{"MODEL", func(m *modelstore.Model) string { return m.Ref() }},
		{"tags", func(m *modelstore.Model) string { return strings.Join(m.Tags, " ") }},
		{"network", func(m *modelstore.Model) string { return networkName(m.Network) }},
		{"data", func(m *modelstore.Model) string { return m.Data.Name }},
		{"accuracy", func(m *modelstore.Model) string {
			return modelFigure(m)
		}},
		{"top-5 accuracy", func(m *modelstore.Model) string {
			if m.Top5 == nil {
				return "-"
			}
			return fourDecimals(*m.Top5, m.Measured())
		}},
		{"loss", func(m *modelstore.Model) string { return fourDecimals(m.Loss, m.Measured()) }},
		{"learned", func(m *modelstore.Model) string { return learnedText(m.Learned) }},
		{"epochs", func(m *modelstore.Model) string { return fmt.Sprint(m.Epochs) }},
		{"workers", func(m *modelstore.Model) string { return fmt.Sprint(m.Workers) }},
		{"size", func(m *modelstore.Model) string { return m.Size.String() }},
		{"created", func(m *modelstore.Model) string { return m.Created.Local().Format("2006-01-02 15:04") }},
		{"job", func(m *modelstore.Model) string { return string(m.Job) }},
	} {
		row := []string{line.name}
		for i := range c.Models {
			text := terminal.OneLine(line.text(&c.Models[i]))
			if text == "" {
				text = "-"
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	terminal.Table(w, rows...)
}

// mostConfused is how many classes have a table of which was taken for which.
const mostConfused = 20

// PrintJudgement is how a model does on the rows of a data set, by class, and which class it takes for which.
func PrintJudgement(w io.Writer, j infer.Evaluation) {
	which := "held out of"
	if !j.HeldOut {
		which = "all of"
	}
	if text := j.Scores.Text(); text != "" {
		fmt.Fprintf(w, "%s on %d rows, %s %s: %s\n", j.Model, j.Rows, which, j.Dataset, text)
		return
	}
	top5 := ""
	if j.Top5 != nil {
		top5 = fmt.Sprintf(", top-5 accuracy %.4f", *j.Top5)
	}
	fmt.Fprintf(w, "%s on %d rows, %s %s: accuracy %.4f, loss %.4f%s\n\n", j.Model, j.Rows, which, j.Dataset, j.Accuracy,
		j.Loss, top5)
	rows := [][]string{{"CLASS", "NAME", "ROWS", "PRECISION", "RECALL", "F1"}}
	for _, c := range j.Classes {
		rows = append(rows, []string{
			fmt.Sprint(c.Class), c.Name, fmt.Sprint(c.Rows), fmt.Sprintf("%.4f", c.Precision),
			fmt.Sprintf("%.4f", c.Recall), fmt.Sprintf("%.4f", c.F1),
		})
	}
	terminal.Table(w, rows...)
	if len(j.Confusion) > mostConfused {
		return
	}
	head := []string{"LABEL / CLASS"}
	for k := range j.Confusion {
		head = append(head, fmt.Sprint(k))
	}
	table := [][]string{head}
	for k, counts := range j.Confusion {
		row := []string{fmt.Sprint(k)}
		for _, n := range counts {
			row = append(row, fmt.Sprint(n))
		}
		table = append(table, row)
	}
	fmt.Fprintln(w)
	terminal.Table(w, table...)
}

// ModelCard writes README.md of a model for a hub: data, figures and training. Its owner fills in the licence.
func ModelCard(m *modelstore.Model) string {
	var out strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "| %s | %s |\n", name, strings.ReplaceAll(fmt.Sprintf(format, args...), "|", "\\|"))
	}
	out.WriteString("---\nlibrary_name: transformers\n# license: the owner of the model states it here\n---\n\n")
	fmt.Fprintf(&out, "# %s\n\n", m.Name)
	if m.Job == "" {
		out.WriteString("disdel imported this model and did not train it.\n\n")
	} else {
		fmt.Fprintf(&out, "disdel trained this model in the job %s.\n\n", m.Job)
	}
	out.WriteString("| | |\n|---|---|\n")
	line("version", "%s, %s", m.Ref(), m.Created.Format("2006-01-02"))
	line("weights", "%v, %s", m.Size, m.Checksum)
	if m.Network.Init.Weights != "" {
		line("started from", "%s", m.Network.Init.Weights)
	}
	if m.Job != "" {
		line("data", "%s: %d training rows, %d held out", m.Data.Name, m.Data.Train, m.Data.HeldOut)
		line("training", "%s with %s", disdel.Counted(m.Epochs, "epoch"), disdel.Counted(m.Workers, "worker"))
	}
	if m.Job != "" && m.Data.HeldOut > 0 {
		line("held-out loss", "%.4g", m.Loss)
		if !m.Data.Numbers() {
			line("held-out accuracy", "%.2f %%", 100*m.Accuracy)
		}
		if text := m.Scores.Text(); text != "" {
			line("held-out scores", "%s", text)
		}
	}
	for _, warning := range m.Warnings {
		line("warning", "%s", warning)
	}
	return out.String()
}
