package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
)

func newApp(u *ui) *cli.App {
	app := &cli.App{
		Name:                      "disdel",
		Usage:                     "train deep-learning models as serverless actions on Apache OpenWhisk",
		Description:               "Start with `disdel quickstart`. Flags may stand before or after operands.",
		Flags:                     globalFlags(),
		HideHelpCommand:           true,
		HideVersion:               true,
		UseShortOptionHandling:    true,
		DisableSliceFlagSeparator: true, // a value of --set may hold commas
		Reader:                    u.in,
		Writer:                    u.out,
		ErrWriter:                 u.err,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              u.usage,
		CommandNotFound:           func(*cli.Context, string) {},
		Before:                    func(c *cli.Context) error { return u.configure(c) },
	}
	for _, build := range []func(*ui) *cli.Command{
		quickstartCommand, submitCommand, resumeCommand, estimateCommand, validateCommand, explainCommand, datasetCommand,
		historyCommand, reportCommand, modelCommand, inferCommand, platformCommand, versionCommand, runtimeCommand, helpCommand,
	} {
		app.Commands = append(app.Commands, build(u))
	}
	app.Action = func(c *cli.Context) error {
		if c.NArg() == 0 {
			return errWantsHelp
		}
		return unknownCommand(app.Commands, "disdel", c.Args().First())
	}
	app.Setup() // before the names for help are set, which it would set otherwise
	eachCommand("disdel", app.Commands, func(c *cli.Command) {
		c.OnUsageError = u.usage
		c.HideHelpCommand = true
	})
	return app
}

// eachCommand calls f with every command of the tree, whose names for help are whole by then.
func eachCommand(above string, list []*cli.Command, f func(*cli.Command)) {
	for _, c := range list {
		c.HelpName = above + " " + c.Name
		f(c)
		eachCommand(c.HelpName, c.Subcommands, f)
	}
}

func globalFlags() []cli.Flag {
	return []cli.Flag{
		cli.HelpFlag, // urfave adds it only where there is no command named help
		&cli.BoolFlag{Name: "version", Usage: "print the version"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", EnvVars: []string{"DISDEL_OUTPUT"}, Usage: "`FORMAT`: table, wide (every column, however narrow the terminal), json or yaml"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no messages, only data and errors"},
		&cli.BoolFlag{Name: "plain", Usage: "never rewrite lines on the terminal"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "log what is done"},
		&cli.StringFlag{Name: "home", EnvVars: []string{"DISDEL_HOME"}, Usage: "`FOLDER` of data sets, models and history (default: $XDG_DATA_HOME/disdel or ~/.local/share/disdel)"},
		&cli.StringFlag{Name: "storage", EnvVars: []string{"DISDEL_STORAGE"}, Usage: "blob `URL` of data sets and models (default: a folder of --home)"},
		&cli.StringFlag{Name: "redis", EnvVars: []string{"DISDEL_REDIS"}, Usage: "`URL` of a Redis server (default: embedded), or several with commas between, over which updates are spread; the password of all of them may come from DISDEL_REDIS_PASSWORD"},
		&cli.StringFlag{Name: "redis-prefix", EnvVars: []string{"DISDEL_REDIS_PREFIX"}, Usage: "`PREFIX` of every key on Redis, for servers that others use too (default: disdel)"},
		&cli.StringFlag{Name: "redis-ca", EnvVars: []string{"DISDEL_REDIS_CA"}, Usage: "`FILE` in PEM with the authority that rediss:// servers are checked against (default: the system's)"},
		&cli.StringFlag{Name: "couchdb", EnvVars: []string{"DISDEL_COUCHDB"}, Usage: "`URL` of a CouchDB server (default: embedded); its password may come from DISDEL_COUCHDB_PASSWORD"},
		&cli.StringFlag{Name: "apihost", EnvVars: []string{"DISDEL_APIHOST"}, Usage: "`URL` of an OpenWhisk API (default: embedded); its key comes from DISDEL_AUTH, the home's own platform, or a ~/.wskprops that names it"},
		&cli.StringFlag{Name: "image", EnvVars: []string{"DISDEL_IMAGE"}, Usage: "container `IMAGE` of the action runtime on --apihost"},
		&cli.StringFlag{Name: "pool-memory", EnvVars: []string{"DISDEL_POOL_MEMORY"}, Usage: "`SIZE` of the container pool (default, embedded: three quarters of the free memory)"},
		&cli.StringFlag{Name: "action-memory", EnvVars: []string{"DISDEL_ACTION_MEMORY"}, Value: "512MB", Usage: "largest memory `SIZE` of an action on the embedded platform"},
		&cli.DurationFlag{Name: "action-timeout", EnvVars: []string{"DISDEL_ACTION_TIMEOUT"}, Value: defaultActionTimeout, Usage: "longest `TIME` of an action on the embedded platform"},
	}
}

// configure reads the global flags.
func (u *ui) configure(c *cli.Context) error {
	if f := c.String("output"); !u.take(f) {
		return usageError{&disdel.Error{Kind: disdel.Invalid, Msg: fmt.Sprintf("there is no output format %q", f), Hint: "use -o table, -o wide, -o json or -o yaml"}}
	}
	u.quiet = c.Bool("quiet")
	u.live = u.live && !c.Bool("plain") && !u.quiet && os.Getenv("TERM") != "dumb"
	return nil
}

// take sets the format of the output, if there is one of that name. Wide is a table as a pipe gets it.
func (u *ui) take(format string) bool {
	switch format {
	case "table", "json", "yaml":
		u.format = format
	case "wide":
		u.format, u.columns = "table", func() int { return 0 }
	default:
		return false
	}
	return true
}

// expect looks for the format of the output among the global flags before they are parsed: an error of the parser is told
// in it too.
func (u *ui) expect(globals []string) {
	u.take(os.Getenv("DISDEL_OUTPUT"))
	for i, flag := range globals {
		name, value, inline := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if !inline && i+1 < len(globals) {
			value = globals[i+1]
		}
		if name == "o" || name == "output" {
			u.take(value)
		}
	}
}

func newLog(c *cli.Context, w io.Writer) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(w)
	log.SetLevel(logrus.WarnLevel)
	if c.Bool("verbose") {
		log.SetLevel(logrus.DebugLevel)
	}
	return log
}

// home is the folder that everything of this user lives in.
func home(c *cli.Context) (string, error) {
	dir := c.String("home")
	if dir == "" {
		if dir = os.Getenv("XDG_DATA_HOME"); dir != "" {
			dir = filepath.Join(dir, "disdel")
		}
	}
	if dir == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", &disdel.Error{Kind: disdel.Invalid, Op: "find the home folder", Err: err, Hint: "name a folder with --home"}
		}
		dir = filepath.Join(user, ".local", "share", "disdel")
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", &disdel.Error{Kind: disdel.Invalid, Op: "make the home folder", Err: err, Hint: "name a folder you can write to with --home"}
	}
	return dir, nil
}

// operands checks how many operands a command got.
func operands(c *cli.Context, least, most int) error {
	if n := c.NArg(); n < least || n > most {
		return usageError{&disdel.Error{
			Kind: disdel.Invalid,
			Msg:  fmt.Sprintf("%s takes %s, not %d", c.Command.HelpName, count(least, most), n),
			Hint: c.Command.HelpName + " --help",
		}}
	}
	return nil
}

func count(least, most int) string {
	switch {
	case least == most && most == 0:
		return "no operand"
	case least == most && most == 1:
		return "one operand"
	case least == most:
		return fmt.Sprintf("%d operands", most)
	default:
		return fmt.Sprintf("%d to %d operands", least, most)
	}
}
