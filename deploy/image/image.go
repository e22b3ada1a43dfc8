// Package image builds the container image of the action runtime: one static program, certificate authorities, and a
// user who is not root. It needs no container engine.
//
// The same Options and files give the same bits on every machine. An image is written to a folder (OCI layout), to a
// file for `docker load`, or to a registry.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/disdel/disdel"
)

// Options are the parts of an image.
type Options struct {
	Program      string // path of a static Linux program: disdel-runtime, or an action with a custom network
	Certificates string // path of certificate authorities in PEM, for rediss:// and https:// servers
	Version      string // label of the image
	Revision     string // revision of the source; "": no label

	Python *Python // nil: the image has no Python. Only Make uses it
}

// Paths and user in an image.
const (
	programPath      = "/disdel-runtime"
	certificatesPath = "/etc/ssl/certs/ca-certificates.crt"
	user             = 65532 // a user without rights, because OpenWhisk needs no root
)

// Build builds an image without Python. It returns Invalid for a program that needs other files, and NotFound for
// missing files.
func Build(o Options) (v1.Image, error) {
	architecture, err := checkProgram(o.Program)
	if err != nil {
		return nil, err
	}
	return assemble(o, architecture, nil)
}

// assemble adds the runtime to a base. Without one, the image has nothing else.
func assemble(o Options, architecture string, below *base) (v1.Image, error) {
	files, err := readFiles(o)
	if err != nil {
		return nil, err
	}
	kind := types.OCILayer
	if below != nil {
		kind = below.layerType()
	}
	layer, err := layerOf(files, kind)
	if err != nil {
		return nil, imageError("make layer", o.Program, err)
	}
	image, layers := v1.Image(nil), []v1.Layer{layer}
	if below != nil {
		packages, err := below.layer()
		if err != nil {
			return nil, imageError("make layer", o.Python.Requirements, err)
		}
		image, layers = below.image, []v1.Layer{packages, layer}
	} else {
		image = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	}
	for _, layer := range layers {
		if image, err = mutate.Append(image, mutate.Addendum{
			Layer: layer, History: v1.History{CreatedBy: "disdel deploy image", Created: v1.Time{Time: epoch}},
		}); err != nil {
			return nil, imageError("make image", o.Program, err)
		}
	}
	image, err = mutate.ConfigFile(image, configOf(image, o, architecture))
	if err != nil {
		return nil, imageError("make image", o.Program, err)
	}
	return image, nil
}

// epoch is the time of everything in an image, so that equal files give equal images.
var epoch = time.Unix(0, 0).UTC()

func configOf(image v1.Image, o Options, architecture string) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		c = &v1.ConfigFile{} // cannot happen for an image in memory
	}
	c = c.DeepCopy()
	environment := []string{"PATH=/", "HOME=/tmp"}
	if len(c.Config.Env) > 0 { // of a base
		environment = withPython(c.Config.Env)
	}
	c.OS, c.Architecture, c.Created = "linux", architecture, v1.Time{Time: epoch}
	c.Config = v1.Config{
		Entrypoint:   []string{programPath},
		User:         fmt.Sprintf("%d:%d", user, user),
		WorkingDir:   "/",
		Env:          environment,
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "disdel-runtime",
			"org.opencontainers.image.description": "actions of disdel for Apache OpenWhisk: train, aggregate, evaluate, infer",
			"org.opencontainers.image.version":     o.Version,
		},
	}
	if o.Revision != "" {
		c.Config.Labels["org.opencontainers.image.revision"] = o.Revision
	}
	return c
}

// checkProgram returns a program's processor architecture. It refuses programs that need a loader or libraries, because
// the image has none.
func checkProgram(name string) (architecture string, err error) {
	refuse := func(msg, hint string) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "make image", Msg: name + " " + msg, Hint: hint}
	}
	if _, err := os.Stat(name); err != nil {
		return "", imageError("make image", name, err)
	}
	f, err := elf.Open(name)
	if err != nil {
		return "", refuse("is not a program for Linux", "GOOS=linux go build builds one; --program FILE names it")
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", refuse("needs libraries, which the image does not have", "build it with CGO_ENABLED=0")
		}
	}
	switch f.Machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	default:
		return "", refuse(fmt.Sprintf("is for %v", f.Machine), "there are images for amd64 and arm64")
	}
}

// entry is a file or, if data is nil, a folder of an image.
type entry struct {
	path string
	mode int64
	data []byte
}

func readFiles(o Options) ([]entry, error) {
	program, err := os.ReadFile(o.Program)
	if err != nil {
		return nil, imageError("read program", o.Program, err)
	}
	certificates, err := os.ReadFile(o.Certificates)
	if err != nil {
		return nil, imageError("read certificates", o.Certificates, err)
	}
	if !bytes.Contains(certificates, []byte("-----BEGIN CERTIFICATE-----")) {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "make image", Msg: o.Certificates + " holds no certificate in PEM",
			Hint: "--certificates FILE; Debian's package ca-certificates has one in " + certificatesPath,
		}
	}
	passwd := fmt.Sprintf("disdel:x:%d:%d::/tmp:/none\n", user, user)
	return []entry{
		{programPath, 0o755, program},
		{"/etc", 0o755, nil},
		{"/etc/passwd", 0o644, []byte(passwd)},
		{"/etc/ssl", 0o755, nil},
		{"/etc/ssl/certs", 0o755, nil},
		{certificatesPath, 0o644, certificates},
		{"/tmp", 0o1777, nil},
	}, nil
}

// layerOf packs files without times, owned by root.
func layerOf(files []entry, kind types.MediaType) (v1.Layer, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, f := range files {
		h := &tar.Header{
			Name: f.path[1:], Mode: f.mode, Size: int64(len(f.data)), ModTime: epoch, Format: tar.FormatUSTAR,
			Typeflag: tar.TypeReg,
		}
		if f.data == nil {
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithCompressedCaching, tarball.WithCompressionLevel(gzip.DefaultCompression),
		tarball.WithMediaType(kind))
}

// SystemCertificates is where Debian and most other systems keep certificate authorities.
const SystemCertificates = certificatesPath

// Target is where an image goes: a registry, unless Layout or Tar is set.
type Target struct {
	Reference string // REGISTRY/NAME:TAG
	Layout    string // folder
	Tar       string // file; Reference is the image's name in it
}

// Made is an image that was built.
type Made struct {
	Reference  string       `json:"reference,omitempty"`
	Digest     string       `json:"digest"` // as `docker pull` shows it
	Size       disdel.Bytes `json:"sizeBytes"`
	Compressed disdel.Bytes `json:"compressedBytes"` // bytes that a node pulls
	Pushed     bool         `json:"pushed"`
	Layout     string       `json:"layout,omitempty"`
	Tar        string       `json:"tar,omitempty"`
}

// Print writes the result as text.
func (m Made) Print(w io.Writer) {
	where := "pushed " + m.Reference
	if !m.Pushed {
		where = "wrote " + cmp.Or(m.Layout, m.Tar)
	}
	fmt.Fprintf(w, "%s\n%s, %v, %v to pull\n", where, m.Digest, m.Size, m.Compressed)
	if m.Pushed {
		fmt.Fprintf(w, "use it: disdel submit JOB --apihost URL --image %s\n", m.Reference)
	}
}

// FindProgram returns name, or without a name disdel-runtime beside this program, whose path self returns. It returns
// NotFound with the command that builds it.
func FindProgram(name string, self func() (string, error)) (string, error) {
	if name == "" {
		own, err := self()
		if err != nil {
			return "", imageError("find runtime", "disdel-runtime", err)
		}
		name = filepath.Join(filepath.Dir(own), "disdel-runtime")
	}
	if _, err := os.Stat(name); err != nil {
		return "", &disdel.Error{
			Kind: disdel.NotFound, Op: "find runtime", Msg: "there is no " + name,
			Hint: "make build; or name it: --program FILE",
		}
	}
	return name, nil
}

// Make builds an image and writes it to its target. It returns Invalid without a target or with two, and for a base or
// packages of Python that do not fit; and the errors of Build, WriteLayout, WriteTar and Push.
func Make(ctx context.Context, o Options, to Target) (Made, error) {
	switch {
	case to.Layout != "" && to.Tar != "":
		return Made{}, targetError("--layout and --tar are two targets", "build two images; they have the same bits")
	case to.Reference == "" && to.Layout == "":
		return Made{}, targetError("the image has no target",
			"disdel deploy image REGISTRY/NAME:TAG, or --layout FOLDER")
	}
	folder, err := os.MkdirTemp("", "disdel-image-")
	if err != nil {
		return Made{}, imageError("make a folder", os.TempDir(), err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // what stays is in the temp folder
	image, err := o.image(ctx, folder)
	if err != nil {
		return Made{}, err
	}
	made := Made{Reference: to.Reference, Layout: to.Layout, Tar: to.Tar}
	switch {
	case to.Layout != "":
		err = WriteLayout(to.Layout, image)
	case to.Tar != "":
		err = WriteTar(to.Tar, to.Reference, image)
	default:
		made.Pushed, err = true, Push(ctx, to.Reference, image)
	}
	if err != nil {
		return Made{}, err
	}
	return made, made.measure(image)
}

// image builds the image, with Python if it is asked for. Packages lie in a folder, which the image needs until it is
// written.
func (o Options) image(ctx context.Context, folder string) (v1.Image, error) {
	if o.Python == nil {
		return Build(o)
	}
	architecture, err := checkProgram(o.Program)
	if err != nil {
		return nil, err
	}
	below, err := pythonBase(ctx, *o.Python, architecture, folder)
	if err != nil {
		return nil, err
	}
	return assemble(o, architecture, below)
}

func targetError(msg, hint string) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "make image", Msg: msg, Hint: hint}
}

// measure sets digest and sizes.
func (m *Made) measure(image v1.Image) error {
	digest, err := image.Digest()
	if err != nil {
		return imageError("measure image", m.Reference, err)
	}
	m.Digest = digest.String()
	layers, err := image.Layers()
	if err != nil {
		return imageError("measure image", m.Reference, err)
	}
	for _, layer := range layers {
		compressed, err := layer.Size()
		if err != nil {
			return imageError("measure image", m.Reference, err)
		}
		m.Compressed += disdel.Bytes(compressed)
		content, err := layer.Uncompressed()
		if err != nil {
			return imageError("measure image", m.Reference, err)
		}
		n, err := io.Copy(io.Discard, content)
		if err = errors.Join(err, content.Close()); err != nil {
			return imageError("measure image", m.Reference, err)
		}
		m.Size += disdel.Bytes(n)
	}
	return nil
}

// WriteLayout writes an image as an OCI layout into a folder, which it creates if necessary. It returns Conflict for a
// folder with other files.
func WriteLayout(folder string, image v1.Image) error {
	files, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return imageError("write layout", folder, err)
	}
	path, err := layout.FromPath(folder)
	switch {
	case err == nil:
	case len(files) > 0:
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "write layout", Msg: folder + " has other files",
			Hint: "name a folder that is empty or missing",
		}
	default:
		if path, err = layout.Write(folder, empty.Index); err != nil {
			return imageError("write layout", folder, err)
		}
	}
	digest, err := image.Digest()
	if err != nil {
		return imageError("write layout", folder, err)
	}
	// replaces an equal image, so that the index names it once
	err = path.ReplaceImage(image, func(d v1.Descriptor) bool { return d.Digest == digest })
	return imageError("write layout", folder, err)
}

// WriteTar writes an image with its reference into a file for `docker load`.
func WriteTar(file, reference string, image v1.Image) error {
	tag, err := tagOf(reference)
	if err != nil {
		return err
	}
	return imageError("write image", file, tarball.WriteToFile(file, tag, image))
}

// Push sends an image to the registry of its reference, with the login of `docker login`. It returns Denied,
// Unavailable, and Canceled if ctx ends.
func Push(ctx context.Context, reference string, image v1.Image) error {
	tag, err := tagOf(reference)
	if err != nil {
		return err
	}
	err = remote.Write(tag, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	return imageError("push image", reference, err)
}

// tagOf parses a reference. It refuses an image without a tag and the tag latest, because OpenWhisk pulls these at
// every cold start and fails if it cannot.
func tagOf(reference string) (name.Tag, error) {
	tag, err := name.NewTag(reference, name.WithDefaultTag(""))
	if err != nil {
		return tag, &disdel.Error{
			Kind: disdel.Invalid, Op: "name image", Msg: err.Error(), Hint: "write REGISTRY/NAME:TAG",
		}
	}
	if s := tag.TagStr(); s == "" || s == "latest" {
		return tag, &disdel.Error{
			Kind: disdel.Invalid, Op: "name image", Msg: reference + " has no explicit tag",
			Hint: "write " + strings.TrimSuffix(reference, ":latest") +
				":TAG; OpenWhisk pulls latest at every cold start, and fails where it cannot",
		}
	}
	return tag, nil
}

// imageError is the error of a file or registry of an image.
func imageError(op, subject string, err error) error {
	if err == nil {
		return nil
	}
	e := &disdel.Error{Kind: disdel.Unavailable, Op: op, Msg: subject, Err: err}
	var answer *transport.Error
	switch {
	case errors.Is(err, context.Canceled):
		e.Kind = disdel.Canceled
	case errors.Is(err, fs.ErrNotExist):
		e.Kind = disdel.NotFound
	case errors.Is(err, fs.ErrPermission):
		e.Kind = disdel.Denied
	case errors.As(err, &answer) &&
		(answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		e.Kind, e.Hint = disdel.Denied, "docker login REGISTRY, or another reference"
	}
	return e
}
