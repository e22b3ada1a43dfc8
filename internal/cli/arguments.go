package cli

import (
	"maps"
	"strings"

	"github.com/urfave/cli/v2"
)

// flagsFirst moves flags ahead of operands. urfave/cli takes everything after the first operand as operands, so that
// `submit job.yaml -o json` would lose its -o. Global flags move before the command, other flags behind it. Arguments
// after "--" stay.
func flagsFirst(app *cli.App, args []string) []string {
	if len(args) == 0 {
		return args
	}
	s := splitArgs(app, args)
	out := append([]string{args[0]}, s.Globals...)
	out = append(out, s.Path...)
	out = append(out, s.own...)
	if s.dashes {
		out = append(out, "--")
	}
	return append(out, s.Operands...)
}

// splitArgs sorts the arguments of a command line. The first argument is the program.
func splitArgs(app *cli.App, args []string) *commandLine {
	s := &commandLine{global: flagTable(app.Flags)}
	s.split(app.Commands, args[1:])
	return s
}

// commandLine is a command line, sorted into flags, commands and operands.
type commandLine struct {
	global, local                map[string]bool // flag name -> takes a value
	Globals, Path, own, Operands []string
	dashes                       bool
	Help, Version                bool // asked for anywhere, of the command at the end of path
}

func (s *commandLine) split(commands []*cli.Command, args []string) {
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			s.dashes = true
			s.Operands = append(s.Operands, args[1:]...)
			return
		case strings.HasPrefix(arg, "-") && arg != "-":
			args = s.flag(append(s.letters(arg), args[1:]...))
		default:
			if len(s.Path)+len(s.Operands) == 0 {
				args = expandShortcut(commands, args)
				arg = args[0]
			}
			if c := s.command(commands, arg); c != nil {
				s.Path = append(s.Path, arg)
				s.local = mergeTables(s.local, flagTable(c.Flags))
				commands, args = c.Subcommands, args[1:]
				continue
			}
			s.Operands = append(s.Operands, arg)
			args = args[1:]
		}
	}
}

// shortcuts are commands without the word jobs before them, as other programs have them.
var shortcuts = map[string]string{
	"logs": "logs", "watch": "watch", "wait": "wait", "follow": "follow", "cancel": "cancel", "stop": "cancel",
	"pause": "pause", "describe": "show",
}

// expandShortcut replaces a shortcut at the start of the words of a command by the command, unless commands has it.
func expandShortcut(commands []*cli.Command, words []string) []string {
	if name, ok := shortcuts[words[0]]; ok && commandOf(commands, words[0]) == nil {
		return append([]string{"jobs", name}, words[1:]...)
	}
	return words
}

// command finds a command by name before the first operand: in `history show` it is one, a job named show is not.
func (s *commandLine) command(commands []*cli.Command, name string) *cli.Command {
	if len(s.Operands) > 0 {
		return nil
	}
	return commandOf(commands, name)
}

func commandOf(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// letters separates flags of one letter that were typed together: -qo json is -q -o json.
func (s *commandLine) letters(arg string) []string {
	if _, known := s.takes(strings.TrimLeft(arg, "-")); known || strings.HasPrefix(arg, "--") ||
		strings.Contains(arg, "=") {
		return []string{arg}
	}
	var out []string
	for i, letter := range arg[1:] {
		value, known := s.takes(string(letter))
		if !known || value && i < len(arg)-2 {
			return []string{arg}
		}
		out = append(out, "-"+string(letter))
	}
	return out
}

// takes says whether a flag takes a value, and whether the command line knows the flag.
func (s *commandLine) takes(name string) (value, known bool) {
	if value, known = s.local[name]; !known {
		value, known = s.global[name]
	}
	return value, known
}

// flag removes one flag from args, with its value if it has one.
func (s *commandLine) flag(args []string) []string {
	name, _, inline := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
	to, takes := &s.own, s.local[name]
	if _, own := s.local[name]; !own {
		if s.asks(name, inline) {
			return args[1:]
		}
		if value, ok := s.global[name]; ok {
			to, takes = &s.Globals, value
		}
	}
	n := 1
	if takes && !inline && len(args) > 1 {
		n = 2
	}
	*to = append(*to, args[:n]...)
	return args[n:]
}

// asks notes a request for help or the version. The command is known only after all arguments are sorted.
func (s *commandLine) asks(name string, inline bool) bool {
	switch {
	case inline:
		return false
	case name == "help" || name == "h":
		s.Help = true
	case name == "version":
		s.Version = true
	default:
		return false
	}
	return true
}

func flagTable(flags []cli.Flag) map[string]bool {
	out := map[string]bool{}
	for _, f := range flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			out[name] = !isBool
		}
	}
	return out
}

func mergeTables(a, b map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, m := range []map[string]bool{a, b} {
		maps.Copy(out, m)
	}
	return out
}
