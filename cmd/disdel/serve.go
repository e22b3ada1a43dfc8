package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/api"
)

var admissionFlag = &cli.StringFlag{
	Name: "admission", EnvVars: []string{"DISDEL_ADMISSION"}, Value: scheduler.AdmissionGang,
	Usage: "`HOW` jobs that wait for the pool come to run: gang, fifo or greedy (the platform makes them wait)",
}

// queueFlags say where a job stands in the queue.
var queueFlags = []cli.Flag{
	&cli.IntFlag{Name: "priority", Usage: "`NUMBER`: a job with a higher one goes first in the queue"},
	&cli.StringFlag{
		Name: "idempotency-key", Usage: "`KEY`: a repeated submit with the same one is the same job, whatever became of it",
	},
}

func serveCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "queue and run jobs for others, over HTTP", ArgsUsage: " ",
		Description: "Serves /api/v1 (described at /openapi.json) until Ctrl-C, and goes on with jobs of this home whose process is\n" +
			"no more. Jobs that run when it ends go back to the queue, and the next one goes on with them. The token of who\n" +
			"runs it is in server.token in the home folder; others have theirs from disdel tenant create.\n\n" +
			"   disdel serve\n   disdel serve --listen 0.0.0.0:7070 --tls-cert c.pem --tls-key k.pem --host-name train.example",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:7070", Usage: "`ADDRESS` to listen on"},
			&cli.StringSliceFlag{Name: "host-name", Usage: "`NAME` that clients may call the server by (repeatable)"},
			&cli.StringFlag{Name: "tls-cert", TakesFile: true, Usage: "`FILE` of the certificate, in PEM"},
			&cli.StringFlag{Name: "tls-key", TakesFile: true, Usage: "`FILE` of its key, in PEM"},
			&cli.BoolFlag{Name: "insecure", Usage: "listen for other machines without TLS"},
			&cli.DurationFlag{Name: "drain", Value: 10 * time.Second, Usage: "`TIME` that requests have to end in"},
			admissionFlag,
		},
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 0, 0); err != nil {
				return err
			}
			l, err := api.Listen(c.String("listen"), c.String("tls-cert"), c.String("tls-key"), c.Bool("insecure"))
			if err != nil {
				return err
			}
			defer l.Close()
			return withService(c, u, wholeJob|takingOver, func(ctx context.Context, s *service.Service) error {
				dir, err := home(c)
				if err != nil {
					return err
				}
				cfg := api.Config{Service: s, Hosts: c.StringSlice("host-name"), Log: newLog(c, u.Err)}
				if cfg.Operator, err = api.OperatorToken(dir); err != nil {
					return err
				}
				if err := s.Attend(ctx); err != nil {
					return err
				}
				u.Say("serves %s", l.URL())
				return api.Serve(ctx, l, cfg, c.Duration("drain"))
			})
		},
	}
}

// madeTenant is what tenant create says with -o json.
type madeTenant struct {
	Name  string       `json:"name"`
	Role  service.Role `json:"role"`
	Token string       `json:"token"`
}

func tenantCommand(u *ui) *cli.Command {
	create := &cli.Command{
		Name: "create", Usage: "make a token for a tenant, which is shown once", ArgsUsage: "NAME",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "role", Value: string(service.RoleSubmit), Usage: "`ROLE` of the token: read, submit or admin"},
			&cli.IntFlag{Name: "jobs", Usage: "`NUMBER` of jobs that the tenant may run at once"},
			&cli.StringFlag{Name: "memory", Usage: "`SIZE` that the tenant's jobs may hold at once"},
		},
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			var quota *scheduler.Quota
			if c.IsSet("jobs") || c.IsSet("memory") {
				quota = &scheduler.Quota{Jobs: c.Int("jobs")}
				if text := c.String("memory"); text != "" {
					size, err := disdel.ParseBytes(text)
					if err != nil {
						return err
					}
					quota.Memory = size
				}
			}
			return withService(c, u, records, func(ctx context.Context, s *service.Service) error {
				made := madeTenant{Name: c.Args().First(), Role: service.Role(c.String("role"))}
				var err error
				if made.Token, err = s.CreateTenant(ctx, made.Name, made.Role, quota); err != nil {
					return err
				}
				u.Say("the token is shown this once: keep it in a file that nobody else reads")
				return u.Show(made, func(w io.Writer) { fmt.Fprintln(w, made.Token) })
			})
		},
	}
	list := &cli.Command{
		Name: "list", Usage: "list tenants", ArgsUsage: " ",
		Action: func(c *cli.Context) error {
			return withService(c, u, records, func(ctx context.Context, s *service.Service) error {
				all, err := s.Tenants(ctx)
				if err != nil {
					return err
				}
				return u.Show(all, func(w io.Writer) {
					rows := [][]string{{"TENANT", "CREATED", "TOKENS", "JOBS", "MEMORY"}}
					for _, t := range all {
						rows = append(rows, []string{
							t.Name, t.Created.Local().Format("2006-01-02"), fmt.Sprint(len(t.Tokens)),
							fmt.Sprint(t.Quota.Jobs), t.Quota.Memory.String(),
						})
					}
					terminal.Table(w, rows...)
				})
			})
		},
	}
	remove := &cli.Command{
		Name: "delete", Usage: "take all tokens of a tenant away; its jobs, models and data sets stay", ArgsUsage: "NAME",
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			return withService(c, u, records, func(ctx context.Context, s *service.Service) error {
				return s.DeleteTenant(ctx, c.Args().First())
			})
		},
	}
	return &cli.Command{
		Name: "tenant", Usage: "say who may use a server", Subcommands: []*cli.Command{create, list, remove},
		Action: commandline.NeedSubcommand,
	}
}
