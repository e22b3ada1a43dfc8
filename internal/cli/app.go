// Package cli is the command line of disdel: commands, flags, help, shell completion, and mistakes in what was typed.
//
// It reads flags and prints; package service does the work. The action runtime, the entry point of an image, is the
// same program started as `disdel runtime`.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/actions/serve"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/service"
)

// ui prints for every command.
type ui = terminal.UI

// Main runs the program and ends the process.
func Main() {
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is Main with its surroundings as parameters; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	aggregator.SilenceRedis()
	ctx, stop := terminal.Interruptible()
	defer stop()
	u := terminal.New(stdin, stdout, stderr)
	u.Exit = func(err error) int { return terminal.ExitCode(ctx, err) }
	err := u.All(carryOut(ctx, u, args))
	u.Fail(err)
	return terminal.ExitCode(ctx, err)
}

// dropEmptyVariables removes disdel's empty variables from the environment. To the library of flags an empty variable
// is a value, which would hide that of the context.
func dropEmptyVariables() error {
	var errs []error
	for _, one := range os.Environ() {
		if name, value, _ := strings.Cut(one, "="); value == "" && strings.HasPrefix(name, "DISDEL_") {
			errs = append(errs, os.Unsetenv(name))
		}
	}
	return errors.Join(errs...)
}

// carryOut runs one command line.
func carryOut(ctx context.Context, u *ui, args []string) error {
	if err := dropEmptyVariables(); err != nil {
		return err
	}
	app := newApp(u)
	asked := splitArgs(app, args)
	u.Args = args
	u.Expect(asked.Globals)
	switch {
	case asked.Help:
		return showHelp(u, app, asked.helpPath(app))
	case asked.Version:
		return showVersion(u)
	}
	err := app.RunContext(ctx, flagsFirst(app, args))
	if errors.Is(err, errWantsHelp) {
		return showHelp(u, app, asked.Path)
	}
	return err
}

func helpCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "show help, or the exit codes", ArgsUsage: "[exit-codes | COMMAND...]",
		Description: "   disdel help dataset add\n   disdel help exit-codes",
		Action: func(c *cli.Context) error {
			if c.NArg() == 1 && c.Args().First() == "exit-codes" {
				return u.Show(terminal.ExitCodes, terminal.PrintExitCodes)
			}
			return showHelp(u, c.App, c.Args().Slice())
		},
	}
}

func showHelp(u *ui, app *cli.App, names []string) error {
	shown, print, err := helpFor(app, names)
	if err != nil {
		return err
	}
	return u.Show(shown, print)
}

func newApp(u *ui) *cli.App {
	mistaken := func(c *cli.Context, err error, _ bool) error { return flagMistake(c, err, u.Args) }
	app := &cli.App{
		Name:  "disdel",
		Usage: "train deep-learning models as serverless actions on Apache OpenWhisk",
		Description: "Start with `disdel quickstart`. `disdel COMMAND --help` explains a command. Flags may stand " +
			"before or\nafter operands.",
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
		quickstartCommand, submitCommand, batchCommand, resumeCommand, jobsCommand, estimateCommand, validateCommand,
		explainCommand, exampleCommand, initCommand, datasetCommand,
		reportCommand, compareCommand, exportCommand, modelCommand,
		inferCommand, evaluateCommand, usageCommand, pruneCommand,
		platformCommand, serveCommand, pageCommand, tenantCommand, contextCommand, deployCommand, doctorCommand,
		verifyCommand, simulateCommand, labCommand, completionCommand, manualCommand,
		versionCommand, runtimeCommand, helpCommand, completeCommand,
	} {
		app.Commands = append(app.Commands, build(u))
	}
	app.Action = func(c *cli.Context) error {
		if c.NArg() == 0 {
			return errWantsHelp
		}
		return unknownCommand(app.Commands, "disdel", c.Args().First())
	}
	setGroups(app.Commands)
	app.Setup() // before the names for help are set, which it would set otherwise
	eachCommand("disdel", app.Commands, func(c *cli.Command) {
		c.OnUsageError = mistaken
		c.HideHelpCommand = true
		showNoFalse(c.Flags)
	})
	showNoFalse(app.Flags)
	return app
}

// showNoFalse keeps "(default: false)" out of the help of switches.
func showNoFalse(flags []cli.Flag) {
	for _, f := range flags {
		if b, ok := f.(*cli.BoolFlag); ok && !b.Value {
			b.DisableDefaultText = true
		}
	}
}

func globalFlags() []cli.Flag {
	return append([]cli.Flag{
		cli.HelpFlag, // urfave adds it only where there is no command named help
		&cli.BoolFlag{Name: "version", Usage: "print the version"},
		&cli.StringFlag{
			Name: "output", Aliases: []string{"o"}, Value: "table", EnvVars: []string{"DISDEL_OUTPUT"},
			Usage: "output `FORMAT`: table, wide (all columns), json, jsonl (a line each), yaml or name (ids only)",
		},
		&cli.StringFlag{Name: "jq", Usage: "print the JSON output as this jq `EXPRESSION` selects it: '.[].id'"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only data and errors"},
		&cli.BoolFlag{Name: "plain", Usage: "do not redraw lines on the terminal"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print the log"},
		&cli.StringFlag{
			Name: "home", EnvVars: []string{"DISDEL_HOME"},
			Usage: "`FOLDER` of data sets, models and history (default: $XDG_DATA_HOME/disdel or ~/.local/share/disdel)",
		},
		&cli.StringFlag{
			Name: "server", EnvVars: []string{"DISDEL_SERVER"},
			Usage: "`URL` of a disdel server that runs the command; DISDEL_TOKEN may hold its token",
		},
		&cli.StringFlag{
			Name: "context", EnvVars: []string{"DISDEL_CONTEXT"},
			Usage: "`NAME` of a context, see disdel context; local uses none (default: the current one)",
		},
		&cli.StringFlag{
			Name: "storage", EnvVars: []string{"DISDEL_STORAGE"},
			Usage: "`URL` of the blob storage of data sets and models (default: a folder of --home)",
		},
		&cli.StringFlag{
			Name: "redis", EnvVars: []string{"DISDEL_REDIS"},
			Usage: "`URL` of a Redis server, of a cluster's nodes or of Sentinels, with commas between several " +
				"(default: embedded); DISDEL_REDIS_PASSWORD may hold the password",
		},
		&cli.StringFlag{
			Name: "redis-prefix", EnvVars: []string{"DISDEL_REDIS_PREFIX"},
			Usage: "`PREFIX` of all Redis keys, for a Redis shared with others (default: disdel)",
		},
		&cli.StringFlag{
			Name: "redis-ca", EnvVars: []string{"DISDEL_REDIS_CA"},
			Usage: "PEM `FILE` of the certificate authority for rediss:// (default: the system's)",
		},
		&cli.StringFlag{
			Name: "couchdb", EnvVars: []string{"DISDEL_COUCHDB"},
			Usage: "`URL` of a CouchDB server (default: embedded); DISDEL_COUCHDB_PASSWORD may hold the password",
		},
		&cli.StringFlag{
			Name: "apihost", EnvVars: []string{"DISDEL_APIHOST"},
			Usage: "`URL` of an OpenWhisk API (default: embedded); its key comes from DISDEL_AUTH, the home's platform or " +
				"~/.wskprops",
		},
		&cli.StringFlag{
			Name: "image", EnvVars: []string{"DISDEL_IMAGE"},
			Usage: "container `IMAGE` of the action runtime on --apihost",
		},
	}, append(poolFlags(),
		&cli.StringFlag{
			Name: "action-memory", EnvVars: []string{"DISDEL_ACTION_MEMORY"}, Value: "512MB",
			Usage: "largest memory limit of an action on the embedded platform, a `SIZE`",
		},
		&cli.DurationFlag{
			Name: "action-timeout", EnvVars: []string{"DISDEL_ACTION_TIMEOUT"},
			Value: local.DefaultActionTimeout, Usage: "longest timeout of an action on the embedded platform, a `TIME`",
		})...)
}

// configure reads the global flags.
func configure(u *ui, c *cli.Context) error {
	if f := c.String("output"); !u.Take(f) {
		return unknownFormat(u, c.App, f)
	}
	if c.IsSet("jq") {
		if err := u.Filter(c.String("jq")); err != nil {
			return err
		}
	}
	u.Quiet = c.Bool("quiet")
	u.Live = u.Live && !c.Bool("plain") && !u.Quiet && os.Getenv("TERM") != "dumb"
	folder, err := homeFolder(c)
	if err != nil {
		return nil // a command that needs one says so
	}
	err = enterContext(c, u, folder)
	u.Place = placeOf(c)
	return err
}

// versionDocument says what the program was built from, and which kernels its engine uses on this machine.
type versionDocument struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from files that differ from the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"` // what the engine computes with on this machine
	Static   bool   `json:"static"`  // built without C
}

// release and revision are stamped by `make build`.
var release, revision string

// self describes this program.
func self() versionDocument { return readBuild(release, revision) }

// readBuild reads what the build stamped into the program. Unknown values are no error.
func readBuild(release, revision string) versionDocument {
	d := versionDocument{
		Version: cmp.Or(release, "unknown"), Revision: revision, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Kernels: kernelsHere(),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return d
	}
	d.Version = cmp.Or(release, info.Main.Version, d.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			d.Revision = cmp.Or(revision, s.Value)
		case "vcs.modified":
			d.Modified = s.Value == "true"
		case "CGO_ENABLED":
			d.Static = s.Value == "0"
		}
	}
	return d
}

// Print writes the document for people.
func (d versionDocument) Print(w io.Writer) {
	fmt.Fprintf(w, "disdel %s\n", d.Version)
	rows := [][]string{
		{"revision", cmp.Or(d.Revision, "unknown")},
		{"go", d.Go + " " + d.Platform},
		{"kernels", d.Kernels},
		{"linked", d.linking()},
	}
	if d.Modified {
		rows[0][1] += ", with changes"
	}
	terminal.Table(w, rows...)
}

func (d versionDocument) linking() string {
	if d.Static {
		return "statically"
	}
	return "with the system's C library"
}

// kernelsHere is the set of kernels that the engine uses on this machine.
func kernelsHere() string {
	set, err := kernel.Choose()
	if err != nil {
		return err.Error()
	}
	return set.Name
}

func versionCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version, the build and the kernels of the engine",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
				return err
			}
			return showVersion(u)
		},
	}
}

func showVersion(u *ui) error {
	d := self()
	return u.Show(d, d.Print)
}

func runtimeCommand(*ui) *cli.Command {
	return &cli.Command{
		Name: "runtime", Usage: "serve actions inside a container (the image's entry point)", Hidden: true,
		Flags: []cli.Flag{&cli.StringFlag{
			Name: "listen", Value: serve.DefaultAddress,
			Usage: "`ADDRESS`: :PORT, tcp:HOST:PORT or unix:/PATH",
		}},
		Action: withoutOperands(func(c *cli.Context) error {
			return service.ServeAt(c.Context, c.String("listen"))
		}),
	}
}
