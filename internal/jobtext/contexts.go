package jobtext

import (
	"fmt"
	"io"

	"github.com/disdel/disdel/internal/terminal"
)

// Contexts is the servers that a home knows, as -o json shows them.
type Contexts struct {
	Current  string    `json:"current"` // "": none
	Contexts []Context `json:"contexts"`
}

// Context is a server under a name.
type Context struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	Token  bool   `json:"token"` // there is one
}

// PrintContexts is a table of servers, with a star before the one that commands go to.
func PrintContexts(w io.Writer, c Contexts) {
	if len(c.Contexts) == 0 {
		fmt.Fprintln(w, "no servers yet: disdel context add NAME --server URL")
		return
	}
	rows := [][]string{{"", "NAME", "SERVER", "TOKEN"}}
	for _, one := range c.Contexts {
		star, token := " ", "no"
		if one.Name == c.Current {
			star = "*"
		}
		if one.Token {
			token = "yes"
		}
		rows = append(rows, []string{star, one.Name, one.Server, token})
	}
	terminal.Table(w, rows...)
}
