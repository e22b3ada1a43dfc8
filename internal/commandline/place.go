package commandline

import (
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/report"
)

// PlaceOf is the flags that a printed command needs to work where this one does: those of its own command line. What
// the environment or a context gives anyway is left out.
func PlaceOf(c *cli.Context) report.Place {
	return slices.DeleteFunc(report.Place(given(c)), func(o disdel.Option) bool { return !report.LeadsAnywhere(o.Name) })
}

// PlaceOfJob is the flags that a printed command about a job needs: those of this command line, and those that lead to
// where the job ran. A server knows that itself.
func PlaceOfJob(c *cli.Context, r *disdel.Record) report.Place {
	here := PlaceOf(c)
	if atServer(c) {
		return here
	}
	for _, o := range report.Recorded(r) {
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

// finds says whether a flag leads to the records: who reads a record has found them.
func (f repeatedFlag) finds() bool {
	return slices.Contains([]string{"home", "server", "context", "couchdb"}, f.name)
}

func repeatedFlagOf(name string) (repeatedFlag, bool) {
	i := slices.IndexFunc(repeated, func(f repeatedFlag) bool { return f.name == name })
	if i < 0 {
		return repeatedFlag{}, false
	}
	return repeated[i], true
}

// atServer says whether a server carries the command out.
func atServer(c *cli.Context) bool {
	folder, err := HomeFolder(c)
	if err != nil {
		return false
	}
	at, err := client.Choose(client.Chosen{
		Home: folder, Server: c.String("server"), Context: c.String("context"), Token: os.Getenv(TokenVariable),
	})
	return err == nil && at != nil
}

// RunsAt is where the jobs of this command run, whether flags, the environment or a context say it. It is for records,
// and never nil.
func RunsAt(c *cli.Context) []disdel.Option {
	out := []disdel.Option{}
	for _, f := range repeated {
		value, ok := f.shown(c)
		if ok && value != "" && report.LeadsAnywhere(f.name) && !f.finds() {
			out = append(out, disdel.Option{Name: f.name, Value: value})
		}
	}
	return out
}

// ReturnTo has the command work where a job ran, as far as the command line, the environment and the context do not say
// otherwise. It returns Conflict where they lead to another OpenWhisk, storage or Redis, unless move is set.
func ReturnTo(c *cli.Context, r *disdel.Record, move bool) error {
	ran := report.Recorded(r)
	if !move {
		if err := samePlace(c, r, ran); err != nil {
			return err
		}
	}
	for _, o := range ran {
		f, known := repeatedFlagOf(o.Name)
		if !known || f.finds() || c.IsSet(o.Name) || move && isAddress(o.Name) {
			continue
		}
		if err := c.Set(o.Name, o.Value); err != nil {
			return err
		}
	}
	return nil
}

// whereJobsAre is the flags that make two places different ones.
var whereJobsAre = []string{"apihost", "storage", "redis", "redis-prefix"}

func isAddress(name string) bool { return slices.Contains(whereJobsAre, name) }

// samePlace returns Conflict where the command says of an address something else than the record.
func samePlace(c *cli.Context, r *disdel.Record, ran report.Place) error {
	for _, name := range whereJobsAre {
		f, _ := repeatedFlagOf(name)
		now, said := f.shown(c)
		was, known := ran.Value(name)
		if !said || !known && r.Place == nil || sameAddress(name, was, now) {
			continue
		}
		if was == "" {
			was = "the embedded one"
		}
		back := slices.DeleteFunc(PlaceOf(c), func(o disdel.Option) bool { return isAddress(o.Name) }).With(ran)
		return &disdel.Error{
			Kind: disdel.Conflict, Code: disdel.CodeElsewhere, Op: "resume job", Job: r.ID,
			Msg: fmt.Sprintf("job %s ran on %s (--%s); you gave %s", r.ID, was, name, now),
			Hint: fmt.Sprintf("to go on there: %s; to go on at the new place: add --move",
				back.Command("disdel", "resume", string(r.ID))),
		}
	}
	return nil
}

func sameAddress(name, a, b string) bool {
	return a == b || name == "apihost" && addresses.SameServer(a, b)
}
