package main

import (
	"cmp"
	"context"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/deploy"
	"github.com/disdel/disdel/deploy/image"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

func deployCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "deploy", Usage: "install disdel's actions on a cluster",
		Subcommands: []*cli.Command{
			deployImage(u),
			deployPackage(u, "up", "create the package and its actions, or change what differs", true, deploy.Cluster.Up),
			deployPackage(u, "preview", "say what up would change, change nothing; exits with 8 if something differs",
				false, deploy.Cluster.Preview),
			deployPackage(u, "status", "say how the package differs from the manifest; exits with 8 if it does",
				false, deploy.Cluster.Preview),
			deployPackage(u, "down", "remove the package's actions, and the package", true, deploy.Cluster.Down),
			commandline.DeployGPU(u),
		},
		Action: commandline.NeedSubcommand,
	}
}

// deployPackage is one of the commands about the package.
func deployPackage(u *ui, name, usage string, done bool,
	carryOut func(deploy.Cluster, context.Context, executor.Deployment) (deploy.Plan, error),
) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: " ",
		Description: "The package follows deploy/manifest.yaml, which wskdeploy also reads: the actions train, aggregate,\n" +
			"evaluate and infer. Anybody who has the key can invoke them. Jobs do not need the package.\n\n" +
			"   disdel deploy " + name + " --apihost https://whisk.example\n" +
			"   disdel deploy " + name + " --context prod --image registry.example/team/disdel:1.0",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "manifest", TakesFile: true, Usage: "use this manifest `FILE` instead of disdel's own"},
			&cli.StringFlag{Name: "package", Usage: "`NAME` of the package (default: the manifest's, disdel)"},
		},
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 0, 0); err != nil {
				return err
			}
			text, err := deploy.StandardManifest(), error(nil)
			if file := c.String("manifest"); file != "" {
				if text, err = files.Read(file); err != nil {
					return err
				}
			}
			wanted, err := deploy.Read(cmp.Or(c.String("manifest"), "manifest.yaml"), text,
				deploy.Options{Package: c.String("package"), Image: c.String("image")})
			if err != nil {
				return err
			}
			return onCluster(c, u, actions, func(ctx context.Context, s *service.Service) error {
				e, err := s.Executor(ctx)
				if err != nil {
					return err
				}
				plan, err := carryOut(deploy.Cluster{Executor: e, Host: disdel.Redacted(c.String("apihost"))}, ctx, wanted)
				if err == nil || plan.Changed() > 0 {
					u.Say("%s", plan.Summary(done))
					err = cmp.Or(err, u.Show(plan, plan.Print))
				}
				if err == nil && !done && plan.Changed() > 0 {
					err = terminal.Reported(terminal.ErrDiffers)
				}
				return err
			})
		},
	}
}

// onCluster is withService for what is about a cluster alone.
func onCluster(c *cli.Context, u *ui, needs need, f func(ctx context.Context, s *service.Service) error) error {
	if c.String("apihost") == "" {
		return commandline.NeedsFlag(c, "--apihost URL or --context NAME")
	}
	return withService(c, u, needs, f)
}

func deployImage(u *ui) *cli.Command {
	return &cli.Command{
		Name: "image", Usage: "build the container image of the action runtime; no container engine is needed",
		ArgsUsage: "[REGISTRY/NAME:TAG]",
		Description: "   disdel deploy image registry.example/team/disdel:1.0     push it\n" +
			"   disdel deploy image team/disdel:1.0 --tar image.tar      for docker load\n" +
			"   disdel deploy image --layout folder                      as an OCI layout",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "program", Usage: "`FILE` of the runtime program (default: disdel-runtime beside this program)",
			},
			&cli.StringFlag{
				Name: "certificates", Usage: "PEM `FILE` of certificate authorities to put into the image",
				Value: image.SystemCertificates,
			},
			&cli.StringFlag{Name: "layout", Usage: "write an OCI layout into `FOLDER`"},
			&cli.StringFlag{Name: "tar", Usage: "write a `FILE` that docker load reads"},
		},
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 0, 1); err != nil {
				return err
			}
			program, err := image.FindProgram(c.String("program"), os.Executable)
			if err != nil {
				return err
			}
			o := image.Options{
				Program: program, Certificates: c.String("certificates"),
				Version: self().Version, Revision: self().Revision,
			}
			to := image.Target{Reference: c.Args().First(), Layout: c.String("layout"), Tar: c.String("tar")}
			made, err := image.Make(c.Context, o, to)
			if err != nil {
				return err
			}
			return u.Show(made, func(w io.Writer) { made.Print(w) })
		},
	}
}
