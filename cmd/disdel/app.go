package main

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/localplatform"
)

func newApp(u *ui) *cli.App {
	mistaken := func(c *cli.Context, err error, _ bool) error { return commandline.Mistake(c, err, u.Args) }
	app := &cli.App{
		Name:                      "disdel",
		Usage:                     "train deep-learning models as serverless actions on Apache OpenWhisk",
		Description:               "Start with `disdel quickstart`. Flags may stand before or after operands.",
		Flags:                     globalFlags(),
		HideHelpCommand:           true,
		HideVersion:               true,
		UseShortOptionHandling:    true,
		DisableSliceFlagSeparator: true, // a value of --set may hold commas
		Reader:                    u.In,
		Writer:                    u.Out,
		ErrWriter:                 u.Err,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              mistaken,
		CommandNotFound:           func(*cli.Context, string) {},
		Before:                    func(c *cli.Context) error { return configure(u, c) },
	}
	for _, build := range []func(*ui) *cli.Command{
		quickstartCommand, submitCommand, batchCommand, resumeCommand, jobCommand, estimateCommand, validateCommand,
		explainCommand, datasetCommand, historyCommand, reportCommand, modelCommand, inferCommand, evaluateCommand,
		platformCommand, serveCommand, pageCommand, tenantCommand, contextCommand, deployCommand, doctorCommand,
		verifyCommand, simulateCommand, labCommand, commandline.CompletionCommand, commandline.ManualCommand,
		versionCommand, runtimeCommand, helpCommand, commandline.CompleteCommand,
	} {
		app.Commands = append(app.Commands, build(u))
	}
	app.Commands = append(app.Commands, commandline.CompareCommand(u, reading(u, records)),
		commandline.ExportCommand(u, reading(u, records)))
	app.Action = func(c *cli.Context) error {
		if c.NArg() == 0 {
			return commandline.ErrWantsHelp
		}
		return commandline.UnknownCommand(app.Commands, "disdel", c.Args().First())
	}
	app.Setup() // before the names for help are set, which it would set otherwise
	commandline.EachCommand("disdel", app.Commands, func(c *cli.Command) {
		c.OnUsageError = mistaken
		c.HideHelpCommand = true
	})
	return app
}

func globalFlags() []cli.Flag {
	return append([]cli.Flag{
		cli.HelpFlag, // urfave adds it only where there is no command named help
		&cli.BoolFlag{Name: "version", Usage: "print the version"},
		&cli.StringFlag{
			Name: "output", Aliases: []string{"o"}, Value: "table", EnvVars: []string{"DISDEL_OUTPUT"},
			Usage: "`FORMAT`: table, wide (every column, however narrow the terminal), json or yaml",
		},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no messages, only data and errors"},
		&cli.BoolFlag{Name: "plain", Usage: "never rewrite lines on the terminal"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "log what is done"},
		&cli.StringFlag{
			Name: "home", EnvVars: []string{"DISDEL_HOME"},
			Usage: "`FOLDER` of data sets, models and history (default: $XDG_DATA_HOME/disdel or ~/.local/share/disdel)",
		},
		&cli.StringFlag{
			Name: "server", EnvVars: []string{"DISDEL_SERVER"},
			Usage: "`URL` of a disdel serve that carries the command out; the token for it may come from DISDEL_TOKEN",
		},
		&cli.StringFlag{
			Name: "context", EnvVars: []string{"DISDEL_CONTEXT"},
			Usage: "`NAME` of the server or cluster to use, see disdel context; local: none (default: the current one)",
		},
		&cli.StringFlag{
			Name: "storage", EnvVars: []string{"DISDEL_STORAGE"},
			Usage: "blob `URL` of data sets and models (default: a folder of --home)",
		},
		&cli.StringFlag{
			Name: "redis", EnvVars: []string{"DISDEL_REDIS"},
			Usage: "`URL` of a Redis server (default: embedded), or several with commas between, over which updates are " +
				"spread; the password of all of them may come from DISDEL_REDIS_PASSWORD",
		},
		&cli.StringFlag{
			Name: "redis-prefix", EnvVars: []string{"DISDEL_REDIS_PREFIX"},
			Usage: "`PREFIX` of every key on Redis, for servers that others use too (default: disdel)",
		},
		&cli.StringFlag{
			Name: "redis-ca", EnvVars: []string{"DISDEL_REDIS_CA"},
			Usage: "`FILE` in PEM with the authority that rediss:// servers are checked against (default: the system's)",
		},
		&cli.StringFlag{
			Name: "couchdb", EnvVars: []string{"DISDEL_COUCHDB"},
			Usage: "`URL` of a CouchDB server (default: embedded); its password may come from DISDEL_COUCHDB_PASSWORD",
		},
		&cli.StringFlag{
			Name: "apihost", EnvVars: []string{"DISDEL_APIHOST"},
			Usage: "`URL` of an OpenWhisk API (default: embedded); its key comes from DISDEL_AUTH, the home's own platform, " +
				"or a ~/.wskprops that names it",
		},
		&cli.StringFlag{
			Name: "image", EnvVars: []string{"DISDEL_IMAGE"},
			Usage: "container `IMAGE` of the action runtime on --apihost",
		},
	}, append(commandline.PoolFlags(),
		&cli.StringFlag{
			Name: "action-memory", EnvVars: []string{"DISDEL_ACTION_MEMORY"}, Value: "512MB",
			Usage: "largest memory `SIZE` of an action on the embedded platform",
		},
		&cli.DurationFlag{
			Name: "action-timeout", EnvVars: []string{"DISDEL_ACTION_TIMEOUT"},
			Value: localplatform.DefaultActionTimeout, Usage: "longest `TIME` of an action on the embedded platform",
		})...)
}

// configure reads the global flags.
func configure(u *ui, c *cli.Context) error {
	if f := c.String("output"); !u.Take(f) {
		return &disdel.Error{
			Kind: disdel.Invalid, Msg: fmt.Sprintf("there is no output format %q", f),
			Hint: "use -o table, -o wide, -o json or -o yaml",
		}
	}
	u.Quiet = c.Bool("quiet")
	u.Live = u.Live && !c.Bool("plain") && !u.Quiet && os.Getenv("TERM") != "dumb"
	folder, err := commandline.HomeFolder(c)
	if err != nil {
		return nil // a command that needs one says so
	}
	err = commandline.EnterContext(c, u, folder)
	u.Place = commandline.PlaceOf(c)
	return err
}

// reading is what commands of package commandline read with.
func reading(u *ui, what need) commandline.Reading {
	return func(c *cli.Context, act func(context.Context, client.Client) error) error {
		return withClient(c, u, what, act)
	}
}

func contextCommand(u *ui) *cli.Command { return commandline.Contexts{UI: u, Home: home}.Command() }
