package main

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/jobtext"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/batch"
)

func batchCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "batch", Usage: "run many jobs as one experiment, and compare them", ArgsUsage: "FILE...",
		Description: "A FILE is a job file, several in one (YAML documents), or one with a matrix over its fields:\n\n" +
			"   matrix: {training.batchSize: [32, 64], training.optimizer.adam.learningRate: [0.001, 0.003]}\n\n" +
			"Nothing runs unless all of them are valid. Ctrl-C cancels all jobs cleanly.\n\n" +
			"   disdel batch jobs/*.yaml\n   disdel batch examples/batch.yaml --halving 3 --html batch.html\n" +
			"   disdel batch job.yaml --set 'matrix={training.batchSize: [16, 32, 64]}' -o json",
		Flags: slices.Concat([]cli.Flag{
			setFlag, actionFlag, backendFlag, admissionFlag, queueFlags[0],
			&cli.StringFlag{Name: "by", Value: string(batch.ByAccuracy), Usage: "`WHAT` jobs are compared by: accuracy or loss"},
			&cli.IntFlag{Name: "halving", Usage: "stop early what falls behind: one job in this `NUMBER` goes on"},
			&cli.IntFlag{Name: "halving-from", Usage: "`EPOCHS` after which --halving first compares (default: 1)"},
			&cli.StringFlag{Name: "html", Usage: "write a page with plots to `FILE`"},
		}, estimatorFlags),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return commandline.Operands(c, 1, 1)
			}
			by, err := batch.ParseMeasure(c.String("by"))
			halving, wrong := batch.ParseHalving(c.Int("halving"), c.Int("halving-from"))
			network, bad := describe(c)
			if err := cmp.Or(err, wrong, bad); err != nil {
				return err
			}
			like := source{}.request(c)
			like.Job.Model.Description = network
			jobs, texts, faults := readBatch(c, u, like)
			return withClient(c, u, wholeJob, func(ctx context.Context, at client.Client) error {
				place := batch.Place{Check: at.Jobs.Check, Estimate: at.Jobs.Estimate}
				place.Submit = func(ctx context.Context, req service.Request) (batch.Run, error) { return at.Jobs.Submit(ctx, req) }
				if err := jobtext.FailAll(u, "run batch", batch.Check(ctx, place, jobs, faults...), texts); err != nil {
					return err
				}
				table := jobtext.NewBatchTable(u)
				sum, err := batch.Start(ctx, place, batch.Config{Jobs: jobs, By: by, Halving: halving, Observe: table.Follow})
				table.Done()
				if name := c.String("html"); name != "" {
					if bad := createPage(name, jobtext.BatchPage(sum).HTML); bad == nil {
						u.Say("page of the batch in %s", terminal.Clean(name))
					} else {
						err = cmp.Or(err, bad)
					}
				}
				return cmp.Or(u.Show(sum, func(w io.Writer) { jobtext.PrintBatch(w, sum) }), err, sum.Err())
			})
		},
	}
}

// readBatch reads the jobs of all files, and what is wrong with any.
func readBatch(c *cli.Context, u *ui, like service.Request) ([]batch.Job, map[string][]byte, []error) {
	var files []batch.File
	var wrong []error
	texts := map[string][]byte{}
	for _, name := range c.Args().Slice() {
		text, err := readInput(u, name)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		texts[name] = text
		files = append(files, batch.File{Name: name, Text: text, Open: filesBeside(name)})
	}
	jobs, faults := batch.Read(files, overrides(c), like)
	return jobs, texts, append(wrong, faults...)
}
