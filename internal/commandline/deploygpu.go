package commandline

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/deploy/gpu"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

// gpuFiles is what `disdel deploy gpu` says.
type gpuFiles struct {
	PerGPU     int        `json:"actionsPerGPU"`
	PerMachine int        `json:"actionsPerMachine"`
	Clients    string     `json:"clients"` // what they say of the cluster
	Files      []gpu.File `json:"files"`
}

// DeployGPU is `disdel deploy gpu`.
func DeployGPU(u *terminal.UI) *cli.Command {
	return &cli.Command{
		Name: "gpu", ArgsUsage: " ", Usage: "write the configuration of an OpenWhisk with GPUs",
		Description: "OpenWhisk does not know GPUs: " +
			"the pool gets the size at which as many train actions fit as share the GPUs.\n" +
			"--gpus and --gpu-memory describe each machine. The command asks no cluster. It is untested.\n\n" +
			"   disdel deploy gpu --gpus 1 --gpu-memory 16GB --share 4GB --train-memory 2GB --folder gpu",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "route", Value: string(gpu.RuntimeClass),
				Usage: "`METHOD` to give containers a GPU: runtime-class, limit-range or docker",
			},
			&cli.IntFlag{Name: "machines", Value: 1, Usage: "`NUMBER` of machines with GPUs"},
			&cli.StringFlag{
				Name: "share", Usage: "GPU memory `SIZE` of a train action; disdel estimate shows it",
			},
			&cli.StringFlag{Name: "train-memory", Usage: "memory `SIZE` of a train action"},
			&cli.StringFlag{Name: "folder", TakesFile: true, Usage: "write the files to `FOLDER` (default: print them)"},
		},
		Action: func(c *cli.Context) error {
			if err := Operands(c, 0, 0); err != nil {
				return err
			}
			m, err := machinesOf(c)
			if err != nil {
				return err
			}
			files, err := m.Files()
			if err != nil {
				return err
			}
			if folder := c.String("folder"); folder != "" {
				return writeFiles(u, folder, files)
			}
			return u.Show(gpuFiles{m.PerGPU(), m.PerMachine(), m.ClientFlags(), files}, func(w io.Writer) {
				for _, f := range files {
					fmt.Fprintf(w, "# --- %s\n%s", f.Name, f.Text)
				}
			})
		},
	}
}

func machinesOf(c *cli.Context) (m gpu.Machines, err error) {
	if c.String("share") == "" || c.String("train-memory") == "" {
		return m, &disdel.Error{
			Kind: disdel.Invalid, Msg: "--share and --train-memory say what a train action takes",
			Hint: "disdel deploy gpu --share 4GB --train-memory 2GB: disdel estimate JOB says both",
		}
	}
	var said service.Config
	if err := ReadPool(c, &said); err != nil {
		return m, err
	}
	m = gpu.Machines{
		Count: c.Int("machines"), GPUs: said.GPUs.Count, Memory: said.GPUs.Memory, Route: gpu.Route(c.String("route")),
	}
	if m.Share, err = disdel.ParseBytes(c.String("share")); err != nil {
		return m, err
	}
	m.Action, err = disdel.ParseBytes(c.String("train-memory"))
	return m, err
}

// writeFiles puts files into a folder, which is made if it is missing.
func writeFiles(u *terminal.UI, folder string, files []gpu.File) error {
	err := os.MkdirAll(folder, 0o755)
	for _, f := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, f.Name), []byte(f.Text), 0o600)
		}
	}
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "write GPU files", Err: err, Hint: "name a folder that can be written",
		}
	}
	u.Say("%d files in %s", len(files), folder)
	return nil
}
