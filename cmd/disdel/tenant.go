package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/jobtext"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

func tenantCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "tenant", Usage: "manage the users of a server",
		Description: "   disdel tenant create ann --role submit --jobs 4 --memory 2GB\n   disdel tenant list",
		Subcommands: []*cli.Command{tenantCreate(u), tenantList(u), tenantDelete(u)},
		Action:      commandline.NeedSubcommand,
	}
}

// madeTenant is what tenant create and tenant delete say with -o json.
type madeTenant struct {
	Name  string      `json:"name"`
	Role  tenant.Role `json:"role,omitempty"`
	Token string      `json:"token,omitempty"`
}

func tenantCreate(u *ui) *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "create a token for a tenant; it is shown only once", ArgsUsage: "NAME",
		Flags: append([]cli.Flag{
			&cli.StringFlag{
				Name: "role", Value: string(tenant.RoleSubmit), Usage: "`ROLE` of the token: read, submit or admin",
			},
		}, commandline.QuotaFlags...),
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			quota, err := commandline.Quota(c)
			if err != nil {
				return err
			}
			return withService(c, u, records, func(ctx context.Context, s *service.Service) error {
				made := madeTenant{Name: c.Args().First(), Role: tenant.Role(c.String("role"))}
				if made.Token, err = s.Tenants().Create(ctx, made.Name, made.Role, quota); err != nil {
					return err
				}
				u.Say("the token is shown this once: keep it in a file that nobody else reads")
				return u.Show(made, func(w io.Writer) { fmt.Fprintln(w, made.Token) })
			})
		},
	}
}

func tenantList(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list tenants and their quotas",
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 0, 0); err != nil {
				return err
			}
			return withService(c, u, records, func(ctx context.Context, s *service.Service) error {
				all, err := s.Tenants().List(ctx)
				if err != nil {
					return err
				}
				return u.Show(all, func(w io.Writer) { jobtext.PrintTenants(w, all) })
			})
		},
	}
}

func tenantDelete(u *ui) *cli.Command {
	return &cli.Command{
		Name: "delete", Usage: "revoke all tokens of a tenant; its jobs, models and data sets stay", ArgsUsage: "NAME",
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			name := c.Args().First()
			return withService(c, u, records, func(ctx context.Context, s *service.Service) error {
				if err := s.Tenants().Delete(ctx, name); err != nil {
					return err
				}
				return u.Show(madeTenant{Name: name}, func(w io.Writer) {
					fmt.Fprintf(w, "no token of %s opens anything any more; its open streams end within two seconds\n"+
						"jobs of %s that are queued or running go on: stop one with disdel job cancel JOB\n", name, name)
				})
			})
		},
	}
}
