package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/platform"
)

// statusPath is outside OpenWhisk's API. Like OpenWhisk's own description at / it asks for no key: it has no secret.
const statusPath = "/disdel/status"

// front answers statusPath and leaves everything else to the API.
type front struct {
	api      http.Handler
	platform *platform.Platform
	started  time.Time
}

// liveStatus is what a platform tells of itself.
type liveStatus struct {
	UptimeMs    int64    `json:"uptimeMs"`
	Enforcement string   `json:"memoryLimitsBy"`
	Confinement string   `json:"actionsConfinedBy"`
	Processors  int      `json:"processors,omitempty"` // that containers share
	Pool        livePool `json:"pool"`
}

// livePool is the container pool.
type livePool struct {
	UsedBytes disdel.Bytes `json:"usedBytes"`
	Bytes     disdel.Bytes `json:"bytes"`
	Running   int          `json:"running"`
	Ready     int          `json:"ready"`
	Paused    int          `json:"paused"`
	Prewarmed int          `json:"prewarmed"`
	Queued    int          `json:"queued"`
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != statusPath {
		f.api.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(f.status()) //nolint:errcheck // the client went away
}

func (f *front) status() liveStatus {
	p := f.platform.Status()
	return liveStatus{
		UptimeMs: time.Since(f.started).Milliseconds(), Enforcement: f.platform.Enforcement(), Confinement: f.platform.Confinement(),
		Processors: min(runtime.NumCPU(), runtime.GOMAXPROCS(0)),
		Pool:       livePool{p.Used, p.Memory, p.Running, p.Ready, p.Paused, p.Prewarmed, p.Queued},
	}
}

// platformDocument is what `platform status` and `platform up` print with -o json.
type platformDocument struct {
	Running bool   `json:"running"`
	Home    string `json:"home"`
	*platformState
	*liveStatus
}

// showPlatform is `disdel platform status`.
func showPlatform(c *cli.Context, u *ui) error {
	return inHome(c, func(dir string) error {
		state, running := findPlatform(dir)
		if !running {
			return notRunning(u, dir)
		}
		d := platformDocument{Running: true, Home: dir, platformState: &state}
		var err error
		if d.liveStatus, err = askPlatform(c.Context, state); err != nil {
			return err
		}
		return u.show(d, func(w io.Writer) { printPlatform(w, d) })
	})
}

func inHome(c *cli.Context, f func(dir string) error) error {
	if err := operands(c, 0, 0); err != nil {
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
	err := &disdel.Error{Kind: disdel.Unavailable, Op: "find platform", Msg: "none runs in " + dir, Hint: "disdel platform up"}
	if u.format == "table" {
		return err
	}
	if err := u.show(platformDocument{Home: dir}, nil); err != nil {
		return err
	}
	return reported{err}
}

// askPlatform reads the live status. It returns Unavailable if the process is there and does not answer.
func askPlatform(ctx context.Context, s platformState) (*liveStatus, error) {
	silent := func(err error) error {
		return &disdel.Error{
			Kind: disdel.Unavailable, Op: "ask platform", Msg: fmt.Sprintf("process %d does not answer at %q", s.PID, s.Address), Err: err,
			Hint: "it may be starting or ending: try again, or disdel platform down",
		}
	}
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Address+statusPath, nil)
	if err != nil {
		return nil, silent(err)
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // a proxy of the environment is not for this machine
	res, err := direct.Do(req)
	if err != nil {
		return nil, silent(err)
	}
	defer res.Body.Close()
	var live liveStatus
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&live); err != nil {
		return nil, silent(err)
	}
	return &live, nil
}

func printPlatform(w io.Writer, d platformDocument) {
	rows := [][]string{
		{"address", d.Address},
		{"process", fmt.Sprintf("%d, up for %s", d.PID, (time.Duration(d.UptimeMs) * time.Millisecond).Round(time.Second))},
		{"memory", "limits by " + d.Enforcement},
		{"actions", "confined by " + d.Confinement},
		{"pool", fmt.Sprintf("%s of %s: %d running, %d ready, %d paused, %d prewarmed, %d queued", d.Pool.UsedBytes, d.Pool.Bytes, d.Pool.Running, d.Pool.Ready, d.Pool.Paused, d.Pool.Prewarmed, d.Pool.Queued)},
		{"wskprops", d.Properties},
		{"data", d.Data},
	}
	table(w, rows...)
}

// announce prints what sets a shell up, on stdout, for eval, and the rest for the person.
func announce(u *ui, dir string, s platformState) error {
	u.say("OpenWhisk at %s", s.Address)
	u.say("a shell is set up for wsk and disdel by the lines on standard output, or by: eval \"$(%s platform up --detach)\"", program())
	err := u.show(platformDocument{Running: true, Home: dir, platformState: &s}, func(w io.Writer) {
		fmt.Fprintf(w, "export WSK_CONFIG_FILE=%s\nexport DISDEL_APIHOST=%s\n", shellWord(s.Properties), s.Address)
	})
	u.say("next:  wsk action list; disdel platform status; disdel platform down")
	return err
}

// shellWord is a word that a shell takes as it is.
func shellWord(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// endWithin is how long a platform may take to end: it lets requests go for ten seconds.
const endWithin = 20 * time.Second

// endPlatform is `disdel platform down`.
func endPlatform(c *cli.Context, u *ui) error {
	return inHome(c, func(dir string) error {
		state, running := findPlatform(dir)
		if !running {
			u.say("no platform runs in %s", dir)
			forgetAddress(u, "")
			return u.show(platformDocument{Home: dir}, func(io.Writer) {})
		}
		if err := signalPlatform(dir, state, unix.SIGTERM); err != nil {
			return err
		}
		if err := waitForEnd(c.Context, u, dir, state.PID); err != nil {
			return err
		}
		forgetAddress(u, state.Address)
		return u.show(platformDocument{Home: dir}, func(io.Writer) {})
	})
}

// forgetAddress says that this shell still leads commands to the platform that has ended, or to none on this machine.
func forgetAddress(u *ui, ended string) {
	address := os.Getenv("DISDEL_APIHOST")
	at, err := url.Parse(address)
	if err == nil && (sameAddress(address, ended) || ended == "" && loopback(at.Hostname())) {
		u.say("hint: unset DISDEL_APIHOST, WSK_CONFIG_FILE: this shell still sends what disdel and wsk do to %s", clean(address))
	}
}

func waitForEnd(ctx context.Context, u *ui, dir string, pid int) error {
	ctx, stop := context.WithTimeout(ctx, endWithin)
	defer stop()
	for {
		if s, running := findPlatform(dir); !running || s.PID != pid {
			u.say("the platform has ended")
			return nil
		}
		select {
		case <-ctx.Done():
			return &disdel.Error{
				Kind: disdel.Timeout, Op: "end platform", Msg: fmt.Sprintf("process %d still runs", pid), Err: context.Cause(ctx),
				Hint: fmt.Sprintf("kill -KILL %d; the next platform removes what it leaves", pid),
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// sameAddress tells whether two URLs lead to one server: names of loopback are one.
func sameAddress(a, b string) bool {
	one, err := url.Parse(strings.TrimSuffix(a, "/"))
	two, bad := url.Parse(strings.TrimSuffix(b, "/"))
	if err != nil || bad != nil || one.Host == "" || one.Scheme != two.Scheme || one.Port() != two.Port() || one.Path != two.Path {
		return false
	}
	return one.Hostname() == two.Hostname() || loopback(one.Hostname()) && loopback(two.Hostname())
}
