package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"
)

// errWantsHelp means that a command got nothing to do; carryOut then prints its help.
var errWantsHelp = errors.New("wants help")

// needSubcommand is the action of a command that only groups others.
func needSubcommand(c *cli.Context) error {
	if c.NArg() == 0 {
		return errWantsHelp
	}
	return unknownCommand(c.Command.Subcommands, c.Command.HelpName, c.Args().First())
}

// helpFor finds the command with these names, or the whole program without names. It returns the document for programs
// and the printer for people.
func helpFor(app *cli.App, names []string) (shown any, print func(w io.Writer), err error) {
	if len(names) == 0 {
		return describeApp(app), func(w io.Writer) { cli.HelpPrinter(w, appHelp, groupsOf(app)) }, nil
	}
	names = expandShortcut(app.Commands, names)
	commands, above := app.Commands, "disdel"
	var found *cli.Command
	for _, name := range names {
		c := commandOf(commands, name)
		if c == nil {
			return nil, nil, unknownCommand(commands, above, name)
		}
		found, commands, above = c, c.Subcommands, c.HelpName
	}
	return describeCommand(found), func(w io.Writer) {
		cli.HelpPrinterCustom(w, commandHelp, found, map[string]any{"flagLines": flagLines})
	}, nil
}

// helpPath is the command whose help --help asks for. An operand after a group of commands counts as a command.
func (s *commandLine) helpPath(app *cli.App) []string {
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
	Name        string         `json:"name"`            // as it is typed: disdel dataset add
	Group       string         `json:"group,omitempty"` // of a command without another one above it
	Usage       string         `json:"usage"`
	Aliases     []string       `json:"aliases,omitempty"` // other names of the last word
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
		Name: c.HelpName, Group: c.Category, Aliases: c.Aliases, Usage: c.Usage, Operands: c.ArgsUsage,
		Description: strings.TrimSpace(c.Description), Flags: describeFlags(c.Flags),
	}
	for _, sub := range c.Subcommands {
		if !sub.Hidden {
			d.Commands = append(d.Commands, describeCommand(sub))
		}
	}
	return d
}

func describeFlags(flags []cli.Flag) []flagDocument {
	var out []flagDocument
	for _, f := range flags {
		if visible, ok := f.(cli.VisibleFlag); ok && !visible.IsVisible() {
			continue
		}
		d := flagDocument{Names: f.Names()}
		if documented, ok := f.(cli.DocGenerationFlag); ok {
			d.Usage = strings.ReplaceAll(documented.GetUsage(), "`", "")
			d.Value, d.Variables = documented.TakesValue(), documented.GetEnvVars()
			if d.Value {
				d.Default = documented.GetDefaultText()
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
{{range .Groups}}
{{.Title}}:{{range .Commands}}
   {{.Name}}{{"\t"}}{{.Usage}}{{end}}
{{end}}
MORE COMMANDS:{{range .More}}
   {{.Title}}{{"\t"}}{{range $i, $c := .Commands}}{{if $i}}, {{end}}{{.Name}}{{end}}{{end}}

GLOBAL OPTIONS:
   {{range $i, $f := .VisibleFlags}}{{if $i}}
   {{end}}{{$f}}{{end}}
`

const commandHelp = `NAME:
   {{.HelpName}} - {{.Usage}}

USAGE:
   {{if .UsageText}}{{.UsageText}}{{else}}{{.HelpName}}{{if .VisibleFlags}} [options]{{end}}{{if .Subcommands}} {{if .VisibleFlags}}[COMMAND]{{else}}COMMAND{{end}}{{end}} {{.ArgsUsage}}{{end}}
{{if .Description}}
{{.Description}}
{{end}}{{if .Aliases}}
Other names: {{join .Aliases ", "}}
{{end}}{{if .Subcommands}}
COMMANDS:{{range .VisibleCommands}}
   {{.Name}}{{if .ArgsUsage}} {{.ArgsUsage}}{{end}}{{"\t"}}{{.Usage}}{{end}}
{{with flagLines .}}
OPTIONS OF COMMANDS:{{range .}}
   {{.}}{{end}}
{{end}}{{end}}{{if .VisibleFlags}}
OPTIONS:
   {{range $i, $f := .VisibleFlags}}{{if $i}}
   {{end}}{{$f}}{{end}}
{{end}}
Global options (-o json, --home, --redis ...): disdel --help
`

// referencePage is all commands and flags as Markdown, from the same source as --help.
func referencePage(app *cli.App) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Commands\n\nMade of what `%s --help` says; a test holds it to that. "+
		"Flags may stand before or after operands.\n",
		app.Name)
	d := describeApp(app)
	out.WriteString("\n## Global options\n\n")
	writeFlags(&out, d.Flags)
	for _, c := range d.Commands {
		writeCommand(&out, c, "##")
	}
	return out.String()
}

func writeCommand(out *strings.Builder, c document, level string) {
	fmt.Fprintf(out, "\n%s %s\n\n%s.\n", level, strings.TrimSpace(c.Name+" "+code(c.Operands)), sentence(c.Usage))
	if c.Description != "" {
		fmt.Fprintf(out, "\n```\n%s\n```\n", unindented(c.Description))
	}
	if len(c.Aliases) > 0 {
		fmt.Fprintf(out, "\nOther names: `%s`.\n", strings.Join(c.Aliases, "`, `"))
	}
	if len(c.Flags) > 0 {
		out.WriteString("\n")
		writeFlags(out, c.Flags)
	}
	for _, sub := range c.Commands {
		writeCommand(out, sub, "###")
	}
}

func code(operands string) string {
	if operands = strings.TrimSpace(operands); operands == "" {
		return ""
	}
	return "`" + operands + "`"
}

func sentence(usage string) string {
	return strings.ToUpper(usage[:1]) + usage[1:]
}

// unindented removes the indent that terminals get.
func unindented(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "   ")
	}
	return strings.Join(lines, "\n")
}

func writeFlags(out *strings.Builder, flags []flagDocument) {
	out.WriteString("| flag | meaning | default | variable |\n|---|---|---|---|\n")
	for _, f := range flags {
		var names []string
		for _, name := range f.Names {
			names = append(names, "`"+dashed(name)+"`")
		}
		var variables []string
		for _, name := range f.Variables {
			variables = append(variables, "`"+name+"`")
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", strings.Join(names, ", "), cell(f.Usage),
			cell(strings.Trim(f.Default, `"`)),
			strings.Join(variables, ", "))
	}
}

// cell escapes a text for a cell of a Markdown table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// manualPage is all commands as a man page, from the same source as --help.
func manualPage(app *cli.App) []byte {
	_, text, _ := strings.Cut(referencePage(app), "\n\n")
	head := fmt.Sprintf("%% %s(1)\n\n# NAME\n\n%s - %s\n\n# COMMANDS\n\n", app.Name, app.Name, app.Usage)
	return md2man.Render([]byte(head + text))
}

// commandGroups are the groups of commands in `disdel --help`. Help explains the commands of top, and only names those
// of more.
var commandGroups = []struct {
	title     string
	top, more []string
}{
	{
		"Train",
		[]string{"quickstart", "init", "submit", "batch", "resume", "explain"},
		[]string{"example", "estimate", "validate"},
	},
	{"Look", []string{"jobs", "report", "ui"}, []string{"compare", "export"}},
	{"Data and models", []string{"dataset", "model", "infer", "prune"}, []string{"du", "evaluate"}},
	{"Cluster", []string{"context", "platform", "deploy", "doctor"}, []string{"verify"}},
	{"Server", []string{"serve", "tenant"}, nil},
	{"Research", []string{"lab"}, []string{"simulate"}},
	{"Help", nil, []string{"help", "completion", "man", "version"}},
}

// setGroups gives each command the title of its group.
func setGroups(commands []*cli.Command) {
	for _, g := range commandGroups {
		for _, name := range append(g.top, g.more...) {
			if c := commandOf(commands, name); c != nil {
				c.Category = g.title
			}
		}
	}
}

// helpGroup is a group of commands in the help.
type helpGroup struct {
	Title    string
	Commands []*cli.Command
}

// appGroups is the program as the template appHelp needs it.
type appGroups struct {
	*cli.App
	Groups, More []helpGroup
}

// groupsOf sorts the commands of the program into their groups.
func groupsOf(app *cli.App) appGroups {
	out := appGroups{App: app}
	add := func(to *[]helpGroup, title string, names []string) {
		g := helpGroup{Title: title}
		for _, name := range names {
			if c := commandOf(app.Commands, name); c != nil && !c.Hidden {
				g.Commands = append(g.Commands, c)
			}
		}
		if len(g.Commands) > 0 {
			*to = append(*to, g)
		}
	}
	for _, g := range commandGroups {
		add(&out.Groups, g.title, g.top)
		add(&out.More, g.title, g.more)
	}
	return out
}

// optionColumns is the width of the lines of flagLines, in characters.
const optionColumns = 90

// flagLines are the names of the flags of each subcommand, for the help of the command above them.
func flagLines(above *cli.Command) (lines []string) {
	for _, c := range above.Subcommands {
		line, wide := c.Name+"\t", 0
		for _, f := range describeFlags(c.Flags) {
			name := dashed(f.Names[0])
			if name == "--help" || c.Hidden {
				continue
			}
			if wide += len(name) + 1; wide > optionColumns {
				lines, line, wide = append(lines, strings.TrimSuffix(line, " ")), "\t", len(name)
			}
			line += name + " "
		}
		if wide > 0 {
			lines = append(lines, strings.TrimSuffix(line, " "))
		}
	}
	return lines
}
