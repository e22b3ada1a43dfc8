package cli

import (
	"context"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

func estimateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "estimate", Usage: "show memory, plan and limits of a job without running it", ArgsUsage: "FILE",
		Description: "   disdel estimate examples/lenet-fashion.yaml\n" +
			"   disdel estimate job.yaml --explain --set training.batchSize=256\n" +
			"   disdel estimate job.yaml --max-memory 256MB\n" +
			"   disdel estimate job.yaml --what-if workers=1..8,batch=32,64,128 --plot job.svg",
		Flags: slices.Concat([]cli.Flag{setFlag, actionFlag, backendFlag, probeFlag}, estimatorFlags,
			QuestionFlags),
		Action: func(c *cli.Context) error {
			q, err := ReadQuestions(c)
			if err != nil {
				return err
			}
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			src, err := readJob(c, u, c.Args().First())
			if err != nil {
				return err
			}
			return withClient(c, u, wholeJob, func(ctx context.Context, at client.Client) error {
				req := src.request(c)
				req.Preparing = render.NewFollower(u).Follow
				found, err := at.Jobs.Estimate(ctx, req, q.Questions)
				if err != nil {
					return src.told(u, err)
				}
				return answer(u, found, q, src.file.Name)
			})
		},
	}
}

// answer shows an estimation. That nothing of a job fits is the error then.
func answer(u *ui, found *service.Estimation, q Questions, file string) error {
	how := render.Show{Plan: q.Plain(), Layers: q.Layers, File: file}
	if err := u.Show(found, func(w io.Writer) { render.PrintEstimate(w, found, how) }); err != nil {
		return err
	}
	if q.Plot != "" {
		if err := render.WriteEstimatePlot(found, q.Plot, q.Format); err != nil {
			return err
		}
		u.Say("wrote %s", terminal.Clean(q.Plot))
	}
	return found.Err()
}
