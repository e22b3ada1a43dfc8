package cli

import (
	"strings"

	"github.com/urfave/cli/v2"
)

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
