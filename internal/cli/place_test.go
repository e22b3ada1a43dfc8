package cli

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/client"
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

var oldAddresses = addresses.Place{
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
func ranAt(draw *rand.Rand) addresses.Place {
	ran := addresses.Place{}
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

// act runs a command line whose command does what is given in place of its own work.
func act(t *testing.T, do func(c *cli.Context, u *ui) error, args ...string) error {
	t.Helper()
	u := terminal.New(strings.NewReader(""), io.Discard, io.Discard)
	app := newApp(u)
	commands := app.Commands
	for _, name := range args[1:] {
		for _, c := range commands {
			if c.Name == name {
				c.Action, commands = func(c *cli.Context) error { return do(c, u) }, c.Subcommands
				break
			}
		}
	}
	return app.RunContext(t.Context(), flagsFirst(app, args))
}

// resumeAt runs resume as far as the choice of the place, and returns the value of every flag of a place.
func resumeAt(t *testing.T, rec *disdel.Record, args []string) (map[string]string, error) {
	t.Helper()
	got := map[string]string{}
	err := act(t, func(c *cli.Context, _ *ui) error {
		err := returnTo(c, rec, c.Bool("move"))
		parts := []string{"image", "pool-memory", "action-memory", "redis-ca"}
		for _, name := range slices.Concat(addresses.ComparedFlags, parts) {
			got[name] = c.String(name)
		}
		return err
	}, args...)
	return got, err
}

// A report's commands have no flag for what the environment or a context says: neither an address of the server's own,
// nor one without its password.
func TestReportsLeaveOutWhatTheEnvironmentOrAContextSays(t *testing.T) {
	const withPassword, without = "redis://:pw@h:6379/0", "redis://h:6379/0"
	cluster := &client.Cluster{
		APIHost: "http://127.0.0.1:3233", Key: "user:key", Redis: without, RedisPassword: "pw",
		Storage: "redis://h:6379/1",
	}
	for name, c := range map[string]struct {
		variable, value string
		context         client.Context
		ran             addresses.Place
	}{
		"a server of the environment": {
			variable: "DISDEL_SERVER", value: "http://127.0.0.1:9",
			ran: addresses.Place{{Name: "redis", Value: "redis://servers.own:6379/0"}},
		},
		"a server of a context": {
			context: client.Context{Server: "http://127.0.0.1:9", Token: "t"},
			ran:     addresses.Place{{Name: "redis", Value: "redis://servers.own:6379/0"}},
		},
		"Redis of the environment": {
			variable: "DISDEL_REDIS", value: withPassword, ran: addresses.Place{{Name: "redis", Value: without}},
		},
		"Redis of a context": {
			context: client.Context{Cluster: cluster},
			ran: addresses.Place{
				{Name: "apihost", Value: cluster.APIHost},
				{Name: "redis", Value: without},
				{Name: "storage", Value: cluster.Storage},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{"SERVER", "REDIS", "REDIS_PASSWORD", "STORAGE", "APIHOST", "AUTH", "CONTEXT"} {
				t.Setenv("DISDEL_"+v, "") // what a context says goes into the environment, and has to leave it again
				os.Unsetenv("DISDEL_" + v)
			}
			home := t.TempDir()
			t.Setenv("DISDEL_HOME", home)
			if c.variable != "" {
				t.Setenv(c.variable, c.value)
			} else {
				c.context.Name = "mine"
				known := client.Contexts{Current: "mine"}
				if err := errors.Join(known.Add(c.context), known.Write(home)); err != nil {
					t.Fatal(err)
				}
			}
			printedWithoutFlags(t, c.ran)
		})
	}
}

// printedWithoutFlags wants no flag of a place in the commands of a report on a job that ran at a place.
func printedWithoutFlags(t *testing.T, ran addresses.Place) {
	t.Helper()
	rec := &disdel.Record{
		ID: "job-x", Status: disdel.StatusCanceled, Place: ran, Failure: &disdel.Error{Kind: disdel.Canceled},
		Origin: &disdel.Origin{Command: "submit", File: "job.yaml"},
	}
	var out strings.Builder
	err := act(t, func(c *cli.Context, _ *ui) error {
		return report.New(rec, time.Now(), placeOfJob(c, rec)...).Text(&out)
	}, "disdel", "report", "job-x")
	if err != nil || !strings.Contains(out.String(), "disdel submit") {
		t.Fatalf("%v, no command in\n%s", err, out.String())
	}
	for _, o := range ran {
		if strings.Contains(out.String(), "--"+o.Name) {
			t.Errorf("--%s in\n%s", o.Name, out.String())
		}
	}
}

// Commands in messages of the log have the flags of the place, as those of errors have.
func TestCommandsInTheLogLeadToThePlace(t *testing.T) {
	var said strings.Builder
	err := act(t, func(c *cli.Context, u *ui) error {
		u.Err = &said
		newLog(c, u).Warn("look again: disdel doctor")
		return nil
	}, "disdel", "jobs", "--home", "/a-home")
	if want := "look again: disdel --home /a-home doctor"; err != nil || !strings.Contains(said.String(), want) {
		t.Errorf("%v: %q, want %q", err, said.String(), want)
	}
}

// Scripts run as root only where --allow-root says so.
func TestAllowRootReachesThePlatform(t *testing.T) {
	for _, flags := range [][]string{nil, {"--allow-root"}} {
		home := t.TempDir()
		err := act(t, func(c *cli.Context, u *ui) error {
			cfg, err := platformConfig(c, u, home)
			if cfg.AllowRoot != (flags != nil) {
				t.Errorf("%q: allowed %v", flags, cfg.AllowRoot)
			}
			return err
		}, append([]string{"disdel", "platform", "up", "--home", home}, flags...)...)
		if err != nil {
			t.Errorf("%q: %v", flags, err)
		}
	}
}

// With --move a job goes on at the addresses that are given, and at its own ones where none is; what describes the part
// at an address stays with that part. Without --move another address is refused, and the printed command is not.
func TestMoveTakesWhatIsNotGivenFromTheRecord(t *testing.T) {
	draw := rand.New(rand.NewPCG(31, 11))
	for i := range 200 {
		t.Run(strconv.Itoa(i), func(t *testing.T) { moves(t, ranAt(draw), sayings(draw)) })
	}
}

func moves(t *testing.T, ran addresses.Place, all []said) {
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
	for _, name := range addresses.ComparedFlags {
		if want, _ := addresses.Place(rec.Place).Value(name); got[name] != want {
			t.Fatalf("%s: --%s %q, want %q", command, name, got[name], want)
		}
	}
}

// The settings of a server say where each value comes from, and have no password.
func TestSettingsSayWhereTheyComeFrom(t *testing.T) {
	home := t.TempDir()
	t.Setenv("DISDEL_POOL_MEMORY", "3GB")
	t.Setenv("DISDEL_ACTION_TIMEOUT", "4m")
	for _, v := range []string{"DISDEL_STORAGE", "DISDEL_APIHOST", "DISDEL_AUTH", "DISDEL_REDIS", "DISDEL_CONTEXT"} {
		t.Setenv(v, "") // hides nothing of the context
	}
	if code := run([]string{"disdel", "version"}, nil, io.Discard, io.Discard); code != 0 {
		t.Fatal(code)
	}
	known := client.Contexts{Current: "lab"}
	lab := client.Context{
		Name: "lab", Cluster: &client.Cluster{APIHost: "http://127.0.0.1:1", Key: "a:CANARY", Storage: "file:///lab"},
	}
	if err := errors.Join(known.Add(lab), known.Write(home)); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	err := act(t, func(c *cli.Context, _ *ui) error {
		for _, s := range settingsOf(c) {
			got[s.Name] = s.Value + " by " + s.Source
			if s.Meaning == "" || strings.Contains(s.Meaning, "`") {
				t.Errorf("%s means %q", s.Name, s.Meaning)
			}
		}
		return nil
	}, "disdel", "--home", home, "--redis", "redis://me:CANARY@h:6379,rediss://:CANARY@i:6379", "serve", "--drain", "5s",
		"--host-name", "a.example", "--host-name", "b.example")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"home": home + " by command line", "storage": "file:///lab by context lab", "drain": "5s by command line",
		"pool-memory": "3GB by variable DISDEL_POOL_MEMORY", "action-timeout": "4m0s by variable DISDEL_ACTION_TIMEOUT",
		"redis":  "redis://xxxxx@h:6379,rediss://xxxxx@i:6379 by command line",
		"listen": "127.0.0.1:7070 by default", "host-name": "a.example,b.example by command line",
		"admission": "gang by default", "apihost": "http://127.0.0.1:1 by context lab", "insecure": "false by default",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	if _, shown := got["output"]; shown {
		t.Error("a flag of one command's output is a setting of the server")
	}
}
