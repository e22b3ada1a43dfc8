package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/client"
)

// placeOf is the flags that a printed command needs to work at the same place as this one. It leaves out values that
// the environment or a context gives anyway. It is never nil, because a report takes nil for the job's own place.
func placeOf(c *cli.Context) addresses.Place {
	out := addresses.Place{}
	for _, o := range repeatedOptions(c) {
		if addresses.IsPlaceFlag(o.Name) {
			out = append(out, o)
		}
	}
	return out
}

// placeOfJob is the flags that a printed command about a job needs: those of this command line, and those that lead to
// where the job ran. With a server only the first are needed.
func placeOfJob(c *cli.Context, r *disdel.Record) addresses.Place {
	here := placeOf(c)
	if at, err := serverOf(c); err == nil && at != nil {
		return here
	}
	for _, o := range addresses.PlaceOfRecord(r) {
		f, known := repeatedFlagOf(o.Name)
		if _, twice := here.Value(o.Name); twice || !known || f.finds() {
			continue
		}
		if value, _ := f.shown(c); value != o.Value {
			here = append(here, o)
		}
	}
	return here
}

// finds says whether a flag leads to the records. A command that has read a record already has these flags.
func (f repeatedFlag) finds() bool {
	return slices.Contains([]string{"home", "server", "context", "couchdb"}, f.name)
}

func repeatedFlagOf(name string) (repeatedFlag, bool) {
	i := slices.IndexFunc(repeatedFlags, func(f repeatedFlag) bool { return f.name == name })
	if i < 0 {
		return repeatedFlag{}, false
	}
	return repeatedFlags[i], true
}

// serverOf is the server that the command line or the context chose, nil for none.
func serverOf(c *cli.Context) (*client.Server, error) {
	folder, err := homeFolder(c)
	if err != nil {
		return nil, err
	}
	return client.Choose(client.Chosen{
		Home: folder, Server: c.String("server"), Context: c.String("context"), Token: os.Getenv(tokenVariable),
	})
}

// runsAt is where the jobs of this command run, from flags, the environment or a context. It is for records and never
// nil.
func runsAt(c *cli.Context) []disdel.Option {
	out := []disdel.Option{}
	for _, f := range repeatedFlags {
		value, ok := f.shown(c)
		if ok && value != "" && addresses.IsPlaceFlag(f.name) && !f.finds() {
			out = append(out, disdel.Option{Name: f.name, Value: value})
		}
	}
	return out
}

// returnTo makes the command work where a job ran, unless the command line, the environment or the context say
// otherwise. It returns Conflict if they lead to another OpenWhisk, storage or Redis, unless move is set.
func returnTo(c *cli.Context, r *disdel.Record, move bool) error {
	ran := addresses.PlaceOfRecord(r)
	if !move {
		if err := samePlace(c, r, ran); err != nil {
			return err
		}
	}
	for _, o := range ran {
		f, known := repeatedFlagOf(o.Name)
		if !known || f.finds() || c.IsSet(o.Name) || changesAddress(c, ran, partOf[o.Name]) {
			continue
		}
		if err := c.Set(o.Name, o.Value); err != nil {
			return err
		}
	}
	return nil
}

// partOf maps flags that describe a part to the flag of the part's address: at another address they mean nothing.
var partOf = map[string]string{
	"image": "apihost", "pool-memory": "apihost", "gpus": "apihost", "gpu-memory": "apihost",
	"action-memory": "apihost", "action-timeout": "apihost",
	"redis-ca": "redis",
}

// changesAddress says whether the command gives a flag another address than the job had.
func changesAddress(c *cli.Context, ran addresses.Place, flag string) bool {
	f, known := repeatedFlagOf(flag)
	now, value := f.shown(c)
	was, _ := ran.Value(flag)
	return known && value && !addresses.Same(flag, was, now)
}

// samePlace returns Conflict if an address of the command differs from the record's.
func samePlace(c *cli.Context, r *disdel.Record, ran addresses.Place) error {
	d, differ := addresses.FirstDifference(ran, func(flag string) (string, bool) {
		f, _ := repeatedFlagOf(flag)
		now, value := f.shown(c)
		_, known := ran.Value(flag)
		return now, value && (known || r.Place != nil)
	})
	if !differ {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Conflict, Code: disdel.CodeElsewhere, Op: "resume job", Job: r.ID,
		Msg: fmt.Sprintf("job %s ran on %s (--%s); %s %s", r.ID, cmp.Or(d.Was, "the embedded one"), d.Flag,
			sourceOfValue(c, d.Flag), cmp.Or(d.Now, "the embedded one")),
		Hint: fmt.Sprintf("to go on there: %s; to go on at the new place: add --move",
			flagsOfOldPlace(c, ran).Command("disdel", "resume", string(r.ID))),
	}
}

// sourceOfValue says who gave a flag its value.
func sourceOfValue(c *cli.Context, flag string) string {
	f, _ := repeatedFlagOf(flag)
	if value := os.Getenv(f.variable); value != "" && value == fmt.Sprint(c.Value(flag)) {
		return "the context or " + f.variable + " says"
	}
	return "you gave"
}

// flagsOfOldPlace is the flags that lead to where a job ran. If this command has an address that the job did not have,
// its flag is empty: otherwise the environment, the context or the flags would set it again.
func flagsOfOldPlace(c *cli.Context, ran addresses.Place) addresses.Place {
	out := slices.DeleteFunc(placeOf(c), func(o disdel.Option) bool {
		flag := cmp.Or(partOf[o.Name], o.Name)
		return slices.Contains(addresses.ComparedFlags, o.Name) || changesAddress(c, ran, flag)
	}).With(ran)
	for _, flag := range addresses.ComparedFlags {
		f, _ := repeatedFlagOf(flag)
		now, _ := f.shown(c)
		if _, known := ran.Value(flag); !known && now != "" {
			out = append(out, disdel.Option{Name: flag})
		}
	}
	return out
}

// repeatedFlag is a flag that later commands about a job need too.
type repeatedFlag struct {
	name, variable string
	path, address  bool
}

// repeatedFlags are the flags that later commands about a job need too, with their environment variables. Flags of the
// output are not among them; --set and --backend are kept as settings.
var repeatedFlags = []repeatedFlag{
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
	{name: "python", variable: pythonVariable, path: true},
}

// originOf says how the command line submits a job, for the job's record. It leaves out values from the environment.
func originOf(c *cli.Context, sets []string) *disdel.Origin {
	o := &disdel.Origin{Command: c.Command.Name, Sets: sets, Options: repeatedOptions(c)}
	if file := c.Args().First(); file != "" && file != "-" {
		o.File = wholePath(file)
	}
	return o
}

// repeatedOptions are the repeatedFlags of this command with their values, without those from the environment or a
// context.
func repeatedOptions(c *cli.Context) (out []disdel.Option) {
	for _, f := range repeatedFlags {
		value, ok := f.shown(c)
		if ok && (f.variable == "" || os.Getenv(f.variable) != fmt.Sprint(c.Value(f.name))) {
			out = append(out, disdel.Option{Name: f.name, Value: value})
		}
	}
	return out
}

// shown is the flag's value for another command, without a password; ok is false if it is not set.
func (f repeatedFlag) shown(c *cli.Context) (string, bool) {
	value, ok := valueOf(c, f.name)
	switch {
	case f.path && ok && (f.name != "python" || strings.ContainsRune(value, filepath.Separator)): // else one of the path
		value = wholePath(value)
	case f.address && ok:
		value = addresses.WithoutPasswords(value)
	}
	return value, ok
}

// valueOf is the value of a flag as it was typed; ok is false if it is not set.
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

// shortenFile makes the path of the job's file relative if it is below the current folder.
func shortenFile(r *disdel.Record) {
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

// environmentFor is the environment of another process of this program that works at the same place, whether flags,
// variables or a context chose it. Secrets stay those of this process's environment.
func environmentFor(c *cli.Context, home string) []string {
	env := append(os.Environ(), "DISDEL_HOME="+home, "DISDEL_CONTEXT=local")
	for _, f := range repeatedFlags {
		if f.variable == "" || f.name == "home" || f.name == "context" {
			continue
		}
		if value, ok := valueOf(c, f.name); ok {
			env = append(env, f.variable+"="+value)
		}
	}
	return env
}
