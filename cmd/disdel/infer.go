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
	return commandline.InferCommand(u, reading(u, storage|records|actions), actionFlag)
}

func evaluateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "evaluate", Usage: "measure a trained model's accuracy on a data set", ArgsUsage: "MODEL",
		Description: "MODEL is as for infer. " +
			"Prints accuracy, loss, precision and recall of every class, and the most frequent\n" +
			"confusions, on the held-out rows of the data set; on all rows if none are held out.\n\n" +
			"   disdel evaluate digits-cnn --dataset digits",
		Flags: []cli.Flag{&cli.StringFlag{Name: "dataset", Usage: "`NAME` of the data set"}, actionFlag},
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			if c.String("dataset") == "" {
				return commandline.NeedsFlag(c, "--dataset NAME")
			}
			return withClient(c, u, storage|records|actions, func(ctx context.Context, at client.Client) error {
				j, err := at.Models.Evaluate(ctx, c.Args().First(), c.String("dataset"))
				if err != nil {
					return err
				}
				for _, w := range j.Warnings {
					u.Say("warning: %s", w)
				}
				return u.Show(j, func(w io.Writer) { modeltext.PrintEvaluation(w, j) })
			})
		},
	}
}
