package addresses

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// Places is the flags of the addresses that a place consists of, in the order in which they are compared.
var Places = []string{"apihost", "storage", "redis", "redis-prefix"}

// Difference is an address that differs between two places. An empty address means the embedded part.
type Difference struct {
	Flag     string // one of Places, without dashes
	Was, Now string
}

// Differ compares the addresses of a place, named by their flags, with those of another one, and returns the first
// difference. now returns an address, and whether it is known.
func Differ(was []disdel.Option, now func(flag string) (address string, known bool)) (Difference, bool) {
	for _, flag := range Places {
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

// defaultPrefix is the prefix of keys on Redis where nobody names one.
const defaultPrefix = "disdel"

// redisServers is a list of addresses of Redis, each as scheme, host, port and database.
func redisServers(list string) (out []string) {
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			at := net.JoinHostPort(hostOf(u), cmp.Or(u.Port(), "6379"))
			text = u.Scheme + "://" + at + "/" + cmp.Or(strings.Trim(u.Path, "/"), "0")
		}
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}
