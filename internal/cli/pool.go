package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service"
)

// PoolFlags say what the containers of a platform have together.
func PoolFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "pool-memory", EnvVars: []string{"DISDEL_POOL_MEMORY"},
			Usage: "memory `SIZE` of the container pool (default on the embedded platform: 3/4 of the free memory)",
		},
		&cli.IntFlag{
			Name: "gpus", EnvVars: []string{"DISDEL_GPUS"},
			Usage: "`NUMBER` of GPUs for train actions", DefaultText: "on the embedded platform, all of this machine",
		},
		&cli.StringFlag{
			Name: "gpu-memory", EnvVars: []string{"DISDEL_GPU_MEMORY"},
			Usage: "memory `SIZE` of each GPU for actions",
		},
	}
}

// ReadPool takes what PoolFlags say. It returns Invalid for GPUs without memory, and the other way round.
func ReadPool(c *cli.Context, cfg *service.Config) (err error) {
	if text := c.String("pool-memory"); text != "" {
		if cfg.Pool, err = disdel.ParseBytes(text); err != nil {
			return err
		}
	}
	cfg.GPUs.Count = c.Int("gpus")
	text := c.String("gpu-memory")
	if cfg.GPUs.Count < 0 || (cfg.GPUs.Count == 0) != (text == "") {
		return &disdel.Error{
			Kind: disdel.Invalid, Msg: "--gpus and --gpu-memory go together, and at least one GPU is one",
			Hint: "--gpus 2 --gpu-memory 16GB",
		}
	}
	if text != "" {
		cfg.GPUs.Memory, err = disdel.ParseBytes(text)
	}
	return err
}
