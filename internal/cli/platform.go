package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/platform/local"
)

// defaultPort is that of OpenWhisk's standalone server.
const defaultPort = 3233

func platformCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "platform", Usage: "run an OpenWhisk on this machine, for disdel, wsk and other clients",
		Description: "   disdel platform up --pool-memory 2GB\n   eval \"$(disdel platform up --detach)\"; wsk action " +
			"list\n   disdel platform status\n   disdel platform down",
		Subcommands: []*cli.Command{platformUp(u), platformStatus(u), platformDown(u), platformUser(u)},
		Action:      needSubcommand,
	}
}

func platformUp(u *ui) *cli.Command {
	return &cli.Command{
		Name: "up", Usage: "start the platform; Ctrl-C stops it",
		Description: "   disdel platform up\n   eval \"$(disdel platform up --detach)\"    # and set up this shell for wsk " +
			"and disdel",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "host", Value: "127.0.0.1", Usage: "`ADDRESS` to serve on"},
			&cli.IntFlag{Name: "port", Value: defaultPort, Usage: "port `NUMBER`; 0 takes a free one"},
			&cli.BoolFlag{
				Name: "detach", Aliases: []string{"d"},
				Usage: "run in the background; the log is platform.log in the home folder",
			},
			&cli.StringFlag{
				Name: "wskprops", TakesFile: true,
				Usage: "also write this wsk properties `FILE`, for example ~/.wskprops",
			},
			&cli.StringFlag{
				Name: "data-dir", TakesFile: true,
				Usage: "`FOLDER` that stores actions, triggers, rules and activations (default: platform in the home " +
					"folder)",
			},
			&cli.BoolFlag{
				Name:  "guest-key",
				Usage: "use OpenWhisk's well-known guest key instead of a secret key",
			},
			&cli.BoolFlag{Name: "insecure", Usage: "allow other addresses than loopback without encryption"},
			&cli.StringSliceFlag{Name: "allow-host", Usage: "additional host `NAME` to accept (repeatable)"},
			&cli.StringSliceFlag{
				Name: "allow-origin", Usage: "allow requests from web pages of `http://HOST:PORT` (default: none)",
			},
			&cli.BoolFlag{Name: "log-requests", Usage: "log every request"},
			&cli.IntFlag{
				Name: "per-minute", Value: local.PerMinute,
				Usage: "`NUMBER` of invocations, and of fired triggers, per minute (OpenWhisk: 60)",
			},
			&cli.IntFlag{
				Name: "concurrent", Value: local.Concurrent,
				Usage: "`NUMBER` of concurrent invocations (OpenWhisk: 30)",
			},
			&cli.IntFlag{
				Name: "action-concurrency", Value: 1,
				Usage: "largest `NUMBER` of concurrent activations in one container " +
					"(Node.js, and infer of disdel:1)",
			},
			&cli.StringFlag{
				Name:  "cpu-scaling",
				Usage: "processor quota of containers, `MILLICPUS/MEMORY[:MOST]` as on Kubernetes: 300/256MB:4000",
			},
			&cli.StringFlag{
				Name: "like",
				Usage: "behave like `NAME`, to test clients: openwhisk, standalone or kubernetes, or single parts like " +
					"late-records=3s,refused-init,count-refused,no-evidence,retry-warm",
			},
			&cli.StringSliceFlag{
				Name:  "namespace",
				Usage: "additional namespace `NAME[:UUID:SECRET]`; without a key, one is created",
			},
			&cli.BoolFlag{Name: "catalog", Usage: "provide the packages /whisk.system/utils and /whisk.system/samples"},
			&cli.StringSliceFlag{
				Name:  "prewarm",
				Usage: "keep started containers ready: `KIND@MEMORY=COUNT`, for example nodejs:20@256MB=2",
			},
			&cli.StringSliceFlag{
				Name:  "action-env",
				Usage: "environment variable `NAME` to pass to all containers, for example AWS_ACCESS_KEY_ID",
			},
			&cli.BoolFlag{
				Name:  "allow-root",
				Usage: "run scripts as root if they cannot have their own users (default: refuse them)",
			},
			&cli.StringFlag{
				Name: "node-modules", TakesFile: true,
				Usage: "`FOLDER` of npm packages for Node.js actions, as npm install --prefix FOLDER fills it",
			},
			actionFlag,
		},
		Action: func(c *cli.Context) error { return runPlatform(c, u) },
	}
}

func platformStatus(u *ui) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show whether the platform runs, and where; exit with 3 if it does not",
		Action: func(c *cli.Context) error { return showPlatform(c, u) },
	}
}

func platformDown(u *ui) *cli.Command {
	return &cli.Command{
		Name: "down", Usage: "stop the platform and wait for its end",
		Action: func(c *cli.Context) error { return endPlatform(c, u) },
	}
}

// platformDocument is what `platform status` and `platform up` print with -o json.
type platformDocument struct {
	Running bool   `json:"running"`
	Home    string `json:"home"`
	*local.State
	*local.Status
}

// showPlatform is `disdel platform status`.
func showPlatform(c *cli.Context, u *ui) error {
	return inHome(c, func(dir string) error {
		state, running := local.Find(dir)
		if !running {
			return notRunning(u, dir)
		}
		d := platformDocument{Running: true, Home: dir, State: &state}
		var err error
		if d.Status, err = local.Ask(c.Context, state); err != nil {
			return err
		}
		return u.Show(d, func(w io.Writer) { printPlatform(w, d) })
	})
}

func inHome(c *cli.Context, f func(dir string) error) error {
	if err := checkOperands(c, 0, 0); err != nil {
		return err
	}
	dir, err := home(c)
	if err != nil {
		return err
	}
	return f(dir)
}

// notRunning prints a document, which a program can read, or an error, and sets the exit code.
func notRunning(u *ui, dir string) error {
	err := &disdel.Error{
		Kind: disdel.Unavailable, Op: "find platform", Msg: "none runs in " + dir,
		Hint: "disdel platform up",
	}
	if u.Format == "table" {
		return err
	}
	if err := u.Show(platformDocument{Home: dir}, nil); err != nil {
		return err
	}
	return terminal.Reported(err)
}

func printPlatform(w io.Writer, d platformDocument) {
	rows := [][]string{
		{"address", d.Address},
		{"process", fmt.Sprintf("%d, up for %s", d.PID, (time.Duration(d.UptimeMs) * time.Millisecond).Round(time.Second))},
		{"memory", "limits by " + d.Enforcement},
		{"actions", "confined by " + d.Confinement},
		{"users", usersOfActions(d.Users)},
		{"pool", fmt.Sprintf("%s of %s: %d running, %d ready, %d paused, %d prewarmed, %d queued", d.Pool.UsedBytes,
			d.Pool.Bytes, d.Pool.Running, d.Pool.Ready, d.Pool.Paused, d.Pool.Prewarmed, d.Pool.Queued)},
		{"wskprops", d.Properties},
		{"data", d.Data},
	}
	for _, g := range d.GPUs {
		rows = append(rows,
			[]string{"gpu", fmt.Sprintf("%s: %v of %v, %d containers", g.ID, g.UsedBytes, g.Bytes, g.Containers)})
	}
	terminal.Table(w, rows...)
}

// usersOfActions says which users run the actions of each family of kinds.
func usersOfActions(list []local.User) string {
	users, order := map[string][]string{}, []string{}
	for _, user := range list {
		text := "refused, " + user.Refused
		switch {
		case user.RunsAs == local.RunsAsOwn:
			text = "each container has a user of its own"
		case user.RunsAs == local.RunsAsPlatform && user.UserID == 0:
			text = "root, the platform's user"
		case user.RunsAs == local.RunsAsPlatform:
			text = fmt.Sprintf("the platform's user (%d)", user.UserID)
		}
		name, _, _ := strings.Cut(user.Kind, ":")
		if _, ok := users[text]; !ok {
			order = append(order, text)
		}
		if !slices.Contains(users[text], name) {
			users[text] = append(users[text], name)
		}
	}
	parts := make([]string, 0, len(order))
	for _, text := range order {
		parts = append(parts, strings.Join(users[text], ", ")+": "+text)
	}
	return strings.Join(parts, "; ")
}

// announce prints shell commands on standard output, for eval, and everything else for people.
func announce(u *ui, dir string, s local.State) error {
	u.Say("OpenWhisk at %s", s.Address)
	u.Say("a shell is set up for wsk and disdel by the lines on standard output, or by: eval \"$(%s platform up "+
		"--detach)\"", terminal.Program())
	err := u.Show(platformDocument{Running: true, Home: dir, State: &s}, func(w io.Writer) {
		fmt.Fprintf(w, "export WSK_CONFIG_FILE=%s\nexport DISDEL_APIHOST=%s\n", shellWord(s.Properties), s.Address)
	})
	u.Say("next:  wsk action list; disdel platform status; disdel platform down")
	return err
}

// shellWord quotes a word for a shell.
func shellWord(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// endPlatform is `disdel platform down`.
func endPlatform(c *cli.Context, u *ui) error {
	return inHome(c, func(dir string) error {
		state, running := local.Find(dir)
		if !running {
			u.Say("no platform runs in %s", dir)
			forgetAddress(u, "")
			return u.Show(platformDocument{Home: dir}, func(io.Writer) {})
		}
		if err := local.Signal(dir, state, unix.SIGTERM); err != nil {
			return err
		}
		if err := local.AwaitEnd(c.Context, dir, state.PID); err != nil {
			return err
		}
		u.Say("the platform has ended")
		forgetAddress(u, state.Address)
		return u.Show(platformDocument{Home: dir}, func(io.Writer) {})
	})
}

// forgetAddress warns if this shell still sends commands to a platform that has ended.
func forgetAddress(u *ui, ended string) {
	address := os.Getenv("DISDEL_APIHOST")
	at, err := url.Parse(address)
	if err == nil && (local.SameAddress(address, ended) || ended == "" && addresses.Loopback(at.Hostname())) {
		u.Say("hint: unset DISDEL_APIHOST, WSK_CONFIG_FILE: this shell still sends what disdel and wsk do to %s",
			terminal.Clean(address))
	}
}

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
