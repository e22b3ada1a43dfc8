package main

import (
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/jobtext"
)

func contextCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "context", Usage: "say which server commands go to",
		Description: "   disdel context add lab --server https://train.example:7070 --token-file token\n" +
			"   disdel context use lab\n   disdel context use local    # no server: in this process",
		Subcommands: []*cli.Command{contextAdd(u), contextUse(u), contextList(u), contextRemove(u)},
		Action:      commandline.NeedSubcommand,
	}
}

// inContexts runs f with the servers that the home knows, and shows what it came to.
func inContexts(c *cli.Context, u *ui, f func(known *client.Contexts) error) error {
	dir, err := home(c)
	if err != nil {
		return err
	}
	known, err := client.ReadContexts(dir)
	if err == nil {
		err = f(&known)
	}
	if err == nil {
		err = known.Write(dir)
	}
	if err != nil {
		return err
	}
	return showContexts(u, known)
}

// showContexts shows no token.
func showContexts(u *ui, known client.Contexts) error {
	doc := jobtext.Contexts{Current: known.Current, Contexts: []jobtext.Context{}}
	for _, one := range known.List {
		doc.Contexts = append(doc.Contexts, jobtext.Context{Name: one.Name, Server: one.Server, Token: one.Token != ""})
	}
	return u.Show(doc, func(w io.Writer) { jobtext.PrintContexts(w, doc) })
}

func contextAdd(u *ui) *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "keep a server under a name, with the token for it", ArgsUsage: "NAME",
		Description: "The address is that of --server. The token is read from --token-file, - being standard input, or\n" +
			"from DISDEL_TOKEN, and kept in the home folder for nobody else to read.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "token-file", TakesFile: true, Usage: "`FILE` with the token"},
			&cli.BoolFlag{Name: "insecure", Usage: "send the token to another machine although nothing is encrypted"},
		},
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			if c.String("server") == "" {
				return commandline.NeedsFlag(c, "--server URL")
			}
			one := client.Context{
				Name: c.Args().First(), Server: c.String("server"), Token: os.Getenv(tokenVariable), Clear: c.Bool("insecure"),
			}
			if file := c.String("token-file"); file != "" {
				text, err := readInput(u, file)
				if err != nil {
					return err
				}
				one.Token = strings.TrimSpace(string(text))
			}
			return inContexts(c, u, func(known *client.Contexts) error { return known.Add(one) })
		},
	}
}

func contextUse(u *ui) *cli.Command {
	return &cli.Command{
		Name: "use", Usage: "have commands go to a server from now on", ArgsUsage: "NAME",
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			return inContexts(c, u, func(known *client.Contexts) error {
				if known.Current = c.Args().First(); known.Current == client.InProcess {
					known.Current = ""
					return nil
				}
				_, err := known.Find(known.Current)
				return err
			})
		},
	}
}

func contextList(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the servers that this home knows",
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 0, 0); err != nil {
				return err
			}
			dir, err := home(c)
			if err != nil {
				return err
			}
			known, err := client.ReadContexts(dir)
			if err != nil {
				return err
			}
			return showContexts(u, known)
		},
	}
}

func contextRemove(u *ui) *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "forget a server and its token", ArgsUsage: "NAME",
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			return inContexts(c, u, func(known *client.Contexts) error { return known.Remove(c.Args().First()) })
		},
	}
}

// tokenVariable holds the token for a server.
const tokenVariable = "DISDEL_TOKEN"

// server is the server that the command line and the home's contexts mean, nil for none.
func server(c *cli.Context) (*client.Server, error) {
	dir, err := home(c)
	if err != nil {
		return nil, err
	}
	return client.Choose(client.Chosen{
		Home: dir, Server: c.String("server"), Context: c.String("context"), Token: os.Getenv(tokenVariable),
	})
}
