package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/disdel/disdel"
)

// Python is what actions of users' Python programs need in an image.
type Python struct {
	Requirements string // path of a requirements.txt; pip installs its packages as wheels
	Interpreter  string // with pip and the Python of the base; "": python3
	Base         string // a tar file of `docker save`, or a reference; "": python:X.Y-slim-bookworm of the interpreter
}

// pythonVariable names the interpreter of an image. The runtime takes it where a job names a Python that is not there.
const pythonVariable = "DISDEL_PYTHON"

// base is an image of Python, with the layer of the packages that were installed for it.
type base struct {
	image    v1.Image
	packages string // file of the layer
}

// pythonBase fetches the base of an image and packs the packages into a folder.
func pythonBase(ctx context.Context, p Python, architecture, folder string) (*base, error) {
	if _, err := os.Stat(p.Requirements); err != nil {
		return nil, imageError("read requirements", p.Requirements, err)
	}
	interpreter, version, err := p.interpreter(ctx)
	if err != nil {
		return nil, err
	}
	from := cmp.Or(p.Base, "python:"+version+"-slim-bookworm")
	image, err := fetch(ctx, from, architecture)
	if err != nil {
		return nil, err
	}
	c, err := image.ConfigFile()
	if err != nil {
		return nil, imageError("read image", from, err)
	}
	if err := fits(from, c, architecture, interpreter, version); err != nil {
		return nil, err
	}
	packages := filepath.Join(folder, "packages")
	if err := install(ctx, interpreter, architecture, p.Requirements, packages); err != nil {
		return nil, err
	}
	b := &base{image: image, packages: filepath.Join(folder, "packages.tar.gz")}
	return b, imageError("pack packages", p.Requirements, packFolder(b.packages, packages, sitePackages(version)))
}

// sitePackages is where the official images of Python look for packages.
func sitePackages(version string) string { return "/usr/local/lib/python" + version + "/site-packages" }

// interpreter finds the Python whose pip installs packages, and its version, such as 3.12.
func (p Python) interpreter(ctx context.Context) (file, version string, err error) {
	const question = "import sys; print('%d.%d' % sys.version_info[:2])"
	file = cmp.Or(p.Interpreter, "python3")
	out, err := exec.CommandContext(ctx, file, "-c", question).Output()
	if err != nil {
		return file, "", &disdel.Error{
			Kind: disdel.Invalid, Op: "make image", Msg: file + " is no Python that runs", Err: err,
			Hint: "--interpreter PATH names the Python whose pip installs the packages",
		}
	}
	return file, strings.TrimSpace(string(out)), nil
}

// fetch reads an image from a tar file, or from a registry.
func fetch(ctx context.Context, from, architecture string) (v1.Image, error) {
	if filepath.Ext(from) == ".tar" {
		image, err := tarball.ImageFromPath(from, nil)
		return image, imageError("read image", from, err)
	}
	reference, err := name.ParseReference(from)
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "name image", Msg: err.Error(), Hint: "--base NAME:TAG"}
	}
	image, err := remote.Image(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
	if err != nil {
		e := disdel.AsError(imageError("pull image", from, err))
		e.Hint = cmp.Or(e.Hint, "without this registry: docker save "+from+" > base.tar where it is, then --base base.tar")
		return nil, e
	}
	return image, nil
}

// fits returns Invalid for a base whose Python or processor is another one. pip reads conditions of packages with the
// interpreter that runs it, so that only the same version installs the right ones.
func fits(from string, c *v1.ConfigFile, architecture, interpreter, version string) error {
	refuse := func(msg, hint string) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "make image", Msg: from + " " + msg, Hint: hint}
	}
	has := ""
	for _, variable := range c.Config.Env {
		if value, ok := strings.CutPrefix(variable, "PYTHON_VERSION="); ok {
			has = value
		}
	}
	switch {
	case has == "":
		return refuse("does not say which Python it has (PYTHON_VERSION)",
			"--base takes an official image of Python, or one made from it; deploy/Dockerfile.python makes others")
	case !strings.HasPrefix(has+".", version+"."):
		return refuse(fmt.Sprintf("has Python %s, and %s is Python %s", has, interpreter, version),
			fmt.Sprintf("--base python:%s-slim-bookworm, or name the same Python: --interpreter PATH", version))
	case c.Architecture != architecture:
		return refuse(fmt.Sprintf("is for %s, and the runtime is for %s", c.Architecture, architecture),
			"name another base, or another runtime: --program FILE")
	}
	return nil
}

// newestGlibc is the minor version of the C library that wheels may need: the one of Debian 12.
const newestGlibc = 36

// install installs packages as wheels into a folder. Programs of packages stay out: they name this machine's Python.
func install(ctx context.Context, interpreter, architecture, requirements, folder string) error {
	args := []string{
		"-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile", "--target", folder,
		"--only-binary=:all:", "-r", requirements,
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[architecture]
	args = append(args, "--platform", "manylinux2014_"+machine) // the same wheels on every machine
	for glibc := 17; glibc <= newestGlibc; glibc++ {
		args = append(args, "--platform", fmt.Sprintf("manylinux_2_%d_%s", glibc, machine))
	}
	said, err := exec.CommandContext(ctx, interpreter, args...).CombinedOutput()
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "make image", Err: err,
			Msg:  fmt.Sprintf("pip cannot install %s: %s", requirements, lastLines(said)),
			Hint: "each package needs a wheel; lines such as --find-links FOLDER in the file name where they are",
		}
	}
	err = os.RemoveAll(filepath.Join(folder, "bin"))
	return imageError("install packages", requirements, errors.Join(err, os.MkdirAll(folder, 0o755)))
}

// lastLines is the end of what a program said, on one line.
func lastLines(said []byte) string {
	const most = 4
	lines := strings.Split(string(bytes.TrimSpace(said)), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "; ")
}

// packFolder packs a folder's files below another path into a compressed archive, in order and without times.
func packFolder(file, folder, below string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packed := gzip.NewWriter(out)
	w := tar.NewWriter(packed)
	err = filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		return packFile(w, name, path.Join(below, filepath.ToSlash(inside)), e)
	})
	return errors.Join(err, w.Close(), packed.Close())
}

// packFile adds a file or a folder to an archive, readable for everybody.
func packFile(w *tar.Writer, name, as string, e fs.DirEntry) error {
	h := &tar.Header{Name: as[1:] + "/", Mode: 0o755, ModTime: epoch, Format: tar.FormatPAX, Typeflag: tar.TypeDir}
	if e.IsDir() {
		return w.WriteHeader(h)
	}
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	h.Name, h.Typeflag, h.Size = as[1:], tar.TypeReg, info.Size()
	if info.Mode().Perm()&0o111 == 0 {
		h.Mode = 0o644
	}
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}

// layer is the layer of the packages.
func (b *base) layer() (v1.Layer, error) {
	return tarball.LayerFromFile(b.packages, tarball.WithMediaType(b.layerType()))
}

// layerType is the media type of the base's layers: a manifest has layers of one family.
func (b *base) layerType() types.MediaType {
	if kind, err := b.image.MediaType(); err == nil && kind == types.DockerManifestSchema2 {
		return types.DockerLayer
	}
	return types.OCILayer
}

// withPython is the environment of a base, with its interpreter and a home that can be written.
func withPython(variables []string) []string {
	variables = slices.DeleteFunc(slices.Clone(variables), func(v string) bool {
		return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, pythonVariable+"=")
	})
	return append(variables, "HOME=/tmp", pythonVariable+"=/usr/local/bin/python3")
}
