package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

func tenantCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "tenant", Usage: "manage the users of a server",
		Description: "   disdel tenant create ann --role submit --jobs 4 --memory 2GB\n   disdel tenant list",
		Subcommands: []*cli.Command{tenantCreate(u), tenantList(u), tenantDelete(u), tenantToken(u)},
		Action:      needSubcommand,
	}
}

// madeTenant is what tenant create and tenant delete print with -o json.
type madeTenant struct {
	Name  string      `json:"name"`
	Role  tenant.Role `json:"role,omitempty"`
	Token string      `json:"token,omitempty"`
	Label string      `json:"tokenName,omitempty"` // of one of several tokens
}

func tenantCreate(u *ui) *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "create a token for a tenant; it is shown only once", ArgsUsage: "NAME",
		Flags: append([]cli.Flag{
			roleFlag,
		}, quotaFlags...),
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			if _, err := readQuota(c, scheduler.Quota{}); err != nil {
				return err
			}
			return withOwnHome(c, u, records, func(ctx context.Context, s *service.Service) error {
				made := madeTenant{Name: c.Args().First(), Role: tenant.Role(c.String("role"))}
				was, err := s.Tenants().Quota(ctx, made.Name)
				if err != nil {
					return err
				}
				quota, err := readQuota(c, was)
				if err != nil {
					return err
				}
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
			if err := checkOperands(c, 0, 0); err != nil {
				return err
			}
			return withOwnHome(c, u, records, func(ctx context.Context, s *service.Service) error {
				all, err := s.Tenants().List(ctx)
				if err != nil {
					return err
				}
				return u.Show(all, func(w io.Writer) { render.PrintTenants(w, all) })
			})
		},
	}
}

func tenantDelete(u *ui) *cli.Command {
	return &cli.Command{
		Name: "delete", Usage: "revoke all tokens of a tenant; its jobs, models and data sets stay", ArgsUsage: "NAME",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			name := c.Args().First()
			return withOwnHome(c, u, records, func(ctx context.Context, s *service.Service) error {
				if err := s.Tenants().Delete(ctx, name); err != nil {
					return err
				}
				return u.Show(madeTenant{Name: name}, func(w io.Writer) {
					fmt.Fprintf(w, "no token of %s opens anything any more; its open streams end within two seconds\n"+
						"jobs of %s that are queued or running go on: stop one with disdel jobs cancel JOB\n", name, name)
				})
			})
		},
	}
}

var roleFlag = &cli.StringFlag{
	Name: "role", Value: string(tenant.RoleSubmit), Usage: "`ROLE` of the token: read, submit or admin",
}

// quotaFlags limit what the jobs of a tenant use together.
var quotaFlags = []cli.Flag{
	&cli.IntFlag{Name: "jobs", Usage: "`NUMBER` of jobs that the tenant may run at once"},
	&cli.StringFlag{Name: "memory", Usage: "memory `SIZE` of all running jobs of the tenant"},
	&cli.StringFlag{Name: "disk", Usage: "disk `SIZE` of the tenant's data sets, models, weights and checkpoints"},
	&cli.StringFlag{Name: "redis-memory", Usage: "memory `SIZE` that the tenant's unfinished jobs may keep in Redis"},
	&cli.StringFlag{Name: "cost", Usage: "total `COST` of the tenant's jobs: 500GB-s"},
}

// readQuota returns a quota with the changes of quotaFlags. It is nil if none is set.
func readQuota(c *cli.Context, was scheduler.Quota) (*scheduler.Quota, error) {
	if !slices.ContainsFunc(quotaFlags, func(f cli.Flag) bool { return c.IsSet(f.Names()[0]) }) {
		return nil, nil
	}
	q := &was
	if c.IsSet("jobs") {
		q.Jobs = c.Int("jobs")
	}
	if q.Jobs < 0 {
		return nil, &disdel.Error{Kind: disdel.Invalid, Msg: "--jobs must be at least 0"}
	}
	for name, into := range map[string]*disdel.Bytes{"memory": &q.Memory, "disk": &q.Disk, "redis-memory": &q.Redis} {
		if text := c.String(name); text != "" {
			size, err := disdel.ParseBytes(text)
			if err != nil {
				return nil, err
			}
			*into = size
		}
	}
	if text := c.String("cost"); text != "" {
		cost, err := disdel.ParseCost(text)
		if err != nil {
			return nil, err
		}
		q.Cost = cost
	}
	return q, scheduler.CheckQuota(*q, platform.DefaultConfig().Limits.Memory.Min)
}

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

// shareCommands are the commands share and unshare of items of a kind. noun is what people call an item.
func shareCommands(u *ui, kind tenant.ItemKind, noun string) []*cli.Command {
	operand, command := "NAME", "disdel "+string(kind)
	if kind == tenant.ItemJob {
		operand, command = "JOB", "disdel jobs"
	}
	return []*cli.Command{
		{
			Name: "share", Usage: "let other tenants read a " + noun, ArgsUsage: operand,
			Description: "Other tenants see it as OWNER/NAME. They cannot change or delete it. Without flags the command\n" +
				"shows who can read it.\n\n" +
				"   " + command + " share small --with ann,bob\n   " + command + " share small --all",
			Flags: []cli.Flag{
				&cli.StringSliceFlag{Name: "with", Usage: "`TENANT` that may read it (repeatable)"},
				&cli.BoolFlag{Name: "all", Usage: "every tenant may read it"},
			},
			Action: shareAction(u, kind, func(ctx context.Context, c *cli.Context, at client.Shares, name string) (
				tenant.Share, error,
			) {
				if len(c.StringSlice("with")) == 0 && !c.Bool("all") {
					return at.ShareOf(ctx, kind, name)
				}
				return at.Share(ctx, kind, name, c.StringSlice("with"), c.Bool("all"))
			}),
		},
		{
			Name: "unshare", Usage: "stop sharing a " + noun, ArgsUsage: operand,
			Description: "Without flags nobody but the owner can read it any more. Jobs that already read it go on.\n\n" +
				"   " + command + " unshare small --with bob",
			Flags: []cli.Flag{
				&cli.StringSliceFlag{Name: "with", Usage: "`TENANT` that may no longer read it (repeatable)"},
				&cli.BoolFlag{Name: "all", Usage: "only the tenants that were named may still read it"},
			},
			Action: shareAction(u, kind, func(ctx context.Context, c *cli.Context, at client.Shares, name string) (
				tenant.Share, error,
			) {
				return at.Unshare(ctx, kind, name, c.StringSlice("with"), c.Bool("all"))
			}),
		},
	}
}

// shareAction runs a command about the sharing of one item, and shows who can read the item then.
func shareAction(u *ui, kind tenant.ItemKind,
	act func(ctx context.Context, c *cli.Context, at client.Shares, name string) (tenant.Share, error),
) cli.ActionFunc {
	need := storage
	if kind == tenant.ItemJob {
		need = records
	}
	return func(c *cli.Context) error {
		if err := checkOperands(c, 1, 1); err != nil {
			return err
		}
		return withClient(c, u, need|records, func(ctx context.Context, at client.Client) error {
			share, err := act(ctx, c, at.Shares, c.Args().First())
			if err != nil {
				return err
			}
			return u.Show(share, func(w io.Writer) { fmt.Fprintf(w, "%s\n", shareText(&share)) })
		})
	}
}

// shareText says who can read an item besides its owner.
func shareText(s *tenant.Share) string {
	what := fmt.Sprintf("%s %s", s.Kind, s.Name)
	if s.Kind == tenant.ItemDataset {
		what = "data set " + s.Name
	}
	named := disdel.Counted(len(s.With), "named tenant") + ": " + strings.Join(s.With, ", ")
	switch {
	case s.All && len(s.With) > 0:
		return what + " is shared with all tenants, and with " + named
	case s.All:
		return what + " is shared with all tenants"
	case len(s.With) > 0:
		return what + " is shared with " + named
	default:
		return what + " is not shared"
	}
}
