package cli

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/scheduler/sim"
	"github.com/disdel/disdel/service"
)

func simulateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "simulate", Usage: "simulate many jobs on a cluster, in virtual time", ArgsUsage: "[TRACE]",
		Description: "TRACE is a file of JSON lines, one job each; - is standard input. " +
			"Planner, manager and admission are\n" +
			"those of real jobs. --pool-memory is the memory of all hosts together (default: 2 GB each).\n\n" +
			"   disdel simulate --generate 100 --seed 7 --admission greedy\n" +
			"   disdel simulate --generate 100 --seed 7 --print > trace.jsonl\n" +
			"   disdel simulate trace.jsonl --hosts 4 --pool-memory 8GB -o json",
		Flags: SimulationFlags,
		Action: func(c *cli.Context) error {
			jobs, err := Trace(c, u.In, 0)
			if err != nil {
				return err
			}
			if c.Bool("print") {
				return sim.Write(u.Out, jobs)
			}
			cloud, err := Cloud(c)
			if err != nil {
				return err
			}
			r, err := service.Simulate(service.Simulation{Cloud: cloud, Admission: c.String("admission")}, jobs)
			if err != nil {
				return err
			}
			return u.Show(r, func(w io.Writer) { render.PrintSimulation(w, r) })
		},
	}
}
