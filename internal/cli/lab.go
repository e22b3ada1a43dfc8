package cli

import (
	"context"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service"
)

func labCommand(u *ui) *cli.Command {
	where := slices.DeleteFunc(slices.Clone(SimulationFlags), func(f cli.Flag) bool {
		return slices.Contains([]string{"admission", "print"}, f.Names()[0])
	})
	return &cli.Command{
		Name: "lab", Usage: "compare scaling policies with the best fixed number of workers, in virtual time",
		ArgsUsage: "[TRACE | FILE...]", Flags: slices.Concat(LabFlags(), where, []cli.Flag{setFlag, probeFlag}),
		Description: render.LabDescription,
		Action: func(c *cli.Context) error {
			q, err := ReadLabQuestions(c)
			if err != nil {
				return err
			}
			found, err := labOf(c, u, q)
			if err == nil && q.Plot != "" {
				err = render.WriteLabPlot(found, q.Plot, q.Format)
			}
			if err != nil {
				return err
			}
			return u.Show(found, func(w io.Writer) { render.PrintLab(w, found) })
		},
	}
}

// labOf runs the jobs of a trace, or those of job files.
func labOf(c *cli.Context, u *ui, q LabQuestions) (found simulate.Lab, err error) {
	if len(q.Files) == 0 {
		jobs, err := Trace(c, u.In, LabEpochs)
		if err != nil {
			return found, err
		}
		cloud, err := Cloud(c)
		if err != nil {
			return found, err
		}
		return service.Compare(service.Simulation{Cloud: cloud, Told: q.Told, Errors: q.Errors}, q.Bounded(jobs), q.Policies)
	}
	var jobs []service.Request
	for _, name := range q.Files {
		src, err := readJob(c, u, name)
		if err != nil {
			return found, err
		}
		jobs = append(jobs, src.request(c))
	}
	err = withClient(c, u, wholeJob, func(ctx context.Context, at client.Client) error {
		if found, err = simulatePolicies(ctx, at.Jobs, jobs, q.Policies); err != nil || !q.Run {
			return err
		}
		trials, err := runUnderPolicies(ctx, at.Jobs, jobs, q.Policies, func(t simulate.Trial) { u.Say("%s", render.TrialLine(t)) })
		found.Ran(trials)
		return err
	})
	return found, err
}
