package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
)

func inferCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "infer", Usage: "classify inputs with a trained model, as an action", ArgsUsage: "MODEL",
		Description: "MODEL is NAME or NAME:vN. FILE is JSON ({\"inputs\": [[...], ...]}, a list of rows, or one row) or a NumPy .npy array,\n" +
			"with values scaled as in training; - is JSON on standard input.\n\n" +
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
	Classes       []int               `json:"classes"`
	Names         []string            `json:"names,omitempty"`
	Probabilities [][]float32         `json:"probabilities"`
	Actions       []disdel.Activation `json:"actions"`
}

func infer(ctx context.Context, c *cli.Context, u *ui, s *stack) error {
	models, err := s.models(ctx)
	if err != nil {
		return err
	}
	m, err := models.Get(ctx, c.Args().First())
	if err != nil {
		return err
	}
	text, err := readInput(u, c.String("input"))
	if err != nil {
		return err
	}
	inputs, err := readInputs(c.String("input"), text, model.Shape(m.Network.Input).Len())
	if err != nil {
		return err
	}
	doc, err := inferWith(ctx, s, m, inputs)
	if err != nil {
		return err
	}
	return u.show(doc, func(w io.Writer) { printInference(w, doc) })
}

// readInputs reads rows of a network's input from JSON or .npy.
func readInputs(name string, data []byte, sample int) ([][]float32, error) {
	bad := func(format string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + name, Msg: fmt.Sprintf(format, args...),
			Hint: fmt.Sprintf("give rows of %d values as JSON, {\"inputs\": [[...]]}, or as a .npy array", sample),
		}
	}
	var rows [][]float32
	if strings.EqualFold(filepath.Ext(name), ".npy") {
		values, shape, err := dataset.ReadNPY(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		if len(values) == 0 || len(values)%sample != 0 {
			return nil, bad("an array of shape %v is no rows of %d values", shape, sample)
		}
		for ; len(values) > 0; values = values[sample:] {
			rows = append(rows, values[:sample])
		}
		return rows, nil
	}
	var document struct {
		Inputs [][]float32 `json:"inputs"`
	}
	var row []float32
	switch {
	case json.Unmarshal(data, &document) == nil && document.Inputs != nil:
		rows = document.Inputs
	case json.Unmarshal(data, &rows) == nil:
	case json.Unmarshal(data, &row) == nil:
		rows = [][]float32{row}
	default:
		return nil, bad("it is no JSON of inputs")
	}
	if len(rows) == 0 {
		return nil, bad("there are no inputs")
	}
	for i, r := range rows {
		if len(r) != sample {
			return nil, bad("input %d has %d values, and the model takes %d", i, len(r), sample)
		}
	}
	return rows, nil
}

// maxParameters keeps an invocation's JSON below OpenWhisk's 1 MB, with room for the other fields.
const maxParameters = 900 << 10

// bytesPerValue is the most that a float32 takes in JSON with its comma.
const bytesPerValue = 16

// inferWith runs infer actions over the inputs, as many rows each as the platform takes.
func inferWith(ctx context.Context, s *stack, m modelstore.Model, inputs [][]float32) (doc inferDocument, err error) {
	doc = inferDocument{Model: m.Ref()}
	e, _, err := s.executor(nil)
	if err != nil {
		return doc, err
	}
	limits, err := e.Limits(ctx)
	if err != nil {
		return doc, err
	}
	g, err := model.Build(m.Network)
	if err != nil {
		return doc, err
	}
	estimate := estimator.Estimator{}.Evaluate(estimator.Input{Graph: g, Batch: min(64, len(inputs)), Rows: len(inputs), SampleBytes: disdel.Bytes(4 * g.Input().Len())})
	memory := max(limits.MinMemory, disdel.Bytes(estimate.Total.MB())*disdel.MB)
	if memory > limits.MaxMemory {
		return doc, &disdel.Error{Kind: disdel.OverLimit, Op: "infer", Msg: fmt.Sprintf("an infer action needs %v, and the platform allows %v", estimate.Total, limits.MaxMemory)}
	}
	id := newJobID()
	pkg := controller.Package(id)
	plan := disdel.ActionPlan{Task: disdel.TaskInfer, Name: disdel.ActionName(pkg + "/infer"), Estimate: estimate, Limits: disdel.Limits{Memory: memory, Timeout: limits.MaxTimeout}}
	if err := e.Prepare(ctx, pkg, []disdel.ActionPlan{plan}); err != nil {
		return doc, err
	}
	defer e.Remove(context.WithoutCancel(ctx), pkg) //nolint:errcheck // the answer is there; the embedded platform ends anyway
	step := max(1, maxParameters/bytesPerValue/g.Input().Len())
	for start := 0; start < len(inputs); start += step {
		req := disdel.InferRequest{
			Models: s.storage("models"), Path: m.Path, Checksum: m.Checksum, Network: m.Network,
			Inputs: inputs[start:min(start+step, len(inputs))], Memory: memory, Estimate: estimate.Total,
		}
		if err := inferOnce(ctx, e, plan, start/step, req, &doc); err != nil {
			return doc, err
		}
	}
	for _, k := range doc.Classes {
		if k < len(m.Labels) {
			doc.Names = append(doc.Names, m.Labels[k])
		}
	}
	return doc, nil
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
	rows := [][]string{{"INPUT", "CLASS", "NAME", "PROBABILITY"}}
	for i, k := range doc.Classes {
		name := ""
		if i < len(doc.Names) {
			name = doc.Names[i]
		}
		rows = append(rows, []string{fmt.Sprint(i), fmt.Sprint(k), name, fmt.Sprintf("%.4f", doc.Probabilities[i][k])})
	}
	table(w, rows...)
}
