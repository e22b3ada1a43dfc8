package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// statement says how files were made: an in-toto statement (https://in-toto.io/Statement/v1) with the predicate of
// SLSA (https://slsa.dev/spec/v1.0/provenance).
type statement struct {
	Type          string     `json:"_type"`
	Subject       []subject  `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

// subject is a file of the release.
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"` // by the name of the hash, in hexadecimal
}

type provenance struct {
	Build struct {
		Type         string     `json:"buildType"`
		External     inputs     `json:"externalParameters"`
		Internal     setting    `json:"internalParameters"`
		Dependencies []material `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	Run struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// inputs are what whoever builds a release chooses.
type inputs struct {
	Version   string   `json:"version"`
	Platforms []string `json:"platforms"`
	Dirty     bool     `json:"dirty"` // files differed from the commit
}

// setting is what the machine adds. It names nothing that differs between two builds with the same Go.
type setting struct {
	Go     string `json:"go"`
	Signed bool   `json:"signed"` // false: anybody can have written the statement
}

type material struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest,omitempty"`
}

// provenance states how the subjects were made. It has neither times nor a machine's name, so that two builds give the
// same bytes. Nobody signs it: it reaches level 1 of SLSA's build track.
func (r *release) provenance(subjects []subject, platforms []string) ([]byte, error) {
	c := exec.Command("go", "env", "GOVERSION")
	c.Dir = r.root
	compiler, err := output(c)
	if err != nil {
		return nil, err
	}
	const home = "https://github.com/disdel/disdel"
	s := statement{
		Type: "https://in-toto.io/Statement/v1", Subject: subjects, PredicateType: "https://slsa.dev/provenance/v1",
	}
	build := &s.Predicate.Build
	build.Type = home + "/tools/release/v1"
	build.External = inputs{r.version, platforms, r.dirty}
	build.Internal = setting{Go: compiler}
	build.Dependencies = []material{
		{URI: "git+" + home, Digest: map[string]string{"gitCommit": r.revision}},
		{URI: "pkg:golang/std@" + strings.TrimPrefix(compiler, "go")},
	}
	if r.certificates != "" {
		authorities, err := os.ReadFile(r.certificates)
		if err != nil {
			return nil, err
		}
		build.Dependencies = append(build.Dependencies, material{
			URI:    "file:" + filepath.Base(r.certificates),
			Digest: map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(authorities))},
		})
	}
	s.Predicate.Run.Builder.ID = home + "/tools/release#unsigned"
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}
