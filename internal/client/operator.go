package client

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/disdel/disdel/internal/addresses"
)

// operatorToken is the token of who runs a server of a home on this machine, "" where there is none, or the server is
// elsewhere.
func operatorToken(home, server string) string {
	u, err := url.Parse(server)
	if err != nil || !addresses.Loopback(u.Hostname()) {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(home, "server.token"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
