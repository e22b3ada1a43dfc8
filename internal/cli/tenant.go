package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
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
