package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
)

// repeatedFlag is a flag that a later command about a job needs too.
type repeatedFlag struct {
	name, variable string
	path, address  bool
}

// repeated is the flags that a later command about the job needs, too, with the variables that stand for them. Flags
// that only change the output are not among them. --set and --backend are kept as settings.
var repeated = []repeatedFlag{
	{name: "home", variable: "DISDEL_HOME", path: true},
	{name: "server", variable: "DISDEL_SERVER", address: true},
	{name: "context", variable: "DISDEL_CONTEXT"},
	{name: "storage", variable: "DISDEL_STORAGE", address: true},
	{name: "redis", variable: "DISDEL_REDIS", address: true},
	{name: "redis-prefix", variable: "DISDEL_REDIS_PREFIX"},
	{name: "redis-ca", variable: "DISDEL_REDIS_CA", path: true},
	{name: "couchdb", variable: "DISDEL_COUCHDB", address: true},
	{name: "apihost", variable: "DISDEL_APIHOST", address: true},
	{name: "image", variable: "DISDEL_IMAGE"},
	{name: "pool-memory", variable: "DISDEL_POOL_MEMORY"},
	{name: "gpus", variable: "DISDEL_GPUS"},
	{name: "gpu-memory", variable: "DISDEL_GPU_MEMORY"},
	{name: "action-memory", variable: "DISDEL_ACTION_MEMORY"},
	{name: "action-timeout", variable: "DISDEL_ACTION_TIMEOUT"},
	{name: "action", path: true},
	{name: "estimator"},
	{name: "risk"},
}

// Origin is how the command line submits a job with some fields of its file set, for its record. What comes from the
// environment is left there.
func Origin(c *cli.Context, sets []string) *disdel.Origin {
	o := &disdel.Origin{Command: c.Command.Name, Sets: sets, Options: given(c)}
	if file := c.Args().First(); file != "" && file != "-" {
		o.File = wholePath(file)
	}
	return o
}

// given is the flags that a later command about the job needs, with their values. It leaves out values that the
// environment or a context gives, too.
func given(c *cli.Context) (out []disdel.Option) {
	for _, f := range repeated {
		value, ok := f.shown(c)
		if ok && (f.variable == "" || os.Getenv(f.variable) != fmt.Sprint(c.Value(f.name))) {
			out = append(out, disdel.Option{Name: f.name, Value: value})
		}
	}
	return out
}

// shown is a flag's value as another command takes it, without a password; false where nobody set it.
func (f repeatedFlag) shown(c *cli.Context) (string, bool) {
	value, ok := valueOf(c, f.name)
	switch {
	case f.path && ok:
		value = wholePath(value)
	case f.address && ok:
		value = addresses.WithoutPasswords(value)
	}
	return value, ok
}

// valueOf is the value of a flag that was set, as it was written; false where the command has no such flag.
func valueOf(c *cli.Context, name string) (string, bool) {
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

// Shortened names the job's file as it is seen from the current folder, where it lies below that.
func Shortened(r *disdel.Record) {
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

// Environment is the environment of another process of this program that is to work where this command does, whatever
// was said by flags, by variables or by a context. Its secrets are those of this process's own environment.
func Environment(c *cli.Context, home string) []string {
	env := append(os.Environ(), "DISDEL_HOME="+home, "DISDEL_CONTEXT=local")
	for _, f := range repeated {
		if f.variable == "" || f.name == "home" || f.name == "context" {
			continue
		}
		if value, ok := valueOf(c, f.name); ok {
			env = append(env, f.variable+"="+value)
		}
	}
	return env
}
