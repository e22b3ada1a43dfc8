package render

import (
	"cmp"
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/tenant"
)

// Contexts is the servers that a home knows, as -o json shows them.
type Contexts struct {
	Current  string    `json:"current"` // "": none
	Contexts []Context `json:"contexts"`
}

// Context is a server under a name, or a cluster.
type Context struct {
	Name    string `json:"name"`
	Server  string `json:"server"`            // "": it is a cluster
	Token   bool   `json:"token"`             // there is one
	APIHost string `json:"apihost,omitempty"` // of a cluster, as what follows
	Key     bool   `json:"key,omitempty"`     // there is one
	Image   string `json:"image,omitempty"`
	Storage string `json:"storage,omitempty"`
	Redis   string `json:"redis,omitempty"`
	CouchDB string `json:"couchdb,omitempty"`
	Keyring bool   `json:"keyring,omitempty"` // its secrets are in the session's keyring
}

// PrintContexts is a table of servers, with a star before the one that commands go to.
func PrintContexts(w io.Writer, c Contexts) {
	if len(c.Contexts) == 0 {
		fmt.Fprintln(w, "no servers yet: disdel context add NAME --server URL, or --apihost URL for a cluster")
		return
	}
	rows := [][]string{{"", "NAME", "SERVER", "TOKEN"}}
	for _, one := range c.Contexts {
		star, token := " ", "no"
		if one.Name == c.Current {
			star = "*"
		}
		switch {
		case one.Keyring:
			token = "keyring"
		case one.Token || one.Key:
			token = "yes"
		}
		rows = append(rows, []string{star, one.Name, cmp.Or(one.Server, one.APIHost), token})
	}
	terminal.Table(w, rows...)
}

// PrintTenants is a table of tenants with their quotas.
func PrintTenants(w io.Writer, all []tenant.Info) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no tenants yet: disdel tenant create NAME")
		return
	}
	rows := [][]string{{"TENANT", "CREATED", "TOKENS", "JOBS", "MEMORY", "DISK", "REDIS", "GB-S"}}
	for _, t := range all {
		rows = append(rows, []string{
			t.Name, t.Created.Local().Format("2006-01-02"), fmt.Sprint(len(t.Tokens)),
			unlessZero(t.Quota.Jobs, "%d"), unlessZero(t.Quota.Memory, "%v"), unlessZero(t.Quota.Disk, "%v"),
			unlessZero(t.Quota.Redis, "%v"), unlessZero(t.Quota.Cost, "%g"),
		})
	}
	terminal.Table(w, rows...)
}

// PrintTokens is a table of the tokens of a tenant.
func PrintTokens(w io.Writer, all []tenant.TokenInfo) {
	rows := [][]string{{"TOKEN", "ROLE", "CREATED", "LAST USED"}}
	for _, t := range all {
		used := "never"
		if !t.Used.IsZero() {
			used = t.Used.Local().Format("2006-01-02 15:04")
		}
		rows = append(rows, []string{t.Label(), string(t.Role), t.Created.Local().Format("2006-01-02 15:04"), used})
	}
	terminal.Table(w, rows...)
}

// unlessZero is a bound, or a dash where there is none.
func unlessZero[T int | disdel.Bytes | float64](v T, format string) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}
