package main

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/modeltext"
)

func inferCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "infer", Usage: "classify inputs with a trained model, as an action", ArgsUsage: "MODEL",
		Description: "MODEL is NAME, for its newest version that learned, NAME:vN or NAME:TAG. FILE is JSON\n" +
			"({\"inputs\": [[...], ...]}, a list of rows, or one row, each a list or nested as the image) " +
			"or a NumPy .npy array,\n" +
			"with values scaled as in training; - is JSON on standard input.\n" +
			"Labels beside the inputs are compared with the answers.\n\n" +
			"   disdel dataset sample digits --row 7 > digit.json\n   disdel infer digits-cnn --input digit.json -o json",
		Flags: []cli.Flag{&cli.StringFlag{Name: "input", Aliases: []string{"i"}, Usage: "`FILE` of inputs"}, actionFlag},
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			if c.String("input") == "" {
				return commandline.NeedsFlag(c, "--input FILE")
			}
			return withClient(c, u, storage|actions,
				func(ctx context.Context, at client.Client) error { return infer(ctx, c, u, at.Models) })
		},
	}
}

func infer(ctx context.Context, c *cli.Context, u *ui, models client.Models) error {
	file := c.String("input")
	text, err := readInput(u, file)
	if err != nil {
		return err
	}
	doc, m, err := models.Answer(ctx, c.Args().First(), file, text)
	if doc.Model != "" {
		u.Say("model  %s", modeltext.Measured(&m))
	}
	for _, w := range doc.Warnings {
		u.Say("warning: %s", w)
	}
	if err != nil {
		return err
	}
	return u.Show(doc, func(w io.Writer) { modeltext.PrintInference(w, doc) })
}

func evaluateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "evaluate", Usage: "hold what a trained model says of a data set against its labels", ArgsUsage: "MODEL",
		Description: "MODEL is as for infer. Judged is what is held out of the data set, or all of it where nothing is: " +
			"accuracy, loss,\nprecision and recall of every class, and which class is taken for which.\n\n" +
			"   disdel evaluate digits-cnn --dataset digits",
		Flags: []cli.Flag{&cli.StringFlag{Name: "dataset", Usage: "`NAME` of the data set"}, actionFlag},
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			if c.String("dataset") == "" {
				return commandline.NeedsFlag(c, "--dataset NAME")
			}
			return withClient(c, u, storage|actions, func(ctx context.Context, at client.Client) error {
				j, err := at.Models.Judge(ctx, c.Args().First(), c.String("dataset"))
				if err != nil {
					return err
				}
				for _, w := range j.Warnings {
					u.Say("warning: %s", w)
				}
				return u.Show(j, func(w io.Writer) { modeltext.PrintJudgement(w, j) })
			})
		},
	}
}
