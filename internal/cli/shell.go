package cli

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/terminal"
)

// CompletionCommand prints what a shell completes words by.
func CompletionCommand(u *terminal.UI) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print the completion script of a shell",
		ArgsUsage: "bash|zsh|fish|powershell",
		Description: "   source <(disdel completion bash)\n" +
			"   disdel completion fish > ~/.config/fish/completions/disdel.fish",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			text, err := Script(c.Args().First())
			if err != nil {
				return err
			}
			return showText(u, text)
		},
	}
}

// CompleteCommand is what those scripts ask.
func CompleteCommand(u *terminal.UI) *cli.Command {
	return &cli.Command{
		Name: Complete, Hidden: true, Usage: "print the completions of a word",
		Action: func(c *cli.Context) error {
			for _, found := range Candidates(c.App, c.Args().Slice()) {
				fmt.Fprintf(u.Out, "%s\t%s\n", found.Word, found.Meaning)
			}
			return nil
		},
	}
}

// ManualCommand prints the page of man.
func ManualCommand(u *terminal.UI) *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print the man page of all commands", Description: "   disdel man | man -l -",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 0, 0); err != nil {
				return err
			}
			return showText(u, string(Manual(c.App)))
		},
	}
}

// textDocument is a text of its own with -o json.
type textDocument struct {
	Text string `json:"text"`
}

// showText prints a text of its own.
func showText(u *terminal.UI, text string) error {
	return u.Show(textDocument{text}, func(w io.Writer) {
		fmt.Fprint(w, text)
	})
}
