package platform

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// users of containers: each container has one of its own, from a range that systems leave to programs (systemd's for
// services without an account). They own nothing on the machine.
const (
	firstUser = 61184
	users     = 4096
)

// KindUser tells which user the containers of a kind run as.
type KindUser struct {
	Kind    string
	Own     bool   // each container has a user of its own, who owns nothing
	User    int    // the id of the user, the platform's, where Own is false
	Refused string // why no container of the kind is started, and what to do; empty: they are
}

// Users tells for each kind, in the order of their names, which user its containers run as.
func (p *Platform) Users() []KindUser {
	out := make([]KindUser, 0, len(p.cfg.Kinds))
	for _, name := range slices.Sorted(maps.Keys(p.cfg.Kinds)) {
		out = append(out, p.userOfKind(name))
	}
	return out
}

func (p *Platform) userOfKind(name string) KindUser {
	kind := p.cfg.Kinds[name]
	out := KindUser{Kind: name, User: os.Geteuid()}
	if p.mayOwn(kind) {
		out.Own, out.User = true, 0
		return out
	}
	if kind.OwnUser && realRoot() && !p.cfg.AllowRoot {
		out.Refused = fmt.Sprintf("its actions would run as root: %s. Install it where every user may read and start it, "+
			"or start the platform with --allow-root", p.whyNotOwn(kind))
	}
	return out
}

// mayOwn tells whether containers of a kind run as users of their own.
func (p *Platform) mayOwn(kind Kind) bool { return kind.OwnUser && p.whyNotOwn(kind) == "" }

// whyNotOwn says why containers of a kind cannot have users of their own, "" where they can.
func (p *Platform) whyNotOwn(kind Kind) string {
	if !p.ownUsers {
		return "this process cannot start others as other users, or they cannot reach " + p.root.dir
	}
	program, err := exec.LookPath(kind.Command[0])
	if err != nil {
		return err.Error()
	}
	for _, path := range append([]string{program}, kind.Reads...) {
		if !p.spawner.confined.own.open[path] {
			return path + " is closed to other users"
		}
	}
	return ""
}

// familiesOf names the families of the kinds that are chosen, each once.
func familiesOf(kinds []KindUser, chosen func(KindUser) bool) string {
	var out []string
	for _, u := range kinds {
		if name := family(u.Kind); chosen(u) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

// refusal is the error of a kind whose containers are not started, nil where they are.
func (p *Platform) refusal(name string) error {
	why := p.userOfKind(name).Refused
	if why == "" {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "start container", Msg: "the kind " + name + " is refused: " + why,
	}
}

// userFor is the user that a container of a kind runs as, 0 for the platform's own.
func (p *Platform) userFor(kind Kind) uint32 {
	if !p.mayOwn(kind) {
		return 0
	}
	return firstUser + p.started.Add(1)%users
}

// needsOf are what containers with users of their own must reach, the platform's folder being one.
func needsOf(kinds map[string]Kind, work string) needs {
	n := needs{work: work}
	for _, kind := range kinds {
		if !kind.OwnUser || len(kind.Command) == 0 {
			continue
		}
		if program, err := exec.LookPath(kind.Command[0]); err == nil && !slices.Contains(n.programs, program) {
			n.programs = append(n.programs, program)
		}
		for _, folder := range kind.Reads {
			if !slices.Contains(n.folders, folder) {
				n.folders = append(n.folders, folder)
			}
		}
	}
	return n
}

// idMap is the first line of this process' map of user ids: ids from inside on are those from outside on, count many.
func idMap() (inside, outside, count uint64) {
	data, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return 0, 0, 0
	}
	fmt.Sscan(string(data), &inside, &outside, &count) //nolint:errcheck // what is no map has no ids
	return inside, outside, count
}

// realRoot tells whether this process is the machine's root, or that of a container without users of its own.
func realRoot() bool {
	_, outside, count := idMap()
	return os.Geteuid() == 0 && outside == 0 && count > 0
}

// canSwitch tells whether this process may start others as any of the containers' users.
func canSwitch() bool {
	inside, _, count := idMap()
	return os.Geteuid() == 0 && inside == 0 && count >= firstUser+users &&
		hasCapabilities(unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_CHOWN)
}

// hasCapabilities tells whether this process has all of these capabilities.
func hasCapabilities(list ...uint) bool {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), "\nCapEff:")
	line, _, _ := strings.Cut(rest, "\n")
	have, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err == nil && !slices.ContainsFunc(list, func(n uint) bool { return have&(1<<n) == 0 })
}
