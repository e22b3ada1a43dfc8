package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/infer"
)

func evaluateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "evaluate", Usage: "measure a trained model's accuracy on a data set", ArgsUsage: "MODEL",
		Description: "MODEL is as for infer. " +
			"Prints accuracy, loss, precision and recall of every class, and the most frequent\n" +
			"confusions, on the held-out rows of the data set; on all rows if none are held out.\n\n" +
			"   disdel evaluate digits-cnn --dataset digits",
		Flags: []cli.Flag{&cli.StringFlag{Name: "dataset", Usage: "`NAME` of the data set"}, actionFlag, failIfFlag},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			if c.String("dataset") == "" {
				return missingFlag(c, "--dataset NAME")
			}
			if err := checkRules(c); err != nil {
				return err
			}
			return withClient(c, u, storage|records|actions, func(ctx context.Context, at client.Client) error {
				j, err := at.Models.Evaluate(ctx, c.Args().First(), c.String("dataset"))
				if err != nil {
					return err
				}
				for _, w := range j.Warnings {
					u.Say("warning: %s", w)
				}
				if err := u.Show(j, func(w io.Writer) { render.PrintJudgement(w, j) }); err != nil {
					return err
				}
				return failIfEvaluated(c, &j)
			})
		},
	}
}

// inferCommand classifies the rows of a file, the rows of a data set, or files as they arrive.
func inferCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "infer", Usage: "classify inputs or continue texts with a trained model, as actions",
		ArgsUsage: "MODEL [FILE | FOLDER...]",
		Description: "MODEL is NAME (its newest version that learned), NAME:vN or NAME:TAG. " +
			"FILE, or - for standard input, is one of:\n" +
			"   JSON: {\"inputs\": [[...], ...]}, a list of rows or one row\n" +
			"   of a model of a table: CSV with a header, JSON objects or Parquet, as the table's own file has them\n" +
			"   of a model of sparse rows: lines of LIBSVM, whose columns count as in the file of the data set\n" +
			"   a PNG or JPEG picture, an IDX or NumPy .npy array, a .csv table of numbers scaled as in training\n" +
			"   lines of text, for a model of texts; a language model continues each line\n" +
			"If the file has labels, disdel compares them with the answers. FOLDER is all such files in it and below.\n\n" +
			"With --dataset, actions read the rows, and --file collects the answers; without --file they stay\n" +
			"beside the models. With --watch, each new file in the folder adds a line to --file, until Ctrl-C.\n\n" +
			"   disdel dataset sample digits --row 7 > digit.json\n   disdel infer digits-cnn digit.json -o json\n" +
			"   disdel infer pets cat.png dog.jpg pictures\n" +
			"   disdel infer digits-cnn --dataset digits --part test --file answers.csv\n" +
			"   disdel infer digits-cnn --watch incoming --file answers.jsonl",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "input", Aliases: []string{"i"}, Usage: "`FILE` of inputs, like the operand"},
			&cli.StringFlag{
				Name: "dataset", Usage: "`NAME` of a data set to classify; NAME@CHECKSUM is one version of it",
			},
			&cli.StringFlag{
				Name: "part", Value: string(disdel.PartAll), Usage: "`PART` of the data set: all, train or test (held out)",
			},
			&cli.StringFlag{Name: "watch", Usage: "`FOLDER` to watch: files are classified as they arrive"},
			&cli.IntFlag{
				Name: "tokens", Value: infer.DefaultTokens, Usage: "`NUMBER` of tokens that are added to a text at most",
			},
			&cli.Float64Flag{
				Name: "temperature", Usage: "draw tokens at this temperature `T`; 0: the most probable ones",
			},
			&cli.IntFlag{Name: "top-k", Usage: "draw from the `K` most probable tokens only; 0: all"},
			&cli.Float64Flag{Name: "top-p", Usage: "draw from the most probable tokens with the sum `P` only; 0: all"},
			&cli.Int64Flag{Name: "seed", Usage: "`SEED` of the draws"},
			actionFlag,
		}, fileFlags("new `FILE` of answers: .csv, .jsonl or .npy, or - for lines of JSON; --watch appends to a .jsonl")...),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return checkOperands(c, 1, 1)
			}
			act, err := inference(c, u)
			if err != nil {
				return err
			}
			return withClient(c, u, storage|records|actions, func(ctx context.Context, at client.Client) error {
				return act(ctx, at.Models)
			})
		},
	}
}

// inference returns what the flags of infer ask for.
func inference(c *cli.Context, u *ui) (func(ctx context.Context, models client.Models) error, error) {
	input, dataset, watch := askedFiles(c), c.String("dataset"), c.String("watch")
	asked := len(terminal.NonEmpty(dataset, watch)) + min(1, len(input))
	conflict := func(msg, hint string) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "infer", Msg: msg, Hint: hint}
	}
	switch {
	case asked == 0:
		return nil, conflict("it needs files to classify",
			c.Command.HelpName+" "+c.Args().First()+" FILE..., or --dataset NAME for a data set")
	case asked > 1:
		return nil, conflict("files, --dataset and --watch are three questions", "give one of them")
	case len(input) == 0 && continuationOf(c) != (disdel.Continuation{}):
		return nil, conflict("--tokens, --temperature, --top-k, --top-p and --seed are of texts in files",
			"give a FILE of texts")
	case dataset == "" && c.IsSet("part"):
		return nil, conflict("--part is of a data set", "add --dataset NAME")
	case len(input) > 0 && fileOf(c) != "":
		return nil, conflict("the answers for files go to standard output", "add > FILE, or -o json")
	case watch != "":
		w, err := newWatching(c, u)
		if err != nil {
			return nil, err
		}
		return w.run, nil
	case dataset != "":
		return inferringData(c, u)
	default:
		return func(ctx context.Context, models client.Models) error {
			return inferFiles(ctx, u, models, c.Args().First(), input, continuationOf(c))
		}, nil
	}
}

// continuationOf is how the flags ask a language model to continue texts; zero if they do not say it.
func continuationOf(c *cli.Context) (how disdel.Continuation) {
	if !slices.ContainsFunc([]string{"tokens", "temperature", "top-k", "top-p", "seed"}, c.IsSet) {
		return how
	}
	return disdel.Continuation{
		Tokens: c.Int("tokens"), Temperature: c.Float64("temperature"), TopK: c.Int("top-k"), TopP: c.Float64("top-p"),
		Seed: c.Int64("seed"),
	}
}

// inferFile classifies the rows of a file, or continues its texts.
func inferFile(ctx context.Context, u *ui, models client.Models, model, file string,
	how disdel.Continuation,
) error {
	text, err := readFile(u, file)
	if err != nil {
		return err
	}
	doc, m, err := models.Answer(ctx, model, file, text, how)
	if doc.Model != "" {
		u.Say("model  %s", render.QualityText(&m))
	}
	for _, w := range doc.Warnings {
		u.Say("warning: %s", w)
	}
	if err != nil {
		return err
	}
	return u.Show(doc, func(w io.Writer) { render.PrintInference(w, doc) })
}

// readFile is the content of a file, or of standard input for "-".
func readFile(u *ui, name string) ([]byte, error) {
	if name == "-" {
		return files.ReadAll(name, u.In)
	}
	return files.Read(name)
}

// inferringData classifies the rows of a data set.
func inferringData(c *cli.Context, u *ui) (func(ctx context.Context, models client.Models) error, error) {
	model, output := c.Args().First(), fileOf(c)
	ask := infer.DataRequest{Dataset: c.String("dataset"), Part: disdel.DataPart(c.String("part")), Keep: output == ""}
	switch output {
	case "":
		return func(ctx context.Context, models client.Models) error {
			out, err := models.AnswerData(ctx, model, ask, nil)
			return showDataAnswers(u, "", out, err)
		}, nil
	case standardOutput:
		if err := twoFormats(u, "infer", "--file -"); err != nil {
			return nil, err
		}
		return func(ctx context.Context, models client.Models) error {
			return inferToOutput(ctx, u, models, model, ask)
		}, nil
	}
	if _, err := render.NewAnswerWriter(filepath.Ext(output), io.Discard); err != nil {
		return nil, err
	}
	return func(ctx context.Context, models client.Models) error {
		return inferToFile(ctx, u, models, model, ask, output)
	}, nil
}

// inferToOutput writes a line of JSON for each row to standard output.
func inferToOutput(ctx context.Context, u *ui, models client.Models, model string, ask infer.DataRequest,
) error {
	w := bufio.NewWriterSize(u.Out, 1<<16)
	rows, err := render.NewAnswerWriter(".jsonl", cleanJSONWriter{w})
	if err != nil {
		return err
	}
	out, err := models.AnswerData(ctx, model, ask, rows)
	if err := terminal.Unwritten(w.Flush()); err != nil {
		return err
	}
	warn(u, out)
	return err
}

// cleanJSONWriter writes JSON documents whose characters cannot control a terminal. Each Write is one document.
type cleanJSONWriter struct{ to io.Writer }

func (c cleanJSONWriter) Write(document []byte) (int, error) {
	if _, err := c.to.Write(terminal.CleanJSON(document)); err != nil {
		return 0, err
	}
	return len(document), nil
}

// inferToFile writes answers to a file. The file appears only once it is complete.
func inferToFile(ctx context.Context, u *ui, models client.Models, model string, ask infer.DataRequest,
	file string,
) error {
	draft, err := files.NewDraft(file)
	if err != nil {
		return err
	}
	rows, err := render.NewAnswerWriter(filepath.Ext(file), draft)
	if err != nil {
		return errors.Join(err, draft.Abandon())
	}
	out, err := models.AnswerData(ctx, model, ask, rows)
	if err != nil {
		return errors.Join(err, draft.Abandon())
	}
	return showDataAnswers(u, file, out, draft.Finish())
}

// showDataAnswers says how many rows of a data set were classified, and where the answers are.
func showDataAnswers(u *ui, file string, out infer.DataAnswers, err error) error {
	warn(u, out)
	if err != nil {
		return err
	}
	doc := render.DataAnswers{File: file, DataAnswers: out}
	return u.Show(doc, func(w io.Writer) { render.PrintDataAnswers(w, doc) })
}

func warn(u *ui, out infer.DataAnswers) {
	for _, w := range out.Warnings {
		u.Say("warning: %s", w)
	}
}

// askedFiles are the files and folders that a command line of `infer` names, as operands or with --input.
func askedFiles(c *cli.Context) []string {
	return append(terminal.NonEmpty(c.String("input")), c.Args().Tail()...)
}

// inferFiles classifies the rows of files, and of the files in folders. Faults of files are reported after the answers,
// all at once.
func inferFiles(ctx context.Context, u *ui, models client.Models, model string, named []string,
	how disdel.Continuation,
) error {
	list, faults := inputFiles(named)
	if len(named) == 1 && len(list) == 1 && list[0] == named[0] {
		return inferFile(ctx, u, models, model, named[0], how)
	}
	doc := render.FileAnswers{Files: []render.FileAnswer{}}
	for _, file := range list {
		text, err := readFile(u, file)
		if err == nil {
			err = takeAnswer(ctx, u, models, model, file, text, how, &doc)
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil || isBeyondFile(err) {
			return err
		}
		faults = append(faults, fileFault(file, err))
	}
	if len(doc.Files) > 0 {
		if err := u.Show(doc, func(w io.Writer) { render.PrintFileAnswers(w, doc) }); err != nil {
			return err
		}
	}
	if len(faults) > 0 {
		return &disdel.Faults{Faults: faults}
	}
	return nil
}

// takeAnswer asks a model about one file, and adds the answer.
func takeAnswer(ctx context.Context, u *ui, models client.Models, model, file string, text []byte,
	how disdel.Continuation, to *render.FileAnswers,
) error {
	answer, m, err := models.Answer(ctx, model, file, text, how)
	if err != nil {
		return err
	}
	if to.Model == "" {
		u.Say("model  %s", render.QualityText(&m))
	}
	for _, w := range answer.Warnings {
		u.Say("warning: %s: %s", file, w)
	}
	to.Model = answer.Model
	to.Files = append(to.Files, render.FileAnswer{File: file, Inference: answer})
	return nil
}

// inputFiles are the files that names stand for: themselves, or what a model can be asked about in a folder and below,
// in order of their names.
func inputFiles(names []string) (list []string, faults []disdel.Fault) {
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() {
			list = append(list, name) // reading a file says why it cannot be read
			continue
		}
		var inside []string
		err = filepath.WalkDir(name, func(path string, e fs.DirEntry, err error) error {
			ending := strings.ToLower(filepath.Ext(path))
			if err == nil && !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && slices.Contains(watchedEndings, ending) {
				inside = append(inside, path)
			}
			return err
		})
		if err != nil {
			faults = append(faults, fileFault(name, err))
		} else if len(inside) == 0 {
			faults = append(faults, disdel.Fault{
				Path: name, Msg: "the folder has no file that a model takes",
				Hint: "they end in " + strings.Join(watchedEndings, ", "),
			})
		}
		list = append(list, inside...)
	}
	return list, faults
}

// fileFault is an error of one file.
func fileFault(file string, err error) disdel.Fault {
	e := disdel.AsError(err)
	msg := e.Msg
	if e.Err != nil {
		msg = strings.TrimPrefix(fmt.Sprintf("%s: %v", msg, e.Err), ": ")
	}
	return disdel.Fault{Path: file, Msg: msg, Hint: e.Hint}
}
