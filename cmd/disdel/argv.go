package main

import (
	"maps"
	"strings"

	"github.com/urfave/cli/v2"
)

// normalize moves flags ahead of operands. urfave/cli stops looking for flags at the first operand and takes the rest as
// operands without a word, so that `submit job.yaml -o json` would lose its -o. Global flags move in front of the command,
// the command's own flags behind it; what follows "--" stays as it is.
func normalize(app *cli.App, args []string) []string {
	if len(args) == 0 {
		return args
	}
	s := sorter{global: flagTable(app.Flags)}
	s.split(app.Commands, args[1:])
	out := append([]string{args[0]}, s.globals...)
	out = append(out, s.path...)
	out = append(out, s.own...)
	if s.dashes {
		out = append(out, "--")
	}
	return append(out, s.operands...)
}

// sorter deals the arguments out.
type sorter struct {
	global, local                map[string]bool // flag name -> takes a value
	globals, path, own, operands []string
	dashes                       bool
}

func (s *sorter) split(commands []*cli.Command, args []string) {
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			s.dashes = true
			s.operands = append(s.operands, args[1:]...)
			return
		case strings.HasPrefix(arg, "-") && arg != "-":
			args = s.flag(args)
		default:
			if c := s.command(commands, arg); c != nil {
				s.path = append(s.path, arg)
				s.local = merge(s.local, flagTable(c.Flags))
				commands, args = c.Subcommands, args[1:]
				continue
			}
			s.operands = append(s.operands, arg)
			args = args[1:]
		}
	}
}

// command finds a command by name while no operand has come: `history show` is one, a job named show is not.
func (s *sorter) command(commands []*cli.Command, name string) *cli.Command {
	if len(s.operands) > 0 {
		return nil
	}
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// flag takes one flag, and its value if it has one, off args.
func (s *sorter) flag(args []string) []string {
	name, _, inline := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
	to, takes := &s.own, s.local[name]
	if _, own := s.local[name]; !own {
		if value, ok := s.global[name]; ok {
			to, takes = &s.globals, value
		}
	}
	n := 1
	if takes && !inline && len(args) > 1 {
		n = 2
	}
	*to = append(*to, args[:n]...)
	return args[n:]
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

func merge(a, b map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, m := range []map[string]bool{a, b} {
		maps.Copy(out, m)
	}
	return out
}
