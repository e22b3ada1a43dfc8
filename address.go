package disdel

import (
	"net/url"
	"strings"
)

// hidden stands where a message leaves out who signs in at an address, and with what.
const hidden = "xxxxx"

// Redacted is an address as messages, logs and records may show it: without user and password, also where it is no URL,
// as with a password that was not encoded. A message must not have the cause that url.Parse gives either: that repeats
// the address.
func Redacted(address string) string {
	u, err := url.Parse(address)
	if err == nil && u.User == nil && u.Host == "" && u.Opaque == "" {
		return address // a folder may have an @ in its name
	}
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		if err != nil { // the port of a URL without a host may be a password
			return hidden
		}
		return address
	}
	scheme, _, whole := strings.Cut(address[:at], "://")
	if !whole {
		return hidden + address[at:]
	}
	return scheme + "://" + hidden + address[at:]
}
