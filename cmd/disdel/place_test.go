package main

import (
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/internal/terminal"
)

// partsOf is flags that describe the part at an address, with a value of each.
var partsOf = map[string][]disdel.Option{
	"apihost": {
		{Name: "image", Value: "old/image"},
		{Name: "pool-memory", Value: "3GB"},
		{Name: "action-memory", Value: "1GB"},
	},
	"redis": {{Name: "redis-ca", Value: "/old.pem"}},
}

var oldAddresses = report.Place{
	{Name: "apihost", Value: "https://old.example"},
	{Name: "storage", Value: "file:///old"},
	{Name: "redis", Value: "rediss://old.example:6379/0"},
	{Name: "redis-prefix", Value: "old"},
}

// said is what one command says of an address, by a flag or by the environment.
type said struct {
	flag, value string
	env         bool
}

// ranAt draws where a job ran.
func ranAt(draw *rand.Rand) report.Place {
	ran := report.Place{}
	for _, o := range oldAddresses {
		if draw.IntN(2) == 0 {
			ran = append(ran, o)
			ran = append(ran, partsOf[o.Name]...)
		}
	}
	return ran
}

// sayings draws what a command says of addresses.
func sayings(draw *rand.Rand) (out []said) {
	for _, o := range oldAddresses {
		s := said{flag: o.Name, value: []string{"", o.Value, strings.ReplaceAll(o.Value, "old", "new")}[draw.IntN(3)]}
		switch draw.IntN(4) {
		case 0:
			out = append(out, s)
		case 1:
			if s.env = true; s.value != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// resumeAt runs resume as far as the choice of the place, and returns the value of every flag of a place.
func resumeAt(t *testing.T, rec *disdel.Record, args []string) (map[string]string, error) {
	t.Helper()
	app := newApp(terminal.New(strings.NewReader(""), io.Discard, io.Discard))
	got := map[string]string{}
	for _, c := range app.Commands {
		if c.Name == "resume" {
			c.Action = func(c *cli.Context) error {
				err := commandline.ReturnTo(c, rec, c.Bool("move"))
				parts := []string{"image", "pool-memory", "action-memory", "redis-ca"}
				for _, name := range slices.Concat(addresses.Places, parts) {
					got[name] = c.String(name)
				}
				return err
			}
		}
	}
	return got, app.RunContext(t.Context(), commandline.Normalize(app, args))
}

// With --move a job goes on at the addresses that are given, and at its own ones where none is; what describes the part
// at an address stays with that part. Without --move another address is refused, and the printed command is not.
func TestMoveTakesWhatIsNotGivenFromTheRecord(t *testing.T) {
	draw := rand.New(rand.NewPCG(31, 11))
	for i := range 200 {
		t.Run(strconv.Itoa(i), func(t *testing.T) { moves(t, ranAt(draw), sayings(draw)) })
	}
}

func moves(t *testing.T, ran report.Place, all []said) {
	t.Helper()
	rec := &disdel.Record{ID: "job-x", Place: ran}
	want, differs := map[string]string{"action-memory": "512MB"}, false
	for _, o := range ran {
		want[o.Name] = o.Value
	}
	args := []string{"disdel", "resume", "job-x", "--home", t.TempDir()}
	for _, s := range all {
		if s.env {
			t.Setenv("DISDEL_"+strings.ToUpper(strings.ReplaceAll(s.flag, "-", "_")), s.value)
		} else {
			args = append(args, "--"+s.flag, s.value)
		}
		if was, _ := ran.Value(s.flag); was != s.value {
			differs = true
			for _, o := range partsOf[s.flag] {
				want[o.Name] = map[string]string{"action-memory": "512MB"}[o.Name]
			}
		}
		want[s.flag] = s.value
	}
	got, err := resumeAt(t, rec, append(slices.Clone(args), "--move"))
	for name, value := range got {
		if value != want[name] || err != nil {
			t.Fatalf("ran at %v, %+v is said: --%s %q, want %q; %v", ran, all, name, value, want[name], err)
		}
	}
	_, err = resumeAt(t, rec, args)
	if refused := err != nil && disdel.AsError(err).Code == disdel.CodeElsewhere; refused != differs {
		t.Fatalf("ran at %v, %+v is said: %v", ran, all, err)
	}
	if differs {
		leadsBack(t, rec, disdel.AsError(err).Hint)
	}
}

// leadsBack has the command of a hint go to where the job ran.
func leadsBack(t *testing.T, rec *disdel.Record, hint string) {
	t.Helper()
	command, _, ok := strings.Cut(strings.TrimPrefix(hint, "to go on there: "), "; to go on at")
	if !ok {
		t.Fatalf("the hint says %q", hint)
	}
	got, err := resumeAt(t, rec, shellWords(command))
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	for _, name := range addresses.Places {
		if want, _ := report.Place(rec.Place).Value(name); got[name] != want {
			t.Fatalf("%s: --%s %q, want %q", command, name, got[name], want)
		}
	}
}
