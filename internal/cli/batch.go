package cli

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/batch"
)

func batchCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "batch", Usage: "run many jobs as one experiment, and compare them", ArgsUsage: "FILE...",
		Description: "A FILE is a job file, several in one (YAML documents), or one with a matrix over its fields:\n\n" +
			"   matrix: {training.batchSize: [32, 64], training.optimizer.adam.learningRate: [0.001, 0.003]}\n\n" +
			"Nothing runs unless all of them are valid. Ctrl-C cancels all jobs cleanly.\n\n" +
			"   disdel batch jobs/*.yaml\n   disdel batch batch.yaml --halving 3 --html batch.html\n" +
			"   disdel batch job.yaml --set 'matrix={training.batchSize: [16, 32, 64]}' -o json",
		Flags: slices.Concat([]cli.Flag{
			setFlag, actionFlag, pythonFlag, backendFlag, admissionFlag, queueFlags[0],
			&cli.StringFlag{
				Name: "by", Value: string(batch.ByAccuracy),
				Usage: "`METRIC` to compare jobs by: accuracy, top5, loss, rmse, mae, r2, perplexity, f1 or microF1",
			},
			&cli.IntFlag{
				Name: "halving", Usage: "stop jobs that are not among the best 1 in `NUMBER` after the same training",
			},
			&cli.IntFlag{
				Name: "halving-from", Usage: "`EPOCHS` before --halving compares for the first time", DefaultText: "1",
			},
			&cli.StringFlag{Name: "html", Usage: "write an HTML page with plots to `FILE`"},
		}, estimatorFlags),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return checkOperands(c, 1, 1)
			}
			cfg, err := batch.ParseConfig(c.String("by"), c.Int("halving"), c.Int("halving-from"))
			network, bad := describeAction(c)
			if err := cmp.Or(err, bad); err != nil {
				return err
			}
			like, files := source{}.request(c), []batch.File{}
			like.Job.Model.Description = network
			for _, name := range c.Args().Slice() {
				text, err := readInput(u, name)
				files = append(files, batch.File{Name: name, Text: text, Open: filesBeside(name), Err: err})
			}
			jobs, faults := batch.Read(files, overrides(c), like)
			return withClient(c, u, allParts, func(ctx context.Context, at client.Client) error {
				if err := render.FailAll(u, "run batch", batch.Check(ctx, at.Place(), jobs, faults...), files); err != nil {
					return err
				}
				id := batch.Group(jobs)
				table := render.NewBatchTable(u)
				cfg.Jobs, cfg.Observe = jobs, table.Follow
				sum, err := batch.Start(ctx, at.Place(), cfg)
				table.Done()
				if name := c.String("html"); name != "" {
					if bad := replaceFile(name, render.BatchPage(sum).HTML); bad == nil {
						u.Say("page of the batch in %s", terminal.Clean(name))
					} else {
						err = cmp.Or(err, bad)
					}
				}
				shown := u.Show(sum, func(w io.Writer) { render.PrintBatch(w, sum) })
				u.Say("next:  %s", u.Command("jobs", "--batch", id))
				return cmp.Or(shown, err, sum.Err())
			})
		},
	}
}
