package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/internal/test/golden"
)

// referencePages divide the reference into pages that are not too long. What is on none of them is in cli.md.
var referencePages = []struct {
	file, title string
	commands    []string
}{
	{"cli-jobs.md", "Commands that run jobs", []string{
		"quickstart", "submit", "batch", "resume", "estimate", "validate", "explain", "init", "example",
	}},
	{"cli-history.md", "Commands that show and manage jobs", []string{"jobs", "report", "compare", "export"}},
	{"cli-data.md", "Commands for data sets and models", []string{"dataset", "model", "infer", "evaluate", "du", "prune"}},
	{"cli-platforms.md", "Commands for platforms and servers", []string{"platform", "serve", "ui", "tenant"}},
	{"cli-clusters.md", "Commands for contexts and clusters", []string{"context", "deploy", "doctor", "verify"}},
}

// reference returns the pages of docs/reference that describe the commands.
func reference() map[string]string {
	head, rest, _ := strings.Cut(referencePage(newApp(terminal.New(nil, nil, nil))), "\n## ")
	pages := map[string]string{}
	for _, p := range referencePages {
		pages[p.file] = "# " + p.title + "\n\nMade from the program's help. Global options and all other commands are in " +
			"[commands](cli.md).\n\n"
	}
	list, texts := "", map[string]string{}
	for section := range strings.SplitSeq(rest, "\n## ") {
		title, _, _ := strings.Cut(section, "\n")
		file := "cli.md"
		words := strings.Fields(title + " .") // disdel COMMAND ...
		for _, p := range referencePages {
			if slices.Contains(p.commands, words[1]) {
				file = p.file
			}
		}
		anchor := strings.ToLower(title)
		for _, sign := range "`[]|.:/<>=" {
			anchor = strings.ReplaceAll(anchor, string(sign), "")
		}
		anchor = "#" + strings.ReplaceAll(anchor, " ", "-")
		texts[file] += "\n## " + strings.TrimSuffix(section, "\n") + "\n"
		if file == "cli.md" {
			list += fmt.Sprintf("- [%s](%s)\n", bare(title), anchor)
			continue
		}
		list += fmt.Sprintf("- [%s](%s%s)\n", bare(title), file, anchor)
		pages[file] += fmt.Sprintf("- [%s](%s)\n", bare(title), anchor)
	}
	pages["cli.md"] = head + "\n" + list
	for file, text := range texts {
		pages[file] += text
	}
	return pages
}

// bare is a command without its operands.
func bare(title string) string {
	name, _, _ := strings.Cut(title, " `")
	return name
}

// The pages are what the program says of itself: go test ./internal/cli -run TestTheReferenceIsCurrent -update
func TestTheReferenceIsCurrent(t *testing.T) {
	t.Setenv("DISDEL_HOME", "") // what a variable says is not the default
	for file, want := range reference() {
		golden.Same(t, filepath.Join("..", "..", "docs", "reference", file), want, *update)
	}
}

// The exit codes of docs/reference/failures.md are the program's: go test ./internal/cli -run TestTheExitCodes -update
func TestTheExitCodesOfTheReferenceAreCurrent(t *testing.T) {
	kinds := map[int][]string{}
	for kind := disdel.UnknownKind; kind <= disdel.NoSpace; kind++ {
		code := terminal.ExitCode(context.Background(), &disdel.Error{Kind: kind})
		kinds[code] = append(kinds[code], "`"+kind.String()+"`")
	}
	var table strings.Builder
	table.WriteString("| code | meaning | kinds of error |\n|---|---|---|\n")
	for _, c := range terminal.ExitCodes {
		fmt.Fprintf(&table, "| %d | %s | %s |\n", c.Code, c.Meaning, strings.Join(kinds[c.Code], ", "))
	}
	golden.Block(t, filepath.Join("..", "..", "docs", "reference", "failures.md"), "exit codes", table.String(), *update)
}
