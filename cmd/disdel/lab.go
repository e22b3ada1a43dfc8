package main

import (
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/labtext"
	"github.com/disdel/disdel/service"
)

func labCommand(u *ui) *cli.Command {
	where := slices.DeleteFunc(slices.Clone(commandline.SimulationFlags), func(f cli.Flag) bool {
		return slices.Contains([]string{"admission", "print"}, f.Names()[0])
	})
	return &cli.Command{
		Name: "lab", Usage: "run jobs under several policies in virtual time, beside the best fixed number of workers",
		ArgsUsage: "[TRACE]", Flags: append(commandline.LabFlags(), where...),
		Description: "TRACE is as disdel simulate has it; each job runs alone.\n\n" +
			"   disdel lab --generate 5 --policies elastic,coach,auto\n" +
			"   disdel lab trace.jsonl --hosts 2 --processors 16 --plot workers.svg",
		Action: func(c *cli.Context) error {
			q, err := commandline.ReadLabQuestions(c)
			if err != nil {
				return err
			}
			jobs, err := commandline.Trace(c, u.In)
			if err != nil {
				return err
			}
			cloud, err := commandline.Cloud(c)
			if err != nil {
				return err
			}
			for i := range jobs {
				if n := &jobs[i].MaxWorkers; *n == 0 || *n > q.Most {
					*n = q.Most
				}
			}
			lab, err := service.Compare(service.Simulation{Cloud: cloud, Told: q.Told}, jobs, q.Policies)
			if err == nil && q.Plot != "" {
				err = labtext.WritePlot(lab, q.Plot, q.Format)
			}
			if err != nil {
				return err
			}
			return u.Show(lab, func(w io.Writer) { labtext.Print(w, lab) })
		},
	}
}
