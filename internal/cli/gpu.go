package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/runtime/engine/gpu"
)

// DoctorGPU is `disdel doctor gpu`.
func DoctorGPU(u *terminal.UI) *cli.Command {
	return &cli.Command{
		Name: "gpu", ArgsUsage: " ", Usage: "check the GPU support of this machine and this program",
		Description: "Looks only at this machine: " +
			"the driver, the devices, and the GPU engine, which only programs built by\n" +
			"`make cuda` have.\n\n   disdel doctor gpu\n   disdel doctor gpu -o json",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 0, 0); err != nil {
				return err
			}
			report := gpu.Inspect(gpu.ThisMachine())
			return u.Show(report, report.Print)
		},
	}
}
