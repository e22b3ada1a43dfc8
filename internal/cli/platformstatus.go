package cli

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/platform/local"
)

// platformDocument is what `platform status` and `platform up` print with -o json.
type platformDocument struct {
	Running bool   `json:"running"`
	Home    string `json:"home"`
	*local.State
	*local.Status
}

// showPlatform is `disdel platform status`.
func showPlatform(c *cli.Context, u *ui) error {
	return inHome(c, func(dir string) error {
		state, running := local.Find(dir)
		if !running {
			return notRunning(u, dir)
		}
		d := platformDocument{Running: true, Home: dir, State: &state}
		var err error
		if d.Status, err = local.Ask(c.Context, state); err != nil {
			return err
		}
		return u.Show(d, func(w io.Writer) { printPlatform(w, d) })
	})
}

func inHome(c *cli.Context, f func(dir string) error) error {
	if err := Operands(c, 0, 0); err != nil {
		return err
	}
	dir, err := home(c)
	if err != nil {
		return err
	}
	return f(dir)
}

// notRunning prints a document, which a program can read, or an error, and sets the exit code.
func notRunning(u *ui, dir string) error {
	err := &disdel.Error{
		Kind: disdel.Unavailable, Op: "find platform", Msg: "none runs in " + dir,
		Hint: "disdel platform up",
	}
	if u.Format == "table" {
		return err
	}
	if err := u.Show(platformDocument{Home: dir}, nil); err != nil {
		return err
	}
	return terminal.Reported(err)
}

func printPlatform(w io.Writer, d platformDocument) {
	rows := [][]string{
		{"address", d.Address},
		{"process", fmt.Sprintf("%d, up for %s", d.PID, (time.Duration(d.UptimeMs) * time.Millisecond).Round(time.Second))},
		{"memory", "limits by " + d.Enforcement},
		{"actions", "confined by " + d.Confinement},
		{"users", usersOfActions(d.Users)},
		{"pool", fmt.Sprintf("%s of %s: %d running, %d ready, %d paused, %d prewarmed, %d queued", d.Pool.UsedBytes,
			d.Pool.Bytes, d.Pool.Running, d.Pool.Ready, d.Pool.Paused, d.Pool.Prewarmed, d.Pool.Queued)},
		{"wskprops", d.Properties},
		{"data", d.Data},
	}
	for _, g := range d.GPUs {
		rows = append(rows,
			[]string{"gpu", fmt.Sprintf("%s: %v of %v, %d containers", g.ID, g.UsedBytes, g.Bytes, g.Containers)})
	}
	terminal.Table(w, rows...)
}

// usersOfActions says which user the actions of each family of kinds run as: "python: a user of its own each; ...".
func usersOfActions(list []local.User) string {
	said, order := map[string][]string{}, []string{}
	for _, user := range list {
		text := "refused, " + user.Refused
		switch {
		case user.RunsAs == local.RunsAsOwn:
			text = "each container has a user of its own"
		case user.RunsAs == local.RunsAsPlatform && user.UserID == 0:
			text = "root, the platform's user"
		case user.RunsAs == local.RunsAsPlatform:
			text = fmt.Sprintf("the platform's user (%d)", user.UserID)
		}
		name, _, _ := strings.Cut(user.Kind, ":")
		if _, ok := said[text]; !ok {
			order = append(order, text)
		}
		if !slices.Contains(said[text], name) {
			said[text] = append(said[text], name)
		}
	}
	parts := make([]string, 0, len(order))
	for _, text := range order {
		parts = append(parts, strings.Join(said[text], ", ")+": "+text)
	}
	return strings.Join(parts, "; ")
}

// announce prints what sets a shell up, on stdout, for eval, and the rest for the person.
func announce(u *ui, dir string, s local.State) error {
	u.Say("OpenWhisk at %s", s.Address)
	u.Say("a shell is set up for wsk and disdel by the lines on standard output, or by: eval \"$(%s platform up "+
		"--detach)\"", terminal.Program())
	err := u.Show(platformDocument{Running: true, Home: dir, State: &s}, func(w io.Writer) {
		fmt.Fprintf(w, "export WSK_CONFIG_FILE=%s\nexport DISDEL_APIHOST=%s\n", shellWord(s.Properties), s.Address)
	})
	u.Say("next:  wsk action list; disdel platform status; disdel platform down")
	return err
}

// shellWord is a word that a shell takes as it is.
func shellWord(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// endPlatform is `disdel platform down`.
func endPlatform(c *cli.Context, u *ui) error {
	return inHome(c, func(dir string) error {
		state, running := local.Find(dir)
		if !running {
			u.Say("no platform runs in %s", dir)
			forgetAddress(u, "")
			return u.Show(platformDocument{Home: dir}, func(io.Writer) {})
		}
		if err := local.Signal(dir, state, unix.SIGTERM); err != nil {
			return err
		}
		if err := local.AwaitEnd(c.Context, dir, state.PID); err != nil {
			return err
		}
		u.Say("the platform has ended")
		forgetAddress(u, state.Address)
		return u.Show(platformDocument{Home: dir}, func(io.Writer) {})
	})
}

// forgetAddress says that this shell still leads commands to the platform that has ended, or to none on this machine.
func forgetAddress(u *ui, ended string) {
	address := os.Getenv("DISDEL_APIHOST")
	at, err := url.Parse(address)
	if err == nil && (local.SameAddress(address, ended) || ended == "" && addresses.Loopback(at.Hostname())) {
		u.Say("hint: unset DISDEL_APIHOST, WSK_CONFIG_FILE: this shell still sends what disdel and wsk do to %s",
			terminal.Clean(address))
	}
}
