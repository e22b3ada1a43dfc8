package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

func tenantToken(u *ui) *cli.Command {
	return &cli.Command{
		Name: "token", Usage: "list, create and revoke the tokens of a tenant",
		Description: "   disdel tenant token create ann --name laptop --role submit\n   disdel tenant token list ann\n" +
			"   disdel tenant token revoke ann laptop",
		Subcommands: []*cli.Command{tokenList(u), tokenCreate(u), tokenRevoke(u)},
		Action:      needSubcommand,
	}
}

func tokenList(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the tokens of a tenant, with the time of their last sign-in", ArgsUsage: "TENANT",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			return withOwnHome(c, u, records, func(ctx context.Context, s *service.Service) error {
				all, err := s.Tenants().Tokens(ctx, c.Args().First())
				if err != nil {
					return err
				}
				return u.Show(append([]tenant.TokenInfo{}, all...), func(w io.Writer) { render.PrintTokens(w, all) })
			})
		},
	}
}

func tokenCreate(u *ui) *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "create one more token for a tenant; it is shown only once", ArgsUsage: "TENANT",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "`NAME` of the token, such as laptop or ci"},
			roleFlag,
		},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			return withOwnHome(c, u, records, func(ctx context.Context, s *service.Service) error {
				made := madeTenant{Name: c.Args().First(), Role: tenant.Role(c.String("role"))}
				token, info, err := s.Tenants().CreateToken(ctx, made.Name, c.String("name"), made.Role)
				if err != nil {
					return err
				}
				made.Token, made.Label = token, info.Label()
				u.Say("the token is shown this once: keep it in a file that nobody else reads")
				return u.Show(made, func(w io.Writer) { fmt.Fprintln(w, made.Token) })
			})
		},
	}
}

func tokenRevoke(u *ui) *cli.Command {
	return &cli.Command{
		Name: "revoke", Usage: "revoke one token of a tenant", ArgsUsage: "TENANT TOKEN",
		Description: "TOKEN is the token's name, or the start of its hash, as `disdel tenant token list` shows it.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Aliases: []string{"yes"}, Hidden: true, Usage: "does nothing by now"},
		},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 2, 2); err != nil {
				return err
			}
			name := c.Args().First()
			return withOwnHome(c, u, records, func(ctx context.Context, s *service.Service) error {
				gone, err := s.Tenants().RevokeToken(ctx, name, c.Args().Get(1))
				if err != nil {
					return err
				}
				return u.Show(madeTenant{Name: name, Role: gone.Role, Label: gone.Label()}, func(w io.Writer) {
					fmt.Fprintf(w, "%s of %s is revoked; its open streams and uploads end within two seconds\n", gone.Label(), name)
				})
			})
		},
	}
}
