package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/deploy"
	"github.com/disdel/disdel/deploy/gpu"
	"github.com/disdel/disdel/deploy/image"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/platform/local"
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
			deployGPU(u),
		},
		Action: needSubcommand,
	}
}

// deployPackage builds one of the commands that compare a package with its manifest.
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
			if err := checkOperands(c, 0, 0); err != nil {
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

// onCluster is withService for commands that need a cluster.
func onCluster(c *cli.Context, u *ui, needs need, f func(ctx context.Context, s *service.Service) error) error {
	if c.String("apihost") == "" {
		missing := disdel.AsError(missingFlag(c, "--apihost URL or --context NAME"))
		if dir, err := home(c); err == nil {
			if _, running := local.Find(dir); running {
				missing.Hint = "for the platform of this home: eval \"$(" + terminal.Program() + " platform up --detach)\" && " +
					c.Command.HelpName
			}
		}
		return missing
	}
	return withService(c, u, needs, f)
}

func deployImage(u *ui) *cli.Command {
	return &cli.Command{
		Name: "image", Usage: "build the container image of the action runtime; no container engine is needed",
		ArgsUsage: "[REGISTRY/NAME:TAG]",
		Description: "   disdel deploy image registry.example/team/disdel:1.0     push it\n" +
			"   disdel deploy image team/disdel:1.0 --tar image.tar      for docker load\n" +
			"   disdel deploy image --layout folder                      as an OCI layout\n" +
			"   disdel deploy image team/disdel:1.0 --python requirements.txt      with Python and packages",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "program", Usage: "`FILE` of the runtime program (default: disdel-runtime beside this program)",
			},
			&cli.StringFlag{
				Name: "certificates", Usage: "PEM `FILE` of certificate authorities to put into the image",
				Value: image.SystemCertificates,
			},
			&cli.StringFlag{
				Name: "python", TakesFile: true, Usage: "add Python and the packages of this requirements `FILE`",
			},
			&cli.StringFlag{
				Name: "base", TakesFile: true,
				Usage: "`IMAGE` of Python, or a tar file of docker save (default: python:X.Y-slim-bookworm)",
			},
			&cli.StringFlag{
				Name: "interpreter", TakesFile: true, EnvVars: []string{pythonVariable},
				Usage: "`PATH` of the Python whose pip installs the packages (default: python3)",
			},
			&cli.StringFlag{Name: "layout", Usage: "write an OCI layout into `FOLDER`"},
			&cli.StringFlag{Name: "tar", Usage: "write a `FILE` that docker load reads"},
		},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 1); err != nil {
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
			if requirements := c.String("python"); requirements != "" {
				o.Python = &image.Python{
					Requirements: requirements, Interpreter: c.String("interpreter"), Base: c.String("base"),
				}
			} else if c.IsSet("base") {
				return missingFlag(c, "--python FILE")
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

// gpuFiles is what `deploy gpu` prints with -o json.
type gpuFiles struct {
	PerGPU     int        `json:"actionsPerGPU"`
	PerMachine int        `json:"actionsPerMachine"`
	Clients    string     `json:"clients"` // what they say of the cluster
	Files      []gpu.File `json:"files"`
}

// deployGPU is `disdel deploy gpu`.
func deployGPU(u *ui) *cli.Command {
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
			if err := checkOperands(c, 0, 0); err != nil {
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
	var config service.Config
	if err := readPool(c, &config); err != nil {
		return m, err
	}
	m = gpu.Machines{
		Count: c.Int("machines"), GPUs: config.GPUs.Count, Memory: config.GPUs.Memory, Route: gpu.Route(c.String("route")),
	}
	if m.Share, err = disdel.ParseBytes(c.String("share")); err != nil {
		return m, err
	}
	m.Action, err = disdel.ParseBytes(c.String("train-memory"))
	return m, err
}

// writeFiles writes files into a folder, which it creates if needed.
func writeFiles(u *ui, folder string, files []gpu.File) error {
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
