package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// completeName is the hidden command that shells ask for completions.
const completeName = "__complete"

// candidate is a completion of a word, and its meaning.
type candidate struct{ Word, Meaning string }

// knownValues lists the values of a kind, such as the data sets of the home. See valueKind.
type knownValues func(kind valueKind) []candidate

// candidatesFor are the completions of the last word. Without any, the shell completes file names.
func candidatesFor(app *cli.App, words []string, known knownValues) []candidate {
	if len(words) == 0 {
		words = []string{""}
	}
	if len(words) > 1 {
		words = expandShortcut(app.Commands, words)
	}
	last := words[len(words)-1]
	at, global := describeApp(app), describeApp(app).Flags
	operands := 0
	for i := 0; i < len(words)-1; i++ {
		word := words[i]
		if strings.HasPrefix(word, "-") {
			if f := flagOf(word, at.Flags, global); f != nil && f.Value && !strings.Contains(word, "=") {
				if i == len(words)-2 {
					return matching(known(kindOfFlag(f.Names[0])), last) // without any, a file
				}
				i++
			}
			continue
		}
		if c := commandBelow(app, at, word); c != nil && operands == 0 {
			at = describeCommand(c)
			continue
		}
		operands++
	}
	if strings.HasPrefix(last, "-") {
		var out []candidate
		for _, f := range append(at.Flags, global...) {
			for _, name := range f.Names {
				out = append(out, candidate{dashed(name), f.Usage})
			}
		}
		return matching(out, last)
	}
	var out []candidate
	for _, c := range at.Commands {
		if operands == 0 {
			out = append(out, candidate{ownName(c), c.Usage})
		}
	}
	if operands == 0 || strings.Contains(at.Operands, "...") {
		out = append(out, known(kindOfOperand(at))...)
	}
	return matching(out, last)
}

// matching are the candidates that begin with a word, each once.
func matching(list []candidate, word string) (out []candidate) {
	for _, c := range list {
		out = with(out, c, word)
	}
	return out
}

// with adds a candidate that completes a word, once.
func with(list []candidate, c candidate, word string) []candidate {
	if !strings.HasPrefix(c.Word, word) {
		return list
	}
	for _, known := range list {
		if known.Word == c.Word {
			return list
		}
	}
	return append(list, c)
}

// ownName is the last word of a command's name.
func ownName(c document) string { return c.Name[strings.LastIndex(c.Name, " ")+1:] }

// commandBelow is the command of a name, or of an alias, below another one; nil if there is none.
func commandBelow(app *cli.App, at document, name string) *cli.Command {
	commands := app.Commands
	for _, word := range strings.Fields(at.Name)[1:] {
		commands = commandOf(commands, word).Subcommands
	}
	return commandOf(commands, name)
}

func flagOf(word string, lists ...[]flagDocument) *flagDocument {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, list := range lists {
		for i := range list {
			if slices.Contains(list[i].Names, name) {
				return &list[i]
			}
		}
	}
	return nil
}

// shells are those that completionScript knows.
var shells = []string{"bash", "zsh", "fish", "powershell"}

var scripts = map[string]string{
	"bash": `_disdel() {
  local IFS=$'\n'
  COMPREPLY=($(disdel __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}
complete -o default -F _disdel disdel
`,
	"zsh": `#compdef disdel
_disdel() {
  local -a found
  found=("${(@f)$(disdel __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -z "${found[1]}" ]]; then _files; return; fi
  found=("${(@)found//:/\\:}")
  found=("${(@)found/$'\t'/:}")
  _describe disdel found
}
compdef _disdel disdel
`,
	"fish": `function __disdel_complete
    set -l words (commandline -opc) (commandline -ct)
    disdel __complete -- $words[2..-1] 2>/dev/null
end
complete -c disdel -a '(__disdel_complete)'
`,
	"powershell": `Register-ArgumentCompleter -Native -CommandName disdel -ScriptBlock {
    param($word, $line, $cursor)
    $words = @($line.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
    if ($word -eq '') { $words += '""' }
    disdel __complete -- @words 2>$null | ForEach-Object {
        $parts = $_ -split ` + "\"`t\"" + `, 2
        [System.Management.Automation.CompletionResult]::new($parts[0], $parts[0], 'ParameterValue', $parts[-1])
    }
}
`,
}

// completionScript is the completion script of a shell. It returns Invalid for an unknown shell.
func completionScript(shell string) (string, error) {
	text, ok := scripts[shell]
	if !ok {
		return "", &disdel.Error{
			Kind: disdel.Invalid, Msg: fmt.Sprintf("no shell is known as %q", shell), Hint: "use " + strings.Join(shells, ", "),
		}
	}
	return text, nil
}

// completionCommand prints a completion script.
func completionCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print the completion script of a shell",
		ArgsUsage: "bash|zsh|fish|powershell",
		Description: "   source <(disdel completion bash)\n" +
			"   disdel completion fish > ~/.config/fish/completions/disdel.fish",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			text, err := completionScript(c.Args().First())
			if err != nil {
				return err
			}
			return showText(u, text)
		},
	}
}

// completeCommand answers the completion scripts.
func completeCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: completeName, Hidden: true, Usage: "print the completions of a word",
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			known := func(kind valueKind) []candidate { return valuesHere(c, u, words, kind) }
			for _, found := range candidatesFor(c.App, words, known) {
				fmt.Fprintf(u.Out, "%s\t%s\n", terminal.OneLine(found.Word), terminal.OneLine(found.Meaning))
			}
			return nil
		},
	}
}

// manualCommand prints the man page.
func manualCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print the man page of all commands", Description: "   disdel man | man -l -",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
				return err
			}
			return showText(u, string(manualPage(c.App)))
		},
	}
}

// textDocument is a plain text as -o json shows it.
type textDocument struct {
	Text string `json:"text"`
}

// showText prints a plain text.
func showText(u *ui, text string) error {
	return u.Show(textDocument{text}, func(w io.Writer) {
		fmt.Fprint(w, text)
	})
}
