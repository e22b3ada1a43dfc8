package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

func inferCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "infer", Usage: "classify inputs with a trained model, as an action", ArgsUsage: "MODEL",
		Description: "MODEL is NAME, for its newest version, or NAME:vN. FILE is JSON ({\"inputs\": [[...], ...]}, a list of rows, or one row,\n" +
			"each a list or nested as the image) or a NumPy .npy array, with values scaled as in training; - is JSON on standard input.\n" +
			"Labels beside the inputs are compared with the answers.\n\n" +
			"   disdel dataset sample digits --row 7 > digit.json\n   disdel infer digits-cnn --input digit.json -o json",
		Flags: []cli.Flag{&cli.StringFlag{Name: "input", Aliases: []string{"i"}, Usage: "`FILE` of inputs"}, actionFlag},
		Action: func(c *cli.Context) error {
			if err := operands(c, 1, 1); err != nil {
				return err
			}
			if c.String("input") == "" {
				return needsFlag(c, "--input FILE")
			}
			return withStack(c, u, func(ctx context.Context, s *stack) error { return infer(ctx, c, u, s) })
		},
	}
}

// inferDocument is the answer of infer.
type inferDocument struct {
	Model         string              `json:"model"`
	Accuracy      *float64            `json:"accuracy,omitempty"` // of the model on the rows held out of its training
	Classes       []int               `json:"classes"`
	Names         []string            `json:"names,omitempty"`
	Labels        []int32             `json:"labels,omitempty"` // as the input has them
	Right         *int                `json:"right,omitempty"`  // how many classes are the labels
	Probabilities [][]float32         `json:"probabilities"`
	Warnings      []string            `json:"warnings,omitempty"`
	Actions       []disdel.Activation `json:"actions"`
}

func infer(ctx context.Context, c *cli.Context, u *ui, s *stack) error {
	models, err := s.models(ctx)
	if err != nil {
		return err
	}
	name := c.Args().First()
	m, err := models.Get(ctx, name)
	if err != nil {
		return err
	}
	g, err := model.Build(m.Network) // before anything is computed with what a file says
	if err != nil {
		return err
	}
	text, err := readInput(u, c.String("input"))
	if err != nil {
		return err
	}
	inputs, err := readInputs(c.String("input"), text, g.Input())
	if err != nil {
		return err
	}
	doc := inferDocument{Model: m.Ref()}
	doc.Warnings = nonEmpty(outOfRange(inputs.rows, m.Inputs), better(ctx, models, name, &m))
	u.say("model  %s", measured(&m))
	if m.Data.HeldOut > 0 {
		doc.Accuracy = &m.Accuracy
	}
	for _, w := range doc.Warnings {
		u.say("warning: %s", w)
	}
	if err := inferWith(ctx, s, m, g, inputs.rows, &doc); err != nil {
		return err
	}
	doc.compare(inputs.labels, m.Labels)
	return u.show(doc, func(w io.Writer) { printInference(w, doc) })
}

// measured is a model with its accuracy.
func measured(m *modelstore.Model) string {
	if m.Data.HeldOut == 0 {
		return m.Ref() + ", accuracy unknown: nothing was held out"
	}
	return fmt.Sprintf("%s, accuracy %.4f held out", m.Ref(), m.Accuracy)
}

// better says that an older version of a model, asked for by its name alone, is better by much.
func better(ctx context.Context, models *modelstore.Store, name string, m *modelstore.Model) string {
	if strings.Contains(name, ":") {
		return ""
	}
	list, _ := models.Versions(ctx, m.Name) // what cannot be read is not compared
	best, ok := modelstore.Best(list)
	if !ok || m.Data.HeldOut == 0 || best.Accuracy-m.Accuracy < muchBetter {
		return ""
	}
	return fmt.Sprintf("%s is the newest version, and an older one is better: %s; disdel infer %s", m.Ref(), measured(&best), best.Ref())
}

// muchBetter is how much accuracy is worth a warning.
const muchBetter = 0.02

// compare names the classes and holds them against the labels that the input came with.
func (d *inferDocument) compare(labels []int32, names []string) {
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

// maxParameters keeps an invocation's JSON below OpenWhisk's 1 MB, with room for the other fields.
const maxParameters = 900 << 10

// bytesPerValue is the most that a float32 takes in JSON with its comma.
const bytesPerValue = 16

// inferWith runs infer actions over the inputs, as many rows each as the platform takes.
func inferWith(ctx context.Context, s *stack, m modelstore.Model, g *model.Graph, inputs [][]float32, doc *inferDocument) error {
	e, _, err := s.executor(nil)
	if err != nil {
		return err
	}
	limits, err := e.Limits(ctx)
	if err != nil {
		return err
	}
	estimate := estimator.Planned(backends.Standard(nil)).Evaluate(estimator.Input{
		Graph: g, Batch: min(64, len(inputs)), Rows: len(inputs), SampleBytes: disdel.Bytes(4 * g.Input().Len()),
	})
	memory := max(limits.MinMemory, disdel.Bytes(estimate.Total.MB())*disdel.MB)
	if memory > limits.MaxMemory {
		return &disdel.Error{Kind: disdel.OverLimit, Op: "infer", Msg: fmt.Sprintf("an infer action needs %v, and the platform allows %v", estimate.Total, limits.MaxMemory)}
	}
	id := newJobID()
	pkg := scheduler.Package(id)
	plan := disdel.ActionPlan{Task: disdel.TaskInfer, Name: disdel.ActionName(pkg + "/infer"), Estimate: estimate, Limits: disdel.Limits{Memory: memory, Timeout: limits.MaxTimeout}}
	if err := e.Prepare(ctx, pkg, []disdel.ActionPlan{plan}); err != nil {
		return err
	}
	defer e.Remove(context.WithoutCancel(ctx), pkg) //nolint:errcheck // the answer is there; the embedded platform ends anyway
	step := max(1, maxParameters/bytesPerValue/g.Input().Len())
	for start := 0; start < len(inputs); start += step {
		req := disdel.InferRequest{
			Models: s.storage("models"), Path: m.Path, Checksum: m.Checksum, Network: m.Network,
			Inputs: inputs[start:min(start+step, len(inputs))], Memory: memory, Estimate: estimate.Total,
		}
		if err := inferOnce(ctx, e, plan, start/step, req, doc); err != nil {
			return err
		}
	}
	return nil
}

func inferOnce(ctx context.Context, e *executor.Executor, plan disdel.ActionPlan, n int, req disdel.InferRequest, doc *inferDocument) error {
	params, err := json.Marshal(req)
	if err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "infer", Msg: "an input is no number", Err: err}
	}
	inv := disdel.Invocation{ID: fmt.Sprintf("infer/%d", n), Task: disdel.TaskInfer, Action: plan.Name, Member: n, Attempt: 1, Limits: plan.Limits, Estimate: plan.Estimate.Total, Params: params}
	id, err := e.Invoke(ctx, inv)
	if err != nil {
		return err
	}
	a, err := e.Wait(ctx, inv, id)
	if err != nil {
		return err
	}
	doc.Actions = append(doc.Actions, a)
	if a.Outcome != disdel.OutcomeSuccess {
		return a.Failure
	}
	var res disdel.InferResult
	if err := json.Unmarshal(a.Result, &res); err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "infer", Err: err}
	}
	doc.Classes = append(doc.Classes, res.Classes...)
	doc.Probabilities = append(doc.Probabilities, res.Probabilities...)
	return nil
}

func printInference(w io.Writer, doc inferDocument) {
	head := []string{"INPUT", "CLASS", "NAME"}
	if doc.Labels != nil {
		head = append(head, "LABEL")
	}
	rows := [][]string{append(head, "PROBABILITY")}
	for i, k := range doc.Classes {
		row := []string{fmt.Sprint(i), fmt.Sprint(k), className(doc.Names, i)}
		if doc.Labels != nil {
			row = append(row, fmt.Sprint(doc.Labels[i]))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.4f", doc.Probabilities[i][k])))
	}
	table(w, rows...)
	if doc.Right != nil {
		fmt.Fprintf(w, "\n%d of %d right\n", *doc.Right, len(doc.Classes))
	}
}
