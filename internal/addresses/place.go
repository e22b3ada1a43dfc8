package addresses

import (
	"cmp"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// ComparedFlags are the flags whose addresses decide whether two places are the same, in the order of comparison.
var ComparedFlags = []string{"apihost", "storage", "redis", "redis-prefix"}

// Difference is an address that differs between two places. An empty address means the embedded part.
type Difference struct {
	Flag     string // one of Places, without dashes
	Was, Now string
}

// FirstDifference compares the addresses of a place with those of another one and returns the first difference. now
// returns the other place's address for a flag, and whether it is known.
func FirstDifference(was []disdel.Option, now func(flag string) (address string, known bool)) (Difference, bool) {
	for _, flag := range ComparedFlags {
		address, known := now(flag)
		i := slices.IndexFunc(was, func(o disdel.Option) bool { return o.Name == flag })
		d := Difference{Flag: flag, Now: address}
		if i >= 0 {
			d.Was = was[i].Value
		}
		if known && !Same(flag, d.Was, d.Now) {
			return d, true
		}
	}
	return Difference{}, false
}

// Same says whether two addresses of a flag lead to the same part. Users and passwords in them do not count.
func Same(flag, a, b string) bool {
	switch {
	case a == b:
		return true
	case flag == "redis-prefix":
		return cmp.Or(a, defaultPrefix) == cmp.Or(b, defaultPrefix)
	case a == "" || b == "":
		return false
	case flag == "apihost":
		return SameServer(a, b)
	case flag == "redis":
		return slices.Equal(redisServers(a), redisServers(b))
	default:
		return strings.TrimRight(a, "/") == strings.TrimRight(b, "/")
	}
}

// defaultPrefix is the prefix of keys on Redis if no flag sets one.
const defaultPrefix = "disdel"

// redisServers splits a list of Redis addresses into scheme, host, port and database each.
func redisServers(list string) (out []string) {
	for _, text := range RedisServers(list) {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			usual := "6379"
			if strings.HasSuffix(u.Scheme, sentinelScheme) {
				usual = "26379"
			}
			at := net.JoinHostPort(hostOf(u), cmp.Or(u.Port(), usual))
			text = u.Scheme + "://" + at + "/" + cmp.Or(strings.Trim(u.Path, "/"), "0")
		}
		out = append(out, text)
	}
	return out
}

// Place is the flags that lead a command to where records are and where jobs run, without passwords. Every command that
// disdel prints takes its addresses from here.
type Place []disdel.Option

// Command is a command line for a POSIX shell: the words, each quoted where it has to be, and the flags of the place.
func (p Place) Command(program string, words ...string) string {
	var out strings.Builder
	out.WriteString(program)
	for _, w := range words {
		out.WriteString(" " + Quote(w))
	}
	return out.String() + p.flags(words)
}

// flags is the flags of the place that a command does not have itself.
func (p Place) flags(words []string) string {
	var out strings.Builder
	for _, o := range p {
		if !HasFlag(words, o.Name) {
			out.WriteString(" --" + o.Name + " " + Quote(o.Value))
		}
	}
	return out.String()
}

// HasFlag says whether a command line has a flag, given without dashes.
func HasFlag(words []string, name string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return w == "--"+name || strings.HasPrefix(w, "--"+name+"=")
	})
}

// Complete adds the flags of the place to every command of disdel in a sentence. It puts them before the command's
// name, because the end of a command in a sentence is unclear. A flag that the command has stays.
func (p Place) Complete(text string) string {
	if len(p) == 0 {
		return text
	}
	const program = "disdel "
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, program)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		out.WriteString(program)
		complete := before == "" || !isWord(before[len(before)-1])
		if complete && slices.Contains(Commands, firstWord(rest)) {
			command, _, _ := strings.Cut(rest, program)
			command, _, _ = strings.Cut(command, "\n")
			out.WriteString(strings.TrimPrefix(p.flags(strings.Fields(command)), " "))
			if !strings.HasSuffix(out.String(), " ") {
				out.WriteString(" ")
			}
		}
		text = rest
	}
}

func isWord(b byte) bool {
	return b == '-' || b == '/' || b == '.' || b == '_' ||
		b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// firstWord is the letters that a text begins with.
func firstWord(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return r < 'a' || r > 'z' })
	if end < 0 {
		return text
	}
	return text[:end]
}

// Commands are the commands that work at a place, by the names that hints use.
var Commands = []string{
	"batch", "compare", "dataset", "deploy", "doctor", "du", "estimate", "evaluate", "export", "history", "infer", "init",
	"job", "jobs", "lab", "model", "prune", "quickstart", "report", "resume", "serve", "simulate", "submit", "tenant", "ui",
	"validate", "verify",
}

// With is the place with those flags of another place that it does not have.
func (p Place) With(other Place) Place {
	out := slices.Clone(p)
	for _, o := range other {
		if _, known := out.Value(o.Name); !known {
			out = append(out, o)
		}
	}
	return out
}

// Value is a flag's value, and whether the place has the flag.
func (p Place) Value(name string) (string, bool) {
	for _, o := range p {
		if o.Name == name {
			return o.Value, true
		}
	}
	return "", false
}

// PlaceOfRecord is the place where a job ran, by its record. A record of an earlier version only has the flags that its
// client sent. They count only if the client owned the home, so that no command leads to a stranger's server.
func PlaceOfRecord(r *disdel.Record) Place {
	if r.Place != nil {
		return r.Place
	}
	if r.Tenant != "" || r.Origin == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(Place(r.Origin.Options)), func(o disdel.Option) bool {
		return !IsPlaceFlag(o.Name)
	})
}

// IsPlaceFlag says whether a flag belongs to a place: the command reads from there, runs there, or sends its user's
// credentials there.
func IsPlaceFlag(name string) bool { return slices.Contains(placeFlags, name) }

var placeFlags = []string{
	"home", "server", "context", "storage", "redis", "redis-prefix", "redis-ca", "couchdb", "apihost", "image",
	"pool-memory", "gpus", "gpu-memory", "action-memory", "action-timeout",
}

var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Quote turns any text into one word of a POSIX shell.
func Quote(s string) string {
	if shellSafe.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
