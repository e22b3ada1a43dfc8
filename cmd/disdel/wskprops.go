package main

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
)

// propertiesFile is where `disdel platform up` tells wsk, and every other disdel of the same home, how to reach it.
func propertiesFile(home string) string { return filepath.Join(home, "wskprops") }

// readProperties reads a file as wsk writes it; one that cannot be read has no properties.
func readProperties(path string) map[string]string {
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

// writeProperties sets properties in a file of wsk's and keeps the other lines, which are the user's. Only the user may read
// it: it holds a key.
func writeProperties(path string, set [][2]string) error {
	text, err := withProperties(path, set)
	if err == nil {
		err = replaceFile(path, text)
	}
	if err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "write " + path, Err: plainPathError(err), Hint: "name a file you can write with --wskprops"}
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

// replaceFile writes whole files only: wsk may read at any moment. A link, as of people who keep their dot files elsewhere,
// stays one.
func replaceFile(path string, data []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".disdel-*") // readable by the user alone
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name()) //nolint:errcheck // the first error is the one to tell
	}
	return err
}
