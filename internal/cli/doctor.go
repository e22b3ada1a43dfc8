package cli

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/deploy/clusterfacts"
	"github.com/disdel/disdel/deploy/doctor"
	"github.com/disdel/disdel/deploy/verify"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/runtime/engine/gpu"
	"github.com/disdel/disdel/runtime/engine/native/checkup"
	"github.com/disdel/disdel/service"
)

func doctorCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "doctor", ArgsUsage: " ",
		Usage: "check whether a cluster can run jobs, and list the settings to change",
		Description: "Invokes some dozens of small actions, which examine their containers, and deletes them afterwards.\n" +
			"The home folder keeps what they found about the pool, the processors and the quotas; plans use it.\n\n" +
			"   disdel doctor --apihost https://whisk.example --redis rediss://redis.example:6379/0\n" +
			"   disdel doctor --context prod -o json",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "need-memory", Value: "512MB", Usage: "`SIZE` of the largest action to test"},
			&cli.DurationFlag{Name: "need-timeout", Value: 5 * time.Minute, Usage: "`TIME` of the longest action to test"},
			&cli.IntFlag{Name: "containers", Value: 16, Usage: "largest `NUMBER` of containers to start at once"},
			&cli.DurationFlag{Name: "settle", Value: 5 * time.Second, Usage: "`TIME` to wait for one more container"},
		},
		Subcommands: []*cli.Command{doctorGPU(u), {
			Name: "engine", Usage: "measure the speed of the engine's kernels on this machine", ArgsUsage: " ",
			Description: "Takes about two seconds of one core. " +
				"Prints the block sizes chosen for this processor, whether other\n" +
				"sizes are faster, and how to set them. Actions of the embedded platform use the DISDEL_BLOCKS and\n" +
				"DISDEL_KERNELS of this environment; other actions use those of their image.\n\n" +
				"   disdel doctor engine\n   DISDEL_BLOCKS=weights=98304,rows=8,depth=256 disdel doctor engine",
			Action: withoutOperands(func(c *cli.Context) error {
				r, err := checkup.Examine()
				if err != nil {
					return err
				}
				return u.Show(r, r.Print)
			}),
		}},
		Action: withoutOperands(func(c *cli.Context) error {
			memory, err := disdel.ParseBytes(c.String("need-memory"))
			if err != nil {
				return err
			}
			return onCluster(c, u, allParts, func(ctx context.Context, s *service.Service) error {
				cfg, err := doctor.ForService(ctx, s, doctor.Config{
					Host: disdel.Redacted(c.String("apihost")), MaxContainers: c.Int("containers"), Settle: c.Duration("settle"),
					CouchDB:   addresses.WithoutPasswords(c.String("couchdb")),
					Need:      disdel.Limits{Memory: memory, Timeout: disdel.Millis(c.Duration("need-timeout"))},
					OnFinding: func(f doctor.Finding) { u.Say("%s: %s: %s", f.Check, f.State, f.Found) },
				})
				if err != nil {
					return err
				}
				report, err := doctor.Examine(ctx, cfg)
				if err != nil {
					return err
				}
				dir, err := home(c)
				if err == nil && report.Facts.Processors > 0 {
					err = keepFacts(u, dir, c.String("apihost"), report.Facts)
				}
				if err := cmp.Or(err, u.Show(report, report.Print)); err != nil || report.Err() == nil {
					return err
				}
				return terminal.Reported(report.Err())
			})
		}),
	}
}

// keepFacts saves the facts about a cluster. It keeps an earlier, more exact fact about the pool.
func keepFacts(u *ui, home, host string, found clusterfacts.Facts) error {
	old, _, _ := clusterfacts.Read(home, host) //nolint:errcheck // what cannot be read is found out again
	kept := clusterfacts.Renewed(old, found)
	if kept.Pool != found.Pool {
		u.Say("pool: %v, found on %s, is kept: nothing bounded the pool this time", kept.Pool,
			kept.PoolFoundAt().Local().Format(time.DateOnly))
	}
	return clusterfacts.Write(home, host, kept)
}

func verifyCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "verify", Usage: "test on a cluster what jobs rely on, and print the results", ArgsUsage: " ",
		Description: "Trains two small jobs, and kills the controller of one of them. Their records, the data set\n" +
			"digits and the model disdel-verify remain.\n\n" +
			"   disdel verify --context prod\n   disdel verify --context prod -o json > verify.json",
		Action: withoutOperands(func(c *cli.Context) error {
			dir, err := home(c)
			if err != nil {
				return err
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			return onCluster(c, u, allParts, func(ctx context.Context, s *service.Service) error {
				report, err := verify.Run(ctx, verify.Config{
					Service: s, Host: disdel.Redacted(c.String("apihost")), Version: self().Version, Image: c.String("image"),
					Program: program, Environment: environmentFor(c, dir),
					OnCase: func(name string) { u.Say("%s ...", name) },
				})
				if err != nil {
					return err
				}
				return cmp.Or(u.Show(report, report.Print), report.Err())
			})
		}),
	}
}

// doctorGPU is `disdel doctor gpu`.
func doctorGPU(u *ui) *cli.Command {
	return &cli.Command{
		Name: "gpu", ArgsUsage: " ", Usage: "check the GPU support of this machine and this program",
		Description: "Looks only at this machine: " +
			"the driver, the devices, and the GPU engine, which only programs built by\n" +
			"`make cuda` have.\n\n   disdel doctor gpu\n   disdel doctor gpu -o json",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
				return err
			}
			report := gpu.Inspect(gpu.ThisMachine())
			return u.Show(report, report.Print)
		},
	}
}
