package local

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/files"
)

// PropertiesFile is the file that tells wsk and other processes of the home how to reach the platform.
func PropertiesFile(home string) string { return filepath.Join(home, "wskprops") }

// ReadProperties reads a properties file of wsk. A file that cannot be read has no properties.
func ReadProperties(path string) map[string]string {
	out := map[string]string{}
	f, err := os.Open(path)
	if err != nil {
		return out
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if k, v, ok := strings.Cut(lines.Text(), "="); ok {
			out[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	return out
}

// WriteProperties sets properties in a file of wsk and keeps the other lines. Only the user may read the file, because
// it has a key.
func WriteProperties(path string, set [][2]string) error {
	text, err := withProperties(path, set)
	if err == nil {
		err = files.Replace(path, ".disdel-*", text)
	}
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "write " + path, Err: files.Plain(err),
			Hint: "name a file you can write with --wskprops",
		}
	}
	return nil
}

func withProperties(path string, set [][2]string) ([]byte, error) {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out bytes.Buffer
	for _, p := range set {
		fmt.Fprintf(&out, "%s=%s\n", p[0], p[1])
	}
	for line := range strings.Lines(string(old)) {
		name, _, _ := strings.Cut(line, "=")
		if !slices.ContainsFunc(set, func(p [2]string) bool { return p[0] == strings.TrimSpace(name) }) {
			out.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	return out.Bytes(), nil
}

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
