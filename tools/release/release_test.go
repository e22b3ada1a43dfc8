package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The same files give the same bytes, and the archive brings them back.
func TestTheSameFilesMakeTheSameArchive(t *testing.T) {
	files := []file{{"disdel", []byte("program"), 0o755}, {"NOTICES.txt", bytes.Repeat([]byte("x"), 5000), 0o644}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a, err := pack("disdel_v1", files, at)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := pack("disdel_v1", files, at); err != nil || !bytes.Equal(a, b) {
		t.Errorf("two archives of the same files differ, %v", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(a))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for _, want := range files {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil || h.Name != "disdel_v1/"+want.name || h.Mode != want.mode || !h.ModTime.Equal(at) || h.Uid != 0 ||
			!bytes.Equal(data, want.data) {
			t.Errorf("%+v, %d bytes, %v", h, len(data), err)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("more follows: %v", err)
	}
}

// A program's parts are those that the Go command wrote into it, each with the text of its licence.
func TestPartsHaveLicences(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := partsOf("..", self)
	if err != nil {
		t.Fatal(err)
	}
	if parts[0].path != "std" || parts[0].licence != "BSD-3-Clause" || len(parts[0].texts) == 0 {
		t.Errorf("the standard library: %+v", parts[0].licence)
	}
	r := release{version: "v1", revision: "abc"}
	if b := r.bill(parts); len(b.Parts) != len(parts) || b.Parts[0].Licences[0].Licence.ID != "BSD-3-Clause" {
		t.Errorf("%+v", b)
	}
	if text := notices(parts); !bytes.Contains(text, []byte("Redistribution and use")) {
		t.Error("the notices have no licence")
	}
}

// Licences are recognised by their own words, however lines are broken.
func TestLicencesAreRecognised(t *testing.T) {
	for want, text := range map[string]string{
		"Apache-2.0": "Apache License\n   Version 2.0, January 2004", "MPL-2.0": "Mozilla Public License Version 2.0",
		"MIT":          "Permission is hereby\ngranted, free of charge, to any person",
		"ISC":          "Permission to use, copy, modify, and distribute this software for any purpose",
		"BSD-3-Clause": "Redistribution and use in source and binary forms ... Neither the name of",
		"BSD-2-Clause": "Redistribution and use in source and binary forms", "": "all rights reserved",
	} {
		if got := spdx([]byte(text)); got != want {
			t.Errorf("%q is taken for %q, want %q", text, got, want)
		}
	}
}

// The packages that call what only Linux has also compile for the other system of a release.
func TestThePackagesCompileForMacOS(t *testing.T) {
	c := exec.Command("go", "build", "./internal/files", "./history/couchlite", "./runtime", "./runtime/engine/python",
		"./platform", "./platform/local", "./service/program")
	c.Dir = filepath.Join("..", "..")
	c.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// Files that differ from the commit are refused, and so is a version that is no file's name.
func TestADirtyTreeIsRefused(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		who := []string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.org"}
		c := exec.Command("git", append(who, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	git("init", "-q")
	if err := os.WriteFile(filepath.Join(root, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", "a")
	git("commit", "-qm", "a")
	r := release{root: root, version: "v1"}
	if err := r.describe(false); err != nil || len(r.revision) != 40 || r.time.IsZero() {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.WriteFile(filepath.Join(root, "a"), []byte("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.describe(false); err == nil {
		t.Error("a changed file was taken")
	}
	if err := r.describe(true); err != nil {
		t.Error(err)
	}
	r.version = "v1/2"
	if err := r.describe(true); err == nil {
		t.Error("a version with a slash was taken")
	}
}

// dpkg reads the package and unpacks its files with their modes; the same files give the same bytes.
func TestDpkgReadsThePackage(t *testing.T) {
	files := []file{{"disdel", []byte("program"), 0o755}, {"NOTICES.txt", []byte("licences\n"), 0o644}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	deb, err := debian("v0.1.0", "amd64", files, at)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := debian("v0.1.0", "amd64", files, at); err != nil || !bytes.Equal(deb, again) {
		t.Errorf("two packages of the same files differ, %v", err)
	}
	program, err := exec.LookPath("dpkg-deb")
	if err != nil {
		t.Skip("there is no dpkg-deb")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "disdel.deb")
	if err := os.WriteFile(path, deb, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "--field", path, "Package", "Version", "Architecture").CombinedOutput()
	if err != nil || string(out) != "Package: disdel\nVersion: 0.1.0\nArchitecture: amd64\n" {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := exec.Command(program, "--extract", path, filepath.Join(dir, "root")).CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	for name, want := range map[string]file{"usr/bin/disdel": files[0], "usr/share/doc/disdel/copyright": files[1]} {
		data, err := os.ReadFile(filepath.Join(dir, "root", name))
		if err != nil || !bytes.Equal(data, want.data) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if info, err := os.Stat(filepath.Join(dir, "root", name)); err != nil || int64(info.Mode().Perm()) != want.mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// Versions of commits are versions for dpkg, and sort below releases.
func TestDebianVersions(t *testing.T) {
	for from, want := range map[string]string{
		"v0.1.0": "0.1.0", "v0.1.0-3-gabc": "0.1.0+3+gabc", "e4c8b02": "0~e4c8b02", "1234567": "0~1234567", "": "0~",
	} {
		if got := debianVersion(from); got != want {
			t.Errorf("%q is %q, not %q", from, got, want)
		}
	}
}

// The statement names every file with the sum that SHA256SUMS has, the commit, and that nobody signed it. Every
// build writes the same.
func TestTheStatementNamesEveryFile(t *testing.T) {
	r := release{root: "..", version: "v1", revision: strings.Repeat("a", 40), dirty: true}
	var before []byte
	for range 2 {
		r.out = t.TempDir()
		for _, name := range []string{"b.deb", "a.tar.gz"} {
			if err := os.WriteFile(filepath.Join(r.out, name), []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.finish([]string{"b.deb", "a.tar.gz"}, []string{"linux/amd64"}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(r.out, "disdel_v1.intoto.json"))
		if err != nil || before != nil && !bytes.Equal(before, text) {
			t.Fatalf("two statements differ, %v", err)
		}
		before = text
	}
	check := exec.Command("sha256sum", "--quiet", "-c", "SHA256SUMS")
	check.Dir = r.out
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%s, %v", out, err)
	}
	sums, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	var s statement
	if err := json.Unmarshal(before, &s); err != nil || len(s.Subject) != 2 || s.Subject[0].Name != "a.tar.gz" {
		t.Fatalf("%+v, %v", s.Subject, err)
	}
	for _, f := range s.Subject {
		if line := f.Digest["sha256"] + "  " + f.Name + "\n"; !bytes.Contains(sums, []byte(line)) {
			t.Errorf("SHA256SUMS has no line %q", line)
		}
	}
	build := s.Predicate.Build
	if !build.External.Dirty || build.Internal.Signed || build.Dependencies[0].Digest["gitCommit"] != r.revision {
		t.Errorf("%+v", build)
	}
	for _, word := range []string{`"https://in-toto.io/Statement/v1"`, `"https://slsa.dev/provenance/v1"`, "#unsigned"} {
		if !bytes.Contains(before, []byte(word)) {
			t.Errorf("the statement has no %s", word)
		}
	}
}
