package main

import (
	"context"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/estimatetext"
	"github.com/disdel/disdel/internal/jobtext"
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
		Flags: slices.Concat([]cli.Flag{setFlag, actionFlag, backendFlag, probeFlag}, estimatorFlags, questionFlags),
		Action: func(c *cli.Context) error {
			q, err := readQuestions(c)
			if err != nil {
				return err
			}
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			src, err := readJob(c, u, c.Args().First())
			if err != nil {
				return err
			}
			return withService(c, u, wholeJob, func(ctx context.Context, s *service.Service) error {
				req := src.request(c)
				req.Preparing = jobtext.NewFollower(u).Follow
				found, err := s.Estimate(ctx, req, q.Questions)
				if err != nil {
					return src.told(u, err)
				}
				return answer(u, found, q, src.file.Name)
			})
		},
	}
}

// answer shows an estimation. That nothing of a job fits is the error then.
func answer(u *ui, found *service.Estimation, q questions, file string) error {
	how := estimatetext.Show{Plan: q.plain(), Layers: q.layers, File: file}
	if err := u.Show(found, func(w io.Writer) { estimatetext.Print(w, found, how) }); err != nil {
		return err
	}
	if q.plot != "" {
		if err := estimatetext.WritePlot(found, q.plot, q.format); err != nil {
			return err
		}
		u.Say("wrote %s", terminal.Clean(q.plot))
	}
	return found.Err()
}
