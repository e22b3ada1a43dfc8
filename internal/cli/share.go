package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/service/tenant"
)

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
				"   " + command + " unshare small --with bob\n   " + command + " unshare small",
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
