package local

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
)

// Key is the user's OpenWhisk key: DISDEL_AUTH; or the key of `disdel platform up` in the same home, if apihost is its
// address; or AUTH of wsk's properties file, if apihost is that file's server. No other server gets a key.
func Key(home, apihost string) (string, error) {
	if key := os.Getenv("DISDEL_AUTH"); key != "" {
		return key, nil
	}
	if own := ReadProperties(PropertiesFile(home)); own["APIHOST"] == strings.TrimSuffix(apihost, "/") &&
		own["AUTH"] != "" {
		return own["AUTH"], nil
	}
	path := WskFile()
	wsk := ReadProperties(path)
	key, whose := wsk["AUTH"], wsk["APIHOST"]
	if key != "" && whose != "" && addresses.SameServer(whose, apihost) {
		return key, nil
	}
	out := &disdel.Error{
		Kind: disdel.Denied, Op: "find the OpenWhisk key", Msg: "neither DISDEL_AUTH nor AUTH in " + path + " is set",
		Hint: "wsk property set --auth KEY, or put it into DISDEL_AUTH",
	}
	if key != "" {
		out.Msg = fmt.Sprintf("the key in %s is for %s, not for %s", path,
			cmp.Or(disdel.Redacted(whose), "no server that it names"), disdel.Redacted(apihost))
		out.Hint = "put the key for " + disdel.Redacted(apihost) +
			" into DISDEL_AUTH, or leave --apihost and DISDEL_APIHOST to the server of that file"
	}
	return "", out
}

// WskFile is wsk's properties file.
func WskFile() string {
	if path := os.Getenv("WSK_CONFIG_FILE"); path != "" {
		return path
	}
	dir, _ := os.UserHomeDir()
	return filepath.Join(dir, ".wskprops")
}

// OwnAddress is the address that `disdel platform up` of the same home published, if apihost is another name of it. The
// key is for that process, and another process may listen under another name.
func OwnAddress(home, apihost string) string {
	if own := ReadProperties(PropertiesFile(home))["APIHOST"]; own != "" && SameAddress(own, apihost) {
		return own
	}
	return apihost
}
