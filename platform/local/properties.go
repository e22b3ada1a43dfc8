package local

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/disdel/disdel"
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
		if !hasProperty(set, strings.TrimSpace(name)) {
			out.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	return out.Bytes(), nil
}

func hasProperty(set [][2]string, name string) bool {
	for _, p := range set {
		if p[0] == name {
			return true
		}
	}
	return false
}
