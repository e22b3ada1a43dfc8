package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// part is a module that a program was linked from.
type part struct {
	path, version, sum string
	licence            string   // in SPDX's words; empty: not recognised
	texts              [][]byte // of its licence and its notices
}

// partsOf lists the modules in a program, as the Go command wrote them into it, and the standard library.
func partsOf(root, program string) ([]part, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	folders, err := folders(root)
	if err != nil {
		return nil, err
	}
	goroot, err := output(exec.Command("go", "env", "GOROOT"))
	if err != nil {
		return nil, err
	}
	parts := []part{{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")}}
	folders["std"] = goroot
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s, which a list of parts cannot name", m.Path, m.Replace.Path)
		}
		parts = append(parts, part{path: m.Path, version: m.Version, sum: m.Sum})
	}
	for i := range parts {
		p := &parts[i]
		if p.texts, err = licenceTexts(folders[p.path]); err != nil {
			return nil, fmt.Errorf("%s %s: %w", p.path, p.version, err)
		}
		p.licence = spdx(p.texts[0])
	}
	return parts, nil
}

// folders are the folders of all modules of the build, by their paths.
func folders(root string) (map[string]string, error) {
	c := exec.Command("go", "list", "-m", "-json", "all")
	c.Dir = root
	said, err := output(c)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(said)); ; {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out[m.Path] = m.Dir
	}
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([-_.].*)?$`)

// licenceTexts reads the files with licences and notices of a module, licences first.
func licenceTexts(folder string) (texts [][]byte, err error) {
	if folder == "" {
		return nil, errors.New("the module is not on this machine: go mod download")
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int {
		return strings.Compare(strings.ToLower(a.Name()), strings.ToLower(b.Name()))
	})
	for _, e := range entries {
		if !licenceFile.MatchString(e.Name()) || e.IsDir() || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, data)
	}
	if len(texts) == 0 {
		return nil, errors.New("no licence was found in " + folder)
	}
	return texts, nil
}

// spdx names the licence of a text by words that only this licence has.
func spdx(text []byte) string {
	words := strings.ToLower(string(bytes.Join(bytes.Fields(text), []byte(" "))))
	has := func(phrase string) bool { return strings.Contains(words, phrase) }
	switch {
	case has("apache license version 2.0"):
		return "Apache-2.0"
	case has("mozilla public license version 2.0"), has("mozilla public license, version 2.0"):
		return "MPL-2.0"
	case has("permission to use, copy, modify, and/or distribute this software"),
		has("permission to use, copy, modify, and distribute this software"):
		return "ISC"
	case has("permission is hereby granted, free of charge"):
		return "MIT"
	case has("redistribution and use in source and binary forms") && has("neither the name"):
		return "BSD-3-Clause"
	case has("redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	case has("this is free and unencumbered software"):
		return "Unlicense"
	}
	return ""
}

// notices are the licences of all parts in one text.
func notices(parts []part) []byte {
	var out bytes.Buffer
	out.WriteString("The programs of this archive contain the following parts of others, under their licences.\n")
	for _, p := range parts {
		fmt.Fprintf(&out, "\n%s\n%s %s\n%s\n", strings.Repeat("=", 80), p.path, p.version, strings.Repeat("=", 80))
		for _, text := range p.texts {
			fmt.Fprintf(&out, "\n%s\n", bytes.TrimSpace(text))
		}
	}
	return out.Bytes()
}
