package commandline

import (
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/gpus"
	"github.com/disdel/disdel/internal/terminal"
)

// DoctorGPU is `disdel doctor gpu`.
func DoctorGPU(u *terminal.UI) *cli.Command {
	return &cli.Command{
		Name: "gpu", ArgsUsage: " ", Usage: "say what of GPUs this machine and this program have, and what is missing",
		Description: "Looks at this machine alone: driver, devices, and the engine for GPUs, which programs have that\n" +
			"`make cuda` has built.\n\n   disdel doctor gpu\n   disdel doctor gpu -o json",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 0, 0); err != nil {
				return err
			}
			report := gpus.Look(gpus.Here())
			return u.Show(report, report.Print)
		},
	}
}
