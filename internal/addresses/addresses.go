package addresses

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// WithPassword puts a password from the environment into a URL that has none: no flag takes a secret.
func WithPassword(address, variable string) (string, error) {
	if address == "" {
		return "", nil
	}
	u, err := url.Parse(address)
	if err != nil || hasStrayUser(u) {
		return "", noURL(address, "a password with other characters than letters and digits goes into "+variable)
	}
	secret := os.Getenv(variable)
	if _, own := u.User.Password(); own || secret == "" {
		return address, nil
	}
	u.User = url.UserPassword(u.User.Username(), secret)
	return u.String(), nil
}

// hasStrayUser says whether what reads as the path of a server's address is the end of a password with a slash in it.
func hasStrayUser(u *url.URL) bool {
	return strings.Contains(u.Opaque+u.Path+u.RawQuery+u.Fragment, "@")
}

// noURL is what is said of an address that cannot be read, without what it may hold.
func noURL(address, hint string) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read address",
		Msg: fmt.Sprintf("%q is no URL", disdel.Redacted(address)), Hint: hint,
	}
}

// CheckAPIHost refuses an address of OpenWhisk that is none or that signs in: its key has places of its own.
func CheckAPIHost(address string) error {
	const hint = "write --apihost http://HOST:PORT or https://HOST, and put the key into DISDEL_AUTH"
	u, err := serverURL(address, "https")
	switch {
	case err != nil || u.Host == "" || hasStrayUser(u):
		return noURL(address, hint)
	case u.User != nil:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read address",
			Msg: fmt.Sprintf("%q signs in, and OpenWhisk takes a key", disdel.Redacted(address)), Hint: hint,
		}
	}
	return nil
}

// InTheClear says whether what is sent to an address can be read on its way to another machine.
func InTheClear(address string) bool {
	u, err := serverURL(address, "https")
	return err == nil && u.Scheme == "http" && !Loopback(u.Hostname())
}

// serverURL reads the address of an OpenWhisk as wsk does: the scheme may be missing.
func serverURL(address, scheme string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = scheme + "://" + address
	}
	return url.Parse(address)
}

// SameServer says whether two addresses of OpenWhisk mean one server: the same scheme, host and port. A scheme that one
// leaves out is that of the other, a port the scheme's; localhost is 127.0.0.1.
func SameServer(a, b string) bool {
	scheme := "https"
	for _, address := range []string{a, b} {
		if before, _, ok := strings.Cut(address, "://"); ok {
			scheme = before
		}
	}
	one, err := serverURL(a, scheme)
	two, bad := serverURL(b, scheme)
	return err == nil && bad == nil && one.Host != "" && one.Scheme == two.Scheme && port(one) == port(two) &&
		hostOf(one) == hostOf(two)
}

func port(u *url.URL) string {
	if u.Scheme == "http" {
		return cmp.Or(u.Port(), "80")
	}
	return cmp.Or(u.Port(), "443")
}

func hostOf(u *url.URL) string {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || host == "::1" {
		return "127.0.0.1"
	}
	return host
}

// WithoutPasswords is a list of addresses with commas between, none of which has a password.
func WithoutPasswords(list string) string {
	parts := strings.Split(list, ",")
	for i, text := range parts {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil {
			parts[i] = ""
			continue
		}
		if _, secret := u.User.Password(); secret {
			u.User = url.User(u.User.Username())
			if u.User.Username() == "" {
				u.User = nil
			}
			parts[i] = u.String()
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ",")
}

// Loopback tells whether a host is this machine by a name of its loopback.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// WithScheme is an API host with its scheme.
func WithScheme(host string) string {
	host = strings.TrimSuffix(host, "/")
	if !strings.Contains(host, "://") {
		return "https://" + host
	}
	return host
}
