package main

import (
	"archive/tar"
	"bytes"
	"crypto/md5"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// debian makes a package for Debian and what derives from it (deb(5)): an ar archive of control data and files. It
// needs no tool of Debian. The same files give the same bytes.
//
// machine is Go's name of the processor, which Debian also uses for amd64 and arm64.
func debian(version, machine string, files []file, at time.Time) ([]byte, error) {
	var installed []file
	var sums strings.Builder
	var size int
	for _, f := range files {
		folder := "usr/share/doc/disdel"
		switch {
		case f.mode&0o111 != 0:
			folder = "usr/bin"
		case f.name == "NOTICES.txt":
			f.name = "copyright"
		}
		f.name = path.Join(folder, f.name)
		installed = append(installed, f)
		size += len(f.data)
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), f.name) // the format of md5sums, against damage only
	}
	control := fmt.Sprintf(`Package: disdel
Version: %s
Architecture: %s
Maintainer: The disdel project
Installed-Size: %d
Section: science
Priority: optional
Description: train deep-learning models as serverless actions
 disdel plans the memory and the time of training jobs, runs them as actions of Apache OpenWhisk or of its embedded
 platform, and averages their weights.
`, debianVersion(version), machine, (size+1023)/1024)
	said, err := packDebian([]file{{"control", []byte(control), 0o644}, {"md5sums", []byte(sums.String()), 0o644}}, at)
	if err != nil {
		return nil, err
	}
	data, err := packDebian(installed, at)
	if err != nil {
		return nil, err
	}
	return ar([]file{
		{"debian-binary", []byte("2.0\n"), 0o644}, {"control.tar.gz", said, 0o644}, {"data.tar.gz", data, 0o644},
	}, at), nil
}

// debianVersion turns a version of a release into one of Debian, which begins with a digit and has no hyphen without a
// revision of the package. A commit without a tag sorts before every release.
func debianVersion(v string) string {
	v = strings.ReplaceAll(strings.TrimPrefix(v, "v"), "-", "+")
	if v == "" || v[0] < '0' || v[0] > '9' || !strings.Contains(v, ".") {
		v = "0~" + v
	}
	return v
}

// packDebian makes a .tar.gz as dpkg wants it: names begin with ./, and folders come before their files.
func packDebian(files []file, at time.Time) ([]byte, error) {
	var list []tar.Header
	folders := map[string]bool{}
	for _, f := range files {
		for dir := path.Dir(f.name); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for dir := range folders {
		list = append(list, tar.Header{Typeflag: tar.TypeDir, Name: "./" + dir + "/", Mode: 0o755})
	}
	slices.SortFunc(list, func(a, b tar.Header) int { return strings.Compare(a.Name, b.Name) })
	contents := map[string][]byte{}
	for _, f := range files {
		list = append(list, tar.Header{Typeflag: tar.TypeReg, Name: "./" + f.name, Mode: f.mode, Size: int64(len(f.data))})
		contents["./"+f.name] = f.data
	}
	return packHeaders(list, contents, at)
}

// ar makes an archive as Unix' ar does (ar(5)), of files whose names have at most 15 characters.
func ar(files []file, at time.Time) []byte {
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, f := range files {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", f.name, at.Unix(), 0, 0, 0o100000|f.mode, len(f.data))
		out.Write(f.data)
		if len(f.data)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}
