package cli

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/platform/local"
)

// contextCommands are the commands that keep servers and clusters under names.
type contextCommands struct{ ui *ui }

// contextCommand is `disdel context`.
func contextCommand(u *ui) *cli.Command {
	x := contextCommands{u}
	return &cli.Command{
		Name: "context", Usage: "choose the server or cluster that commands go to",
		Description: "   disdel context add lab --server https://train.example:7070 --token-file token\n" +
			"   disdel context add prod --apihost https://whisk.example --redis rediss://redis.example:6379/0\n" +
			"   disdel context import-wskprops\n" +
			"   disdel context use lab\n   disdel context use local    # none: in this process, on this machine",
		Subcommands: []*cli.Command{x.add(), x.importProperties(), x.use(), x.list(), x.remove()},
		Action:      needSubcommand,
	}
}

// change calls f with the saved contexts, writes them back, and shows them.
func (x contextCommands) change(c *cli.Context, f func(home string, known *client.Contexts) error) error {
	dir, err := home(c)
	if err != nil {
		return err
	}
	known, err := client.ReadContexts(dir)
	if err == nil {
		err = f(dir, &known)
	}
	if err == nil {
		err = known.Write(dir)
	}
	if err != nil {
		return err
	}
	return x.show(known)
}

// show prints the contexts without secrets.
func (x contextCommands) show(known client.Contexts) error {
	doc := render.Contexts{Current: known.Current, Contexts: []render.Context{}}
	for _, one := range known.List {
		shown := render.Context{
			Name: one.Name, Server: one.Server, Token: one.Token != "" || one.Keyring && one.Server != "", Keyring: one.Keyring,
		}
		if at := one.Cluster; at != nil {
			shown.APIHost, shown.Key, shown.Image, shown.Storage = at.APIHost, at.Key != "" || one.Keyring, at.Image, at.Storage
			shown.Redis, shown.CouchDB = addresses.WithoutPasswords(at.Redis), addresses.WithoutPasswords(at.CouchDB)
		}
		doc.Contexts = append(doc.Contexts, shown)
	}
	return x.ui.Show(doc, func(w io.Writer) { render.PrintContexts(w, doc) })
}

func (x contextCommands) add() *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "save a server or a cluster under a name, with its secrets", ArgsUsage: "NAME",
		Description: "For a server, give --server; " +
			"the token comes from --token-file (- is standard input) or DISDEL_TOKEN.\n" +
			"For a cluster, give --apihost, --redis, --couchdb, --storage and so on; the key comes from --key-file or\n" +
			"DISDEL_AUTH, passwords from DISDEL_REDIS_PASSWORD and DISDEL_COUCHDB_PASSWORD. No argument takes a secret.\n" +
			"The home folder stores everything, readable only for you. With --keyring, the session's keyring stores\n" +
			"the secrets.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "token-file", TakesFile: true, Usage: "`FILE` with the token"},
			&cli.StringFlag{Name: "key-file", TakesFile: true, Usage: "`FILE` with the key of --apihost"},
			&cli.BoolFlag{Name: "insecure", Usage: "allow sending the token to another machine without encryption"},
			keyringFlag(),
		},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			one := client.Context{Name: c.Args().First()}
			var err error
			switch {
			case c.String("server") != "":
				one.Server, one.Clear = c.String("server"), c.Bool("insecure")
				one.Token, err = x.secret(c, "token-file", tokenVariable)
			case c.String("apihost") != "":
				one.Cluster, err = x.cluster(c)
			default:
				err = missingFlag(c, "--server URL or --apihost URL")
			}
			if err != nil {
				return err
			}
			return x.change(c, adding(c, one))
		},
	}
}

func keyringFlag() cli.Flag {
	return &cli.BoolFlag{
		Name: "keyring", Usage: "store the secrets in the session's keyring instead of the home folder",
	}
}

// adding returns a change that adds a context. The secrets go to the keyring if --keyring is set.
func adding(c *cli.Context, one client.Context) func(home string, known *client.Contexts) error {
	return func(home string, known *client.Contexts) error {
		if c.Bool("keyring") {
			return known.AddToKeyring(home, one)
		}
		return known.Add(one)
	}
}

// cluster reads a cluster from the flags and the environment.
func (x contextCommands) cluster(c *cli.Context) (*client.Cluster, error) {
	at := &client.Cluster{
		APIHost: addresses.WithScheme(c.String("apihost")), Image: c.String("image"), Storage: c.String("storage"),
		Redis: c.String("redis"), RedisPassword: os.Getenv("DISDEL_REDIS_PASSWORD"),
		RedisPrefix: c.String("redis-prefix"), CouchDB: c.String("couchdb"),
		CouchDBPassword: os.Getenv("DISDEL_COUCHDB_PASSWORD"),
	}
	if file := c.String("redis-ca"); file != "" {
		at.RedisCA = wholePath(file)
	}
	var err error
	at.Key, err = x.secret(c, "key-file", "DISDEL_AUTH")
	return at, err
}

// secret reads a secret from a file, or from an environment variable if no file is given.
func (x contextCommands) secret(c *cli.Context, flag, variable string) (string, error) {
	file := c.String(flag)
	if file == "" {
		return os.Getenv(variable), nil
	}
	read := files.Read
	if file == "-" {
		read = func(name string) ([]byte, error) { return files.ReadAll(name, x.ui.In) }
	}
	text, err := read(file)
	return strings.TrimSpace(string(text)), err
}

func (x contextCommands) importProperties() *cli.Command {
	return &cli.Command{
		Name: "import-wskprops", Usage: "import the OpenWhisk of wsk, with its key", ArgsUsage: "[NAME]",
		Description: "Reads --file, WSK_CONFIG_FILE or ~/.wskprops, and does not change it. " +
			"Without NAME, the name is wsk.\n" +
			"The context also stores --redis, --couchdb, --storage and --image.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "file", TakesFile: true, Usage: "wsk properties `FILE`"},
			keyringFlag(),
		},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 1); err != nil {
				return err
			}
			file := c.String("file")
			if file == "" {
				file = local.WskFile()
			}
			properties := local.ReadProperties(file)
			if properties["APIHOST"] == "" || properties["AUTH"] == "" {
				return &disdel.Error{
					Kind: disdel.NotFound, Op: "import " + file, Msg: "it has no APIHOST with an AUTH",
					Hint: "wsk property set --apihost HOST --auth KEY writes them; --file names another file",
				}
			}
			at, err := x.cluster(c)
			if err != nil {
				return err
			}
			at.APIHost, at.Key = addresses.WithScheme(properties["APIHOST"]), properties["AUTH"]
			name := c.Args().First()
			if name == "" {
				name = "wsk"
			}
			return x.change(c, adding(c, client.Context{Name: name, Cluster: at}))
		},
	}
}

func (x contextCommands) use() *cli.Command {
	return &cli.Command{
		Name: "use", Usage: "make a context the current one", ArgsUsage: "NAME",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			return x.change(c, func(_ string, known *client.Contexts) error {
				if known.Current = c.Args().First(); known.Current == client.InProcess {
					known.Current = ""
					return nil
				}
				_, err := known.Find(known.Current)
				return err
			})
		},
	}
}

func (x contextCommands) list() *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the saved servers and clusters",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
				return err
			}
			dir, err := home(c)
			if err != nil {
				return err
			}
			known, err := client.ReadContexts(dir)
			if err != nil {
				return err
			}
			return x.show(known)
		},
	}
}

func (x contextCommands) remove() *cli.Command {
	return &cli.Command{
		Name: "remove", Aliases: []string{"delete"}, Usage: "delete a server or a cluster, and its secrets",
		ArgsUsage: "NAME",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			return x.change(c, func(home string, known *client.Contexts) error {
				return known.Remove(home, c.Args().First())
			})
		},
	}
}

// tokenVariable holds the token for a server.
const tokenVariable = "DISDEL_TOKEN"

// localCommands are about this machine or this program only. They ignore the current context.
var localCommands = []string{
	"context", "version", "help", "runtime", "platform", "simulate", "lab", "explain",
}

// changingCommands change something in the context's cluster, with those of their subcommands that do; nil means the
// command itself.
var changingCommands = map[string][]string{
	"quickstart": nil, "init": nil, "submit": nil, "batch": nil, "resume": nil, "infer": nil, "serve": nil, "doctor": nil,
	"verify": nil,
	"job":    {"cancel", "pause", "stop"}, "dataset": {"add", "remove"}, "tenant": {"create", "delete", "quota", "token"},
	"deploy": {"up", "down"}, "history": {"repair"},
}

// enterContext lets a command work with the cluster of the chosen context: it sets every flag that neither the command
// line nor the environment sets. A command that changes something prints the context's name. folder is the home folder,
// which may not exist.
func enterContext(c *cli.Context, u *ui, folder string) error {
	if slices.Contains(localCommands, c.Args().First()) {
		return nil
	}
	by := client.Chosen{Home: folder, Server: c.String("server"), Context: c.String("context")}
	name, at, err := client.ChooseCluster(by)
	if err != nil || name == "" {
		return err
	}
	if at != nil {
		if err := applySettings(c, at.Settings()); err != nil {
			return err
		}
	}
	if changesSomething(c.Args().Slice()) && u.Format == "table" {
		u.Say("in context %s", name)
	}
	return nil
}

// applySettings applies settings that nobody gave. It applies a secret only if its address is the context's own, so
// that no other server gets it.
func applySettings(c *cli.Context, all []client.Setting) error {
	own := map[string]string{}
	for _, s := range all {
		if s.Flag != "" {
			own[s.Flag] = s.Value
		}
		if s.Address != "" && c.String(s.Address) != own[s.Address] {
			continue
		}
		if err := applySetting(c, s); err != nil {
			return err
		}
	}
	return nil
}

// applySetting applies one setting to the flag and to the environment. Secrets are read from the environment, and a
// record names the context instead of values from the environment.
func applySetting(c *cli.Context, s client.Setting) error {
	if s.Value == "" || s.Flag != "" && c.IsSet(s.Flag) || os.Getenv(s.Variable) != "" {
		return nil
	}
	if err := os.Setenv(s.Variable, s.Value); err != nil {
		return err
	}
	if s.Flag == "" {
		return nil
	}
	return c.Set(s.Flag, s.Value)
}

func changesSomething(args []string) bool {
	if len(args) == 0 {
		return false
	}
	below, known := changingCommands[args[0]]
	return known && (below == nil || len(args) > 1 && slices.Contains(below, args[1]))
}
