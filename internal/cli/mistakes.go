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
	"github.com/disdel/disdel/internal/spelling"
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
	if c.Command != nil && c.Command.HelpName != "" && c.Command.Name != "disdel" {
		name, flags = c.Command.HelpName, append(slices.Clone(c.Command.Flags), flags...)
	}
	out := &disdel.Error{Kind: disdel.Invalid, Msg: err.Error(), Hint: name + " --help"}
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		out.Msg = fmt.Sprintf("%s has no flag %s", name, dashed(m[1]))
		out.Hint = cmp.Or(meantFlag(flags, m[1], valueIn(args, m[1])), out.Hint)
	} else if m := badValue.FindStringSubmatch(err.Error()); m != nil {
		out.Msg = fmt.Sprintf("%s takes no %s", dashed(m[2]), m[1])
		out.Hint = cmp.Or(wantedValue(flags, m[2]), out.Hint)
	} else if m := noValue.FindStringSubmatch(err.Error()); m != nil {
		out.Msg = fmt.Sprintf("%s needs a value", dashed(m[1]))
		out.Hint = cmp.Or(wantedValue(flags, m[1]), out.Hint)
	}
	return out
}

// missingFlag is the error for a flag that a command needs.
func missingFlag(c *cli.Context, flag string) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Msg: fmt.Sprintf("%s needs %s", c.Command.HelpName, flag),
		Hint: fmt.Sprintf("%s %s %s", c.Command.HelpName, c.Command.ArgsUsage, flag),
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
		if of, ok := f.(cli.DocGenerationFlag); ok {
			return dashed(name) + ": " + strings.ReplaceAll(of.GetUsage(), "`", "")
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
}

// foreignCommands are hints for commands of other programs that disdel does not have.
var foreignCommands = map[string]string{
	"ls":     "disdel history, disdel dataset list or disdel model list",
	"list":   "disdel history, disdel dataset list or disdel model list",
	"delete": "disdel dataset remove NAME", "rm": "disdel dataset remove NAME", "remove": "disdel dataset remove NAME",
	"stop":   "disdel job cancel JOB; disdel resume JOB takes it up again",
	"cancel": "disdel job cancel JOB; disdel resume JOB takes it up again",
	"train":  "disdel submit FILE", "run": "disdel submit FILE",
	"logs": "disdel job logs JOB", "jobs": "disdel history", "predict": "disdel infer MODEL --input FILE",
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
	if near := spelling.Closest(name, names); near != "" {
		return above + " " + near
	}
	if above == "disdel" {
		return foreignCommands[name]
	}
	return ""
}

// checkOperands returns Invalid unless the number of operands is between least and most.
func checkOperands(c *cli.Context, least, most int) error {
	if n := c.NArg(); n < least || n > most {
		return &disdel.Error{
			Kind: disdel.Invalid,
			Msg:  fmt.Sprintf("%s takes %s, not %d", c.Command.HelpName, operandsText(least, most), n),
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

func operandsText(least, most int) string {
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

// eachCommand calls f for every command of the tree, after setting its full name.
func eachCommand(above string, list []*cli.Command, f func(*cli.Command)) {
	for _, c := range list {
		c.HelpName = above + " " + c.Name
		f(c)
		eachCommand(c.HelpName, c.Subcommands, f)
	}
}
