package cli

import (
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/terminal"
)

// aside is the commands that are about this machine or this program alone, whatever context is the current one.
var aside = []string{
	"context", "version", "help", "runtime", "platform", "simulate", "lab", "explain",
}

// changing is the commands that change something where the context leads, with those of their subcommands that do; none
// for a command that has none.
var changing = map[string][]string{
	"quickstart": nil, "submit": nil, "batch": nil, "resume": nil, "infer": nil, "serve": nil, "doctor": nil,
	"verify": nil,
	"job":    {"cancel", "pause", "stop"}, "dataset": {"add", "remove"}, "tenant": {"create", "delete", "quota", "token"},
	"deploy": {"up", "down"}, "history": {"repair"},
}

// EnterContext has a command work with the cluster of the context that was chosen: what neither a flag nor a variable
// of the environment says is taken from it. A command that changes something says which context that is in. folder is
// the home folder, which need not be there.
func EnterContext(c *cli.Context, u *terminal.UI, folder string) error {
	if slices.Contains(aside, c.Args().First()) {
		return nil
	}
	by := client.Chosen{Home: folder, Server: c.String("server"), Context: c.String("context")}
	name, at, err := client.ChooseCluster(by)
	if err != nil || name == "" {
		return err
	}
	if at != nil {
		if err := takeAll(c, at.Settings()); err != nil {
			return err
		}
	}
	if changes(c.Args().Slice()) && u.Format == "table" {
		u.Say("in context %s", name)
	}
	return nil
}

// takeAll takes what nobody said, and a secret only where its address is the context's own: no other server gets it.
func takeAll(c *cli.Context, all []client.Setting) error {
	own := map[string]string{}
	for _, s := range all {
		if s.Flag != "" {
			own[s.Flag] = s.Value
		}
		if s.Address != "" && c.String(s.Address) != own[s.Address] {
			continue
		}
		if err := take(c, s); err != nil {
			return err
		}
	}
	return nil
}

// take sets what nobody said. It goes into the environment too: secrets are looked for there, and a record keeps the
// context's name in place of what stands in the environment.
func take(c *cli.Context, s client.Setting) error {
	if s.Value == "" || s.Flag != "" && c.IsSet(s.Flag) || os.Getenv(s.Variable) != "" {
		return nil
	}
	if err := os.Setenv(s.Variable, s.Value); err != nil {
		return err
	}
	if s.Flag == "" {
		return nil
	}
	return c.Set(s.Flag, s.Value)
}

func changes(args []string) bool {
	if len(args) == 0 {
		return false
	}
	below, known := changing[args[0]]
	return known && (below == nil || len(args) > 1 && slices.Contains(below, args[1]))
}
