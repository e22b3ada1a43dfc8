package cli

import (
	"errors"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// ErrWantsHelp is returned by a command that was given nothing to do; run prints its help then.
var ErrWantsHelp = errors.New("wants help")

// NeedSubcommand answers a command that only groups others.
func NeedSubcommand(c *cli.Context) error {
	if c.NArg() == 0 {
		return ErrWantsHelp
	}
	return UnknownCommand(c.Command.Subcommands, c.Command.HelpName, c.Args().First())
}

// Help finds the command that names lead to, and returns what to show of it: for programs, and for people. No names:
// the whole program.
func Help(app *cli.App, names []string) (shown any, print func(w io.Writer), err error) {
	if len(names) == 0 {
		return describeApp(app), func(w io.Writer) { cli.HelpPrinter(w, appHelp, app) }, nil
	}
	commands, above := app.Commands, "disdel"
	var found *cli.Command
	for _, name := range names {
		c := commandOf(commands, name)
		if c == nil {
			return nil, nil, UnknownCommand(commands, above, name)
		}
		found, commands, above = c, c.Subcommands, c.HelpName
	}
	return describeCommand(found), func(w io.Writer) { cli.HelpPrinter(w, commandHelp, found) }, nil
}

// HelpWanted is the path whose help a command line asks for with --help. An operand is no command of its own, but
// behind a command that only groups others, or behind none, it was meant as one.
func (s *Line) HelpWanted(app *cli.App) []string {
	commands := app.Commands
	for _, name := range s.Path {
		commands = commandOf(commands, name).Subcommands
	}
	if len(commands) > 0 && len(s.Operands) > 0 {
		return append(s.Path, s.Operands[0])
	}
	return s.Path
}

// document is a command as -o json shows it.
type document struct {
	Name        string         `json:"name"` // as it is typed: disdel dataset add
	Usage       string         `json:"usage"`
	Operands    string         `json:"operands,omitempty"`
	Description string         `json:"description,omitempty"`
	Flags       []flagDocument `json:"flags,omitempty"`
	Commands    []document     `json:"commands,omitempty"`
}

type flagDocument struct {
	Names     []string `json:"names"`
	Usage     string   `json:"usage"`
	Default   string   `json:"default,omitempty"`
	Variables []string `json:"variables,omitempty"` // of the environment
	Value     bool     `json:"takesValue"`
}

func describeApp(app *cli.App) document {
	d := document{Name: app.Name, Usage: app.Usage, Description: app.Description, Flags: describeFlags(app.Flags)}
	for _, c := range app.Commands {
		if !c.Hidden {
			d.Commands = append(d.Commands, describeCommand(c))
		}
	}
	return d
}

func describeCommand(c *cli.Command) document {
	d := document{
		Name: c.HelpName, Usage: c.Usage, Operands: c.ArgsUsage, Description: strings.TrimSpace(c.Description),
		Flags: describeFlags(c.Flags),
	}
	for _, sub := range c.Subcommands {
		d.Commands = append(d.Commands, describeCommand(sub))
	}
	return d
}

func describeFlags(flags []cli.Flag) []flagDocument {
	var out []flagDocument
	for _, f := range flags {
		d := flagDocument{Names: f.Names()}
		if of, ok := f.(cli.DocGenerationFlag); ok {
			d.Usage, d.Value, d.Variables = strings.ReplaceAll(of.GetUsage(), "`", ""), of.TakesValue(), of.GetEnvVars()
			if d.Value {
				d.Default = of.GetDefaultText()
			}
		}
		out = append(out, d)
	}
	return out
}

const appHelp = `NAME:
   {{.Name}} - {{.Usage}}

USAGE:
   {{.Name}} [global options] command [options] [operands]

{{.Description}}

COMMANDS:{{range .VisibleCommands}}
   {{join .Names ", "}}{{"\t"}}{{.Usage}}{{end}}

GLOBAL OPTIONS:
   {{range $i, $f := .VisibleFlags}}{{if $i}}
   {{end}}{{$f}}{{end}}
`

const commandHelp = `NAME:
   {{.HelpName}} - {{.Usage}}

USAGE:
   {{if .UsageText}}{{.UsageText}}{{else}}{{.HelpName}}{{if .VisibleFlags}} [options]{{end}}{{if .Subcommands}} COMMAND{{end}} {{.ArgsUsage}}{{end}}
{{if .Description}}
{{.Description}}
{{end}}{{if .Subcommands}}
COMMANDS:{{range .VisibleCommands}}
   {{join .Names ", "}}{{"\t"}}{{.Usage}}{{end}}
{{end}}{{if .VisibleFlags}}
OPTIONS:
   {{range $i, $f := .VisibleFlags}}{{if $i}}
   {{end}}{{$f}}{{end}}
{{end}}
Global options (-o json, --home, --redis ...): disdel --help
`
