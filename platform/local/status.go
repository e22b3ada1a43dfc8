package local

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/platform"
)

// Processors is the number of processors that this process and an embedded platform may use at once.
func Processors() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// statusPath is no part of OpenWhisk's API. It needs no key, because it shows no secret.
const statusPath = "/disdel/status"

// Front answers statusPath and tenantsPath and passes other requests to the API.
type Front struct {
	API      http.Handler
	Platform *platform.Platform
	Started  time.Time
}

// Status is the live status of a platform.
type Status struct {
	UptimeMs    int64  `json:"uptimeMs"`
	Enforcement string `json:"memoryLimitsBy"`
	Confinement string `json:"actionsConfinedBy"`
	Processors  int    `json:"processors,omitempty"` // that containers share
	Pool        Pool   `json:"pool"`
	GPUs        []GPU  `json:"gpus,omitempty"`
	Users       []User `json:"users,omitempty"` // that the actions of each kind run as
}

// User says which user runs the actions of a kind.
type User struct {
	Kind    string `json:"kind"`
	RunsAs  string `json:"runsAs,omitempty"`  // "own": each container has a user of its own; "platform": the platform's
	UserID  int    `json:"userId,omitempty"`  // of the platform's user; 0 is root
	Refused string `json:"refused,omitempty"` // why the kind's actions do not run; "": they do
}

// The users that actions can run as.
const (
	RunsAsOwn      = "own"
	RunsAsPlatform = "platform"
)

// GPU is a GPU whose memory containers share.
type GPU struct {
	ID         string       `json:"id"`
	Bytes      disdel.Bytes `json:"bytes"`
	UsedBytes  disdel.Bytes `json:"usedBytes"`
	Containers int          `json:"containers"`
}

// Pool is the container pool.
type Pool struct {
	UsedBytes disdel.Bytes `json:"usedBytes"`
	Bytes     disdel.Bytes `json:"bytes"`
	Running   int          `json:"running"`
	Ready     int          `json:"ready"`
	Paused    int          `json:"paused"`
	Prewarmed int          `json:"prewarmed"`
	Queued    int          `json:"queued"`
	BusyBytes disdel.Bytes `json:"busyBytes"` // of those used, by containers that have work

	ResidentBytes disdel.Bytes `json:"residentBytes"` // that containers really hold of what is used
}

// ServeHTTP answers a request.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == tenantsPath || strings.HasPrefix(path, tenantsPath+"/"):
		f.serveTenants(w, r)
		return
	case path != statusPath:
		f.API.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(f.status()) //nolint:errcheck // the client went away
}

func (f *Front) status() Status {
	p := f.Platform.Status()
	var gpus []GPU
	for _, d := range p.Devices {
		gpus = append(gpus, GPU{d.ID, d.Memory, d.Used, d.Containers})
	}
	var users []User
	for _, k := range f.Platform.Users() {
		as := RunsAsPlatform
		switch {
		case k.Refused != "":
			as = ""
		case k.Own:
			as = RunsAsOwn
		}
		users = append(users, User{k.Kind, as, k.User, k.Refused})
	}
	return Status{
		Users: users, GPUs: gpus, UptimeMs: time.Since(f.Started).Milliseconds(), Enforcement: f.Platform.Enforcement(),
		Confinement: f.Platform.Confinement(),
		Processors:  Processors(),
		Pool:        Pool{p.Used, p.Memory, p.Running, p.Ready, p.Paused, p.Prewarmed, p.Queued, p.Busy, p.Resident},
	}
}

// Ask reads the live status. It returns Unavailable if the process does not answer.
func Ask(ctx context.Context, s State) (*Status, error) {
	silent := func(err error) error {
		return &disdel.Error{
			Kind: disdel.Unavailable, Op: "ask platform", Msg: fmt.Sprintf("process %d does not answer at %q", s.PID, s.Address),
			Err:  err,
			Hint: "it may be starting or ending: try again, or disdel platform down",
		}
	}
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Address+statusPath, nil)
	if err != nil {
		return nil, silent(err)
	}
	// a proxy of the environment is not for this machine
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := direct.Do(req)
	if err != nil {
		return nil, silent(err)
	}
	defer res.Body.Close()
	var live Status
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&live); err != nil {
		return nil, silent(err)
	}
	return &live, nil
}

// SameAddress says whether two URLs lead to one server. All loopback names are equal.
func SameAddress(a, b string) bool {
	one, err := url.Parse(strings.TrimSuffix(a, "/"))
	two, bad := url.Parse(strings.TrimSuffix(b, "/"))
	if err != nil || bad != nil || one.Host == "" || one.Scheme != two.Scheme || one.Port() != two.Port() ||
		one.Path != two.Path {
		return false
	}
	return one.Hostname() == two.Hostname() || addresses.Loopback(one.Hostname()) && addresses.Loopback(two.Hostname())
}
