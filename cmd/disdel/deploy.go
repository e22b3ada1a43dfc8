package main

import (
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/deploy/image"
	"github.com/disdel/disdel/internal/commandline"
)

func deployCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "deploy", Usage: "bring the action runtime to a cluster",
		Subcommands: []*cli.Command{deployImage(u)},
		Action:      commandline.NeedSubcommand,
	}
}

func deployImage(u *ui) *cli.Command {
	return &cli.Command{
		Name: "image", Usage: "make the container image of the action runtime, without a container engine",
		ArgsUsage: "[REGISTRY/NAME:TAG]",
		Description: "   disdel deploy image registry.example/team/disdel:1.0     push it\n" +
			"   disdel deploy image team/disdel:1.0 --tar image.tar      for docker load\n" +
			"   disdel deploy image --layout folder                      as an OCI layout",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "program", Usage: "`FILE` of the runtime (default: disdel-runtime beside this program)",
			},
			&cli.StringFlag{
				Name: "certificates", Usage: "`FILE` of authorities in PEM that go into the image",
				Value: image.SystemCertificates,
			},
			&cli.StringFlag{Name: "layout", Usage: "write an OCI layout into `FOLDER`"},
			&cli.StringFlag{Name: "tar", Usage: "write `FILE` for docker load"},
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
