package cli

import (
	"fmt"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"
)

// Manual is every command of a program as a page of man, made of what --help says.
func Manual(app *cli.App) []byte {
	_, text, _ := strings.Cut(Reference(app), "\n\n")
	head := fmt.Sprintf("%% %s(1)\n\n# NAME\n\n%s - %s\n\n# COMMANDS\n\n", app.Name, app.Name, app.Usage)
	return md2man.Render([]byte(head + text))
}
