package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/platform/local"
)

// platformUser is `disdel platform user`, for the namespaces of a running platform.
func platformUser(u *ui) *cli.Command {
	return &cli.Command{
		Name: "user", Usage: "add, list and remove namespaces of the running platform",
		Description: "   disdel platform user create alice\n   disdel platform user list --keys\n   disdel platform user " +
			"delete alice",
		Action: needSubcommand,
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "add a namespace, and print its key", ArgsUsage: "NAME",
				Flags: []cli.Flag{
					&cli.IntFlag{Name: "per-minute", Usage: "`NUMBER` of invocations per minute (default: the platform's)"},
					&cli.IntFlag{Name: "concurrent", Usage: "`NUMBER` of concurrent invocations (default: the platform's)"},
					&cli.IntFlag{Name: "fires", Usage: "`NUMBER` of fired triggers per minute (default: the platform's)"},
				},
				Action: func(c *cli.Context) error { return createTenant(c, u) },
			},
			{
				Name: "list", Usage: "list namespaces and their quotas",
				Flags:  []cli.Flag{&cli.BoolFlag{Name: "keys", Usage: "also show the keys"}},
				Action: func(c *cli.Context) error { return listTenants(c, u) },
			},
			{
				Name: "delete", Usage: "revoke the key of a namespace; its entities stay",
				ArgsUsage: "NAME",
				Action:    func(c *cli.Context) error { return deleteTenant(c, u) },
			},
		},
	}
}

// onPlatform calls f with the platform that runs in the home.
func onPlatform(c *cli.Context, u *ui, f func(ctx context.Context, home string, s local.State) error) error {
	dir, err := home(c)
	if err != nil {
		return err
	}
	state, running := local.Find(dir)
	if !running || state.Address == "" {
		return notRunning(u, dir)
	}
	return f(c.Context, dir, state)
}

func createTenant(c *cli.Context, u *ui) error {
	if err := checkOperands(c, 1, 1); err != nil {
		return err
	}
	asked := local.Tenant{
		Name: c.Args().First(), InvocationsPerMinute: c.Int("per-minute"),
		ConcurrentInvocations: c.Int("concurrent"), FiresPerMinute: c.Int("fires"),
	}
	return onPlatform(c, u, func(ctx context.Context, home string, s local.State) error {
		made, err := local.AddTenant(ctx, home, s, asked)
		if err != nil {
			return err
		}
		u.Say("next:  wsk --apihost %s --auth KEY action list", s.Address)
		return u.Show(made, func(w io.Writer) { fmt.Fprintln(w, made.Key) })
	})
}

func listTenants(c *cli.Context, u *ui) error {
	if err := checkOperands(c, 0, 0); err != nil {
		return err
	}
	return onPlatform(c, u, func(ctx context.Context, home string, s local.State) error {
		list, err := local.Tenants(ctx, home, s)
		if err != nil {
			return err
		}
		for i := range list {
			if !c.Bool("keys") {
				list[i].Key = ""
			}
		}
		return u.Show(list, func(w io.Writer) { printTenants(w, list) })
	})
}

func printTenants(w io.Writer, list []local.Tenant) {
	rows := [][]string{{"NAMESPACE", "PER MINUTE", "AT ONCE", "FIRES", "KEY"}}
	for _, n := range list {
		rows = append(rows, []string{
			n.Name, fmt.Sprint(n.InvocationsPerMinute), fmt.Sprint(n.ConcurrentInvocations), fmt.Sprint(n.FiresPerMinute), n.Key,
		})
	}
	terminal.Table(w, rows...)
}

func deleteTenant(c *cli.Context, u *ui) error {
	if err := checkOperands(c, 1, 1); err != nil {
		return err
	}
	name := c.Args().First()
	return onPlatform(c, u, func(ctx context.Context, home string, s local.State) error {
		if err := local.RemoveTenant(ctx, home, s, name); err != nil {
			return err
		}
		return u.Show(local.Tenant{Name: name}, func(w io.Writer) {
			fmt.Fprintf(w, "the key of %s is no longer known\n", terminal.OneLine(name))
		})
	})
}

// namespacesOf reads --namespace NAME[:UUID:SECRET].
func namespacesOf(list []string) ([]local.Tenant, error) {
	var out []local.Tenant
	for _, text := range list {
		name, key, keyed := strings.Cut(text, ":")
		if name == "" || keyed && !strings.Contains(key, ":") {
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "start platform",
				Msg:  fmt.Sprintf("--namespace %q is not NAME or NAME:UUID:SECRET", name),
				Hint: "leave the key out: disdel platform user list --keys shows the one that is made",
			}
		}
		out = append(out, local.Tenant{Name: name, Key: key})
	}
	return out, nil
}
