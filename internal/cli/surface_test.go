package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/internal/test/golden"
)

// testdata/help.golden is every command with its names, operands and flags, hidden ones too, and every exit code. It
// has no sentences: docs/reference/cli.md holds those. go test ./internal/cli -run TestTheSurfaceOfTheCommandLine
// -update
func TestTheSurfaceOfTheCommandLine(t *testing.T) {
	t.Setenv("DISDEL_HOME", "") // what a variable says is not the default
	app := newApp(terminal.New(nil, nil, nil))
	var out strings.Builder
	fmt.Fprintln(&out, "disdel")
	printFlags(&out, app.Flags)
	writeCommands(&out, "disdel", app.Commands)
	writeExitCodes(&out)
	golden.Same(t, "testdata/help.golden", out.String(), *update)
}

func writeCommands(out *strings.Builder, above string, list []*cli.Command) {
	for _, c := range list {
		path := above + " " + c.Name
		parts := append([]string{path + hidden(c.Hidden), strings.TrimSpace(c.ArgsUsage)}, prefixed("alias ", c.Aliases)...)
		fmt.Fprintln(out, strings.Join(terminal.NonEmpty(parts...), " | "))
		printFlags(out, c.Flags)
		writeCommands(out, path, c.Subcommands)
	}
}

func printFlags(out *strings.Builder, flags []cli.Flag) {
	for _, f := range flags {
		d, documented := f.(cli.DocGenerationFlag)
		if !documented {
			fmt.Fprintf(out, "  %s %T\n", f.Names(), f)
			continue
		}
		visible, _ := f.(cli.VisibleFlag)
		fmt.Fprintf(out, "  --%s %s%s\n", strings.Join(f.Names(), ", "), strings.TrimPrefix(fmt.Sprintf("%T", f), "*cli."),
			hidden(visible != nil && !visible.IsVisible()))
		if d.TakesValue() && d.GetDefaultText() != "" {
			fmt.Fprintf(out, "    default %s\n", d.GetDefaultText())
		}
		if names := d.GetEnvVars(); len(names) > 0 {
			fmt.Fprintf(out, "    variable %s\n", strings.Join(names, ", "))
		}
	}
}

func hidden(is bool) string {
	if is {
		return " (hidden)"
	}
	return ""
}

func prefixed(prefix string, list []string) []string {
	out := slices.Clone(list)
	for i := range out {
		out[i] = prefix + out[i]
	}
	return out
}

// writeExitCodes writes the codes that are documented, and the code of every kind of error.
func writeExitCodes(out *strings.Builder) {
	out.WriteString("exit codes:")
	for _, c := range terminal.ExitCodes {
		fmt.Fprintf(out, " %d", c.Code)
	}
	out.WriteString("\n")
	ctx := context.Background()
	for k := disdel.UnknownKind; !strings.HasPrefix(k.String(), "kind("); k++ {
		fmt.Fprintf(out, "  %s %d\n", k, terminal.ExitCode(ctx, &disdel.Error{Kind: k}))
	}
	interrupted, cancel := context.WithCancelCause(ctx)
	cancel(terminal.ErrInterrupted)
	fmt.Fprintf(out, "  a pipe that nobody reads %d\n  a paused job %d\n  a difference %d\n  an interrupt %d\n",
		terminal.ExitCode(ctx, terminal.ErrPipe), terminal.ExitCode(ctx, terminal.ErrPaused),
		terminal.ExitCode(ctx, terminal.ErrDiffers), terminal.ExitCode(interrupted, context.Canceled))
}
