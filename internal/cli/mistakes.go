package cli

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/spelling"
	"github.com/disdel/disdel/internal/terminal"
)

// What the parser of flags says of a mistake.
var (
	unknownFlag = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)
	badValue    = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([^:]*): (.*)$`)
	noValue     = regexp.MustCompile(`^flag needs an argument: -(.*)$`)
)

// flagMistake explains an error of the flag parser.
func flagMistake(c *cli.Context, err error, args []string) error {
	name, flags := "disdel", c.App.Flags
	if typed := splitArgs(c.App, args); len(typed.Path) == 0 && len(typed.Operands) > 0 {
		return unknownCommand(c.App.Commands, name, typed.Operands[0])
	}
	if c.Command != nil && c.Command.HelpName != "" && c.Command.Name != "disdel" {
		name, flags = c.Command.HelpName, append(slices.Clone(c.Command.Flags), flags...)
	}
	out := &disdel.Error{Kind: disdel.Invalid, Msg: err.Error(), Hint: name + " --help"}
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		out.Msg = fmt.Sprintf("%s has no flag %s", name, dashed(m[1]))
		value := valueIn(args, m[1])
		foreign := strings.ReplaceAll(foreignFlags[name][m[1]], "VALUE", cmp.Or(value, "VALUE"))
		out.Hint = cmp.Or(foreign, meantFlag(flags, m[1], value), out.Hint)
	} else if m := badValue.FindStringSubmatch(err.Error()); m != nil {
		out.Msg = fmt.Sprintf("%s takes no %s", dashed(m[2]), m[1])
		out.Hint = cmp.Or(wantedValue(flags, m[2]), out.Hint)
	} else if m := noValue.FindStringSubmatch(err.Error()); m != nil {
		out.Msg = fmt.Sprintf("%s needs a value", dashed(m[1]))
		out.Hint = cmp.Or(wantedValue(flags, m[1]), out.Hint)
	}
	return out
}

// unknownFormat is the error for a value of -o that is no format. A file is the value of another flag.
func unknownFormat(u *ui, app *cli.App, format string) error {
	out := &disdel.Error{
		Kind: disdel.Invalid, Msg: fmt.Sprintf("there is no output format %q", format),
		Hint: "use " + terminal.FormatNames,
	}
	commands, flags := app.Commands, []cli.Flag(nil)
	for _, name := range splitArgs(app, u.Args).Path {
		c := commandOf(commands, name)
		commands, flags = c.Subcommands, c.Flags
	}
	_, writes := flagTable(flags)["file"]
	switch {
	case writes:
		out.Hint = "-o is the format of what the command prints; name the file with --file " + addresses.Quote(format)
	case strings.ContainsAny(format, "./"):
		out.Hint += "; > " + addresses.Quote(format) + " writes the output to a file"
	}
	return out
}

// missingFlag is the error for a flag that a command needs.
func missingFlag(c *cli.Context, flag string) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Msg: fmt.Sprintf("%s needs %s", c.Command.HelpName, flag),
		Hint: strings.Join(append(strings.Fields(c.Command.HelpName+" "+c.Command.ArgsUsage), flag), " "),
	}
}

// dashed is a flag as people type it.
func dashed(name string) string {
	name = strings.TrimLeft(name, "-")
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// meantFlag is the hint for an unknown flag: a field of the job file that --set reaches, or a flag with a similar name.
func meantFlag(flags []cli.Flag, text, value string) string {
	name := strings.TrimLeft(text, "-")
	var names []string
	for _, f := range flags {
		names = append(names, f.Names()...)
	}
	path, example, exact := jobfile.FieldNamed(name)
	sets := slices.Contains(names, "set") && path != ""
	near := spelling.Closest(name, names)
	switch {
	case len(name) < 2:
		return ""
	case sets && (exact || near == ""):
		return fmt.Sprintf("--set %s=%s", path, cmp.Or(value, example))
	case near != "":
		return "did you mean " + dashed(near) + "?"
	default:
		return ""
	}
}

// valueIn is the value that a command line gives an unknown flag: after = or in the next argument.
func valueIn(args []string, flag string) string {
	for i, arg := range args {
		name, value, inline := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case !strings.HasPrefix(arg, "-") || name != strings.TrimLeft(flag, "-"):
		case inline:
			return value
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			return args[i+1]
		}
	}
	return ""
}

// wantedValue says what a flag takes.
func wantedValue(flags []cli.Flag, name string) string {
	for _, f := range flags {
		if !slices.Contains(f.Names(), strings.TrimLeft(name, "-")) {
			continue
		}
		switch f.(type) {
		case *cli.DurationFlag:
			return "write a time such as 30s, 5m or 2h"
		case *cli.IntFlag, *cli.Int64Flag, *cli.IntSliceFlag:
			return "write a whole number"
		case *cli.BoolFlag:
			return "write " + dashed(name) + " alone"
		}
		if documented, ok := f.(cli.DocGenerationFlag); ok {
			return dashed(name) + ": " + strings.ReplaceAll(documented.GetUsage(), "`", "")
		}
	}
	return ""
}

// foreignWords are the words of other programs for commands of disdel.
var foreignWords = map[string][]string{
	"add":    {"create", "new", "import"},
	"remove": {"rm", "delete", "del"},
	"list":   {"ls"},
	"show":   {"get", "describe", "cat", "info"},
	"up":     {"start", "run"},
	"down":   {"stop", "kill"},
	"delete": {"revoke", "remove", "rm"},
}

// foreignCommands are hints for commands of other programs that disdel does not have.
var foreignCommands = map[string]string{
	"ls":          "disdel jobs, disdel dataset list or disdel model list",
	"get":         "disdel jobs, disdel jobs show JOB, disdel dataset list or disdel model list",
	"delete":      "disdel jobs delete JOB, disdel model remove NAME:vN or disdel dataset remove NAME",
	"rm":          "disdel jobs delete JOB, disdel model remove NAME:vN or disdel dataset remove NAME",
	"remove":      "disdel jobs delete JOB, disdel model remove NAME:vN or disdel dataset remove NAME",
	"kill":        "disdel jobs cancel JOB",
	"train":       "disdel submit FILE",
	"run":         "disdel submit FILE",
	"apply":       "disdel submit FILE",
	"create":      "disdel submit FILE",
	"template":    "disdel example lists job files; disdel init writes one for your data",
	"predict":     "disdel infer MODEL FILE",
	"status":      "disdel jobs, disdel jobs show JOB or disdel platform status",
	"login":       "disdel context add NAME --server URL",
	"auth":        "disdel context add NAME --server URL",
	"config":      "disdel context list; disdel --help lists the global options and their variables",
	"schema":      "disdel explain -o json",
	"clean":       "disdel prune deletes what nothing needs; disdel du shows sizes",
	"gc":          "disdel prune deletes what nothing needs; disdel du shows sizes",
	"df":          "disdel du",
	"rollback":    "disdel model promote NAME:vN",
	"experiments": "disdel jobs",
	"runs":        "disdel jobs",
}

// foreignFlags are hints for flags of other programs, by the command and the flag. VALUE stands for what was typed.
var foreignFlags = map[string]map[string]string{
	"disdel submit": {
		"f": "disdel submit FILE", "file": "disdel submit FILE", "filename": "disdel submit FILE",
		"lr": "--set training.optimizer.adam.learningRate=VALUE", "batch": "--set training.batchSize=VALUE",
	},
	"disdel serve": {"port": "--listen 127.0.0.1:VALUE", "p": "--listen 127.0.0.1:VALUE", "host": "--listen VALUE:7070"},
	"disdel ui":    {"port": "--listen 127.0.0.1:VALUE", "p": "--listen 127.0.0.1:VALUE", "host": "--listen VALUE:7070"},
	"disdel jobs":  {"w": "disdel jobs watch", "watch": "disdel jobs watch", "A": "disdel jobs lists all jobs"},
}

// unknownCommand is the error for an unknown command below another one.
func unknownCommand(commands []*cli.Command, above, name string) error {
	what := fmt.Sprintf("there is no command %q", name)
	if above != "disdel" {
		what = fmt.Sprintf("%s has no command %q", above, name)
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Msg: what,
		Hint: cmp.Or(meantCommand(commands, above, name), above+" --help"),
	}
}

func meantCommand(commands []*cli.Command, above, name string) string {
	var names []string
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	for _, word := range slices.Sorted(maps.Keys(foreignWords)) {
		if slices.Contains(foreignWords[word], name) && slices.Contains(names, word) {
			return above + " " + word
		}
	}
	if hint := foreignCommands[name]; hint != "" && above == "disdel" {
		return hint
	}
	if near := spelling.Closest(name, names); near != "" {
		return above + " " + near
	}
	return ""
}

// checkOperands returns Invalid unless the number of operands is between minimum and maximum.
func checkOperands(c *cli.Context, minimum, maximum int) error {
	if n := c.NArg(); n < minimum || n > maximum {
		return &disdel.Error{
			Kind: disdel.Invalid,
			Msg:  fmt.Sprintf("%s takes %s, not %d", c.Command.HelpName, operandsText(minimum, maximum), n),
			Hint: c.Command.HelpName + " --help",
		}
	}
	return nil
}

// withoutOperands is the action of a command that takes no operand.
func withoutOperands(do cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := checkOperands(c, 0, 0); err != nil {
			return err
		}
		return do(c)
	}
}

func operandsText(minimum, maximum int) string {
	switch {
	case minimum == maximum && maximum == 0:
		return "no operand"
	case minimum == maximum && maximum == 1:
		return "one operand"
	case minimum == maximum:
		return fmt.Sprintf("%d operands", maximum)
	default:
		return fmt.Sprintf("%d to %d operands", minimum, maximum)
	}
}

// eachCommand calls f for every command of the tree, after setting its full name.
func eachCommand(above string, list []*cli.Command, f func(*cli.Command)) {
	for _, c := range list {
		c.HelpName = above + " " + c.Name
		f(c)
		eachCommand(c.HelpName, c.Subcommands, f)
	}
}
