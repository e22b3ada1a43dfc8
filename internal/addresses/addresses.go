package addresses

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// WithPassword adds a password from the environment to a URL without one, because no flag takes a secret.
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

// hasStrayUser says whether the path of an address is in fact the end of a password with a slash in it.
func hasStrayUser(u *url.URL) bool {
	return strings.Contains(u.Opaque+u.Path+u.RawQuery+u.Fragment, "@")
}

// noURL is the error for an address that cannot be read. It does not repeat the address, which may have a password.
func noURL(address, hint string) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read address",
		Msg: fmt.Sprintf("%q is no URL", disdel.Redacted(address)), Hint: hint,
	}
}

// CheckAPIHost returns Invalid for a text that is no address of OpenWhisk, and for an address with a user: the key has
// flags of its own.
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

// InTheClear says whether others can read what is sent to an address of another machine.
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

// SameServer says whether two addresses of OpenWhisk have the same scheme, host and port. A missing scheme is that of
// the other address, a missing port the scheme's; localhost is 127.0.0.1.
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

// WithoutPasswords removes the passwords from a list of addresses with commas between.
func WithoutPasswords(list string) string {
	parts := RedisServers(list)
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

// Loopback says whether a host is a loopback name of this machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// WithScheme adds the scheme to an API host that has none.
func WithScheme(host string) string {
	host = strings.TrimSuffix(host, "/")
	if !strings.Contains(host, "://") {
		return "https://" + host
	}
	return host
}

// Where the SDK of S3 finds a region and credentials without asking anybody.
var (
	regionVariables     = []string{"AWS_REGION", "AWS_DEFAULT_REGION"}
	credentialVariables = []string{
		"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI",
	}
)

// metadataVariable belongs to the SDK: unless it is true, the SDK asks the machine's metadata service. A laptop has
// none, and a foreign network may fake one. disdel asks it only if the user sets the variable to false.
const metadataVariable = "AWS_EC2_METADATA_DISABLED"

// CheckStorage returns Invalid for a --storage that is no address, that has a user, or that no bucket can be opened
// with.
func CheckStorage(address string) error {
	const hint = "write file:///folder or s3://bucket?region=REGION"
	u, err := url.Parse(address)
	switch {
	case address == "":
		return nil
	case err != nil || u.Scheme == "" || u.Scheme != "file" && hasStrayUser(u):
		return noURL(address, hint)
	case u.User != nil:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read address",
			Msg:  fmt.Sprintf("%q signs in, and a bucket takes credentials", disdel.Redacted(address)),
			Hint: "put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
		}
	case u.Scheme != "s3":
		return nil
	}
	asks := os.Getenv(metadataVariable) == "false"
	if !asks {
		os.Setenv(metadataVariable, "true") //nolint:errcheck // the name is well-formed
	}
	shared := sharedSettings()
	switch {
	case !asks && !shared && u.Query().Get("region") == "" && !anySet(regionVariables):
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "open bucket", Msg: "nothing says in which region " + u.Host + " is",
			Hint: fmt.Sprintf("--storage 's3://%s%s?region=REGION', or AWS_REGION", u.Host, u.Path),
		}
	case !asks && !shared && !anySet(credentialVariables) && u.Query().Get("anonymous") != "true":
		return &disdel.Error{
			Kind: disdel.Denied, Op: "open bucket", Msg: "there are no credentials for " + u.Host,
			Hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE; " + metadataVariable +
				"=false asks the machine's metadata service",
		}
	}
	return nil
}

func anySet(variables []string) bool {
	return slices.ContainsFunc(variables, func(name string) bool { return os.Getenv(name) != "" })
}

// sharedSettings says whether the SDK's settings files exist.
func sharedSettings() bool {
	dir, _ := os.UserHomeDir() // without one there are none
	for variable, name := range map[string]string{
		"AWS_CONFIG_FILE":             "config",
		"AWS_SHARED_CREDENTIALS_FILE": "credentials",
	} {
		path := os.Getenv(variable)
		if path == "" {
			path = filepath.Join(dir, ".aws", name)
		}
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// RedisServers splits a list of Redis addresses at its commas. Sentinels may share the scheme, the user and the master:
// redis-sentinel://A:26379,B:26379/MASTER is two addresses.
func RedisServers(list string) (out []string) {
	start := "" // scheme and user of the sentinel before
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		if !strings.Contains(text, "://") {
			text = start + text
		}
		out = append(out, text)
		scheme, rest, _ := strings.Cut(text, "://")
		user, _, known := strings.Cut(rest, "@")
		if start = ""; strings.HasSuffix(scheme, sentinelScheme) {
			if start = scheme + "://"; known {
				start += user + "@"
			}
		}
	}
	for i := len(out) - 2; i >= 0; i-- {
		scheme, rest, _ := strings.Cut(out[i], "://")
		_, next, _ := strings.Cut(out[i+1], "://")
		_, master, known := strings.Cut(next, "/")
		if known && strings.HasSuffix(scheme, sentinelScheme) && !strings.Contains(rest, "/") {
			out[i] += "/" + master
		}
	}
	return out
}

// sentinelScheme ends the scheme of a sentinel's address.
const sentinelScheme = "-sentinel"
