package main

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/disdel/disdel"
)

// withPassword puts a password from the environment into a URL that has none: no flag takes a secret.
func withPassword(address, variable string) (string, error) {
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
	return &disdel.Error{Kind: disdel.Invalid, Op: "read address", Msg: fmt.Sprintf("%q is no URL", disdel.Redacted(address)), Hint: hint}
}

// checkAPIHost refuses an address of OpenWhisk that is none or that signs in: its key has places of its own.
func checkAPIHost(address string) error {
	const hint = "write --apihost http://HOST:PORT or https://HOST, and put the key into DISDEL_AUTH"
	u, err := serverURL(address, "https")
	switch {
	case err != nil || u.Host == "" || hasStrayUser(u):
		return usageError{noURL(address, hint)}
	case u.User != nil:
		return usageError{&disdel.Error{
			Kind: disdel.Invalid, Op: "read address", Msg: fmt.Sprintf("%q signs in, and OpenWhisk takes a key", disdel.Redacted(address)), Hint: hint,
		}}
	}
	return nil
}

// inTheClear says whether what is sent to an address can be read on its way to another machine.
func inTheClear(address string) bool {
	u, err := serverURL(address, "https")
	return err == nil && u.Scheme == "http" && !loopback(u.Hostname())
}

// serverURL reads the address of an OpenWhisk as wsk does: the scheme may be missing.
func serverURL(address, scheme string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = scheme + "://" + address
	}
	return url.Parse(address)
}

// sameServer says whether two addresses of OpenWhisk mean one server: the same scheme, host and port. A scheme that one leaves
// out is that of the other, a port the scheme's; localhost is 127.0.0.1.
func sameServer(a, b string) bool {
	scheme := "https"
	for _, address := range []string{a, b} {
		if before, _, ok := strings.Cut(address, "://"); ok {
			scheme = before
		}
	}
	one, err := serverURL(a, scheme)
	two, bad := serverURL(b, scheme)
	return err == nil && bad == nil && one.Host != "" && one.Scheme == two.Scheme && port(one) == port(two) && hostOf(one) == hostOf(two)
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

// authKey is the user's OpenWhisk key: DISDEL_AUTH; that of `disdel platform up` in the same home, if it is the one meant;
// or AUTH of wsk's own file, which is never written, if the server is the one that the file names: a key is sent to nobody else.
func authKey(home, apihost string) (string, error) {
	if key := os.Getenv("DISDEL_AUTH"); key != "" {
		return key, nil
	}
	if own := readProperties(propertiesFile(home)); own["APIHOST"] == strings.TrimSuffix(apihost, "/") && own["AUTH"] != "" {
		return own["AUTH"], nil
	}
	path := os.Getenv("WSK_CONFIG_FILE")
	if path == "" {
		dir, _ := os.UserHomeDir()
		path = filepath.Join(dir, ".wskprops")
	}
	wsk := readProperties(path)
	key, whose := wsk["AUTH"], wsk["APIHOST"]
	if key != "" && whose != "" && sameServer(whose, apihost) {
		return key, nil
	}
	out := &disdel.Error{
		Kind: disdel.Denied, Op: "find the OpenWhisk key", Msg: "neither DISDEL_AUTH nor AUTH in " + path + " is set",
		Hint: "wsk property set --auth KEY, or put it into DISDEL_AUTH",
	}
	if key != "" {
		out.Msg = fmt.Sprintf("the key in %s is for %s, not for %s", path, cmp.Or(disdel.Redacted(whose), "no server that it names"), disdel.Redacted(apihost))
		out.Hint = "put the key for " + disdel.Redacted(apihost) + " into DISDEL_AUTH, or leave --apihost and DISDEL_APIHOST to the server of that file"
	}
	return "", out
}
