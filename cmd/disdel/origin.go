package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/report"
)

// repeated is the flags that a later command about the job needs too, and the variables that may say the same. Those that only
// choose how it is shown are not among them; --set and --backend are kept as settings.
var repeated = []struct {
	name, variable string
	path, address  bool
}{
	{name: "home", variable: "DISDEL_HOME", path: true},
	{name: "storage", variable: "DISDEL_STORAGE", address: true},
	{name: "redis", variable: "DISDEL_REDIS", address: true},
	{name: "redis-prefix", variable: "DISDEL_REDIS_PREFIX"},
	{name: "redis-ca", variable: "DISDEL_REDIS_CA", path: true},
	{name: "couchdb", variable: "DISDEL_COUCHDB", address: true},
	{name: "apihost", variable: "DISDEL_APIHOST", address: true},
	{name: "image", variable: "DISDEL_IMAGE"},
	{name: "pool-memory", variable: "DISDEL_POOL_MEMORY"},
	{name: "action-memory", variable: "DISDEL_ACTION_MEMORY"},
	{name: "action-timeout", variable: "DISDEL_ACTION_TIMEOUT"},
	{name: "action", path: true},
	{name: "estimator"},
	{name: "risk"},
}

// origin is how the command line submits a job, for its record. What comes from the environment is left there.
func (s *stack) origin() *disdel.Origin {
	c := s.cli
	o := &disdel.Origin{Command: c.Command.Name, Sets: overrides(c), Options: s.options()}
	if file := c.Args().First(); file != "" && file != "-" {
		o.File = wholePath(file)
	}
	return o
}

func (s *stack) options() (out []disdel.Option) {
	for _, f := range repeated {
		value, ok := given(s.cli, f.name)
		if !ok || f.variable != "" && value == os.Getenv(f.variable) {
			continue
		}
		switch {
		case f.path:
			value = wholePath(value)
		case f.address:
			value = withoutPasswords(value)
		}
		out = append(out, disdel.Option{Name: f.name, Value: value})
	}
	return out
}

// given is the value of a flag that was set, as it was written; false where the command has no such flag.
func given(c *cli.Context, name string) (string, bool) {
	if !c.IsSet(name) {
		return "", false
	}
	return fmt.Sprint(c.Value(name)), true
}

func wholePath(name string) string {
	path, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	return path
}

// withoutPasswords is a list of addresses with commas between, none of which has a password.
func withoutPasswords(list string) string {
	parts := strings.Split(list, ",")
	for i, text := range parts {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil {
			parts[i] = ""
			continue
		}
		if _, secret := u.User.Password(); secret {
			u.User = url.User(u.User.Username())
			if u.User.Username() == "" {
				u.User = nil
			}
			parts[i] = u.String()
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ",")
}

// resumed is the origin of a job that is taken up again: what the command line says now counts on.
func (s *stack) resumed(was *disdel.Origin) *disdel.Origin {
	if was == nil {
		return nil
	}
	out := *was
	out.Sets = slices.Concat(was.Sets, overrides(s.cli))
	now := s.options()
	out.Options = slices.DeleteFunc(slices.Clone(was.Options), func(o disdel.Option) bool {
		return slices.ContainsFunc(now, func(n disdel.Option) bool { return n.Name == o.Name })
	})
	out.Options = append(out.Options, now...)
	return &out
}

// shortened names the job's file as it is seen from the current folder, where it lies below that.
func shortened(r *disdel.Record) {
	if r.Origin == nil || r.Origin.File == "" {
		return
	}
	here, err := os.Getwd()
	if err != nil {
		return
	}
	if rel, err := filepath.Rel(here, r.Origin.File); err == nil && filepath.IsLocal(rel) {
		o := *r.Origin
		o.File = rel
		r.Origin = &o
	}
}

// whereRecordsAre is the flags of the command line that say where the history is, as another command takes them.
func (s *stack) whereRecordsAre() string {
	var out strings.Builder
	for _, o := range s.options() {
		if o.Name == "home" || o.Name == "couchdb" {
			out.WriteString(" --" + o.Name + " " + report.Quote(o.Value))
		}
	}
	return out.String()
}
