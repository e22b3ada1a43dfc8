package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// Reference is every command of a program with its flags, as Markdown. It is made of what --help says.
func Reference(app *cli.App) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Commands\n\nMade of what `%s --help` says; a test holds it to that. Flags may stand before or after operands.\n",
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

// unindented is a description without the indent that terminals get.
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
			names = append(names, "`"+Dashed(name)+"`")
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

// cell is a text that a column of a table can hold.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
