package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/disdel/disdel"
)

// Options is what an image is made of.
type Options struct {
	Program      string // file of disdel-runtime, or of an action with a network of its own: static, for Linux
	Certificates string // file of authorities in PEM, which rediss:// and https:// servers are checked against
	Version      string // what the image says it is
	Revision     string // of the source; "" leaves the label out
}

// Where things are in an image.
const (
	programPath      = "/disdel-runtime"
	certificatesPath = "/etc/ssl/certs/ca-certificates.crt"
	user             = 65532 // who has no rights anywhere; OpenWhisk needs none of root's
)

// Build makes an image. It returns Invalid for a program that cannot run in an image without files of its own, and
// NotFound for files that are not there.
func Build(o Options) (v1.Image, error) {
	architecture, err := checkProgram(o.Program)
	if err != nil {
		return nil, err
	}
	files, err := readFiles(o)
	if err != nil {
		return nil, err
	}
	layer, err := layerOf(files)
	if err != nil {
		return nil, fault("make layer", o.Program, err)
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, History: v1.History{CreatedBy: "disdel deploy image", Created: v1.Time{Time: never}},
	})
	if err != nil {
		return nil, fault("make image", o.Program, err)
	}
	image, err = mutate.ConfigFile(image, configOf(image, o, architecture))
	if err != nil {
		return nil, fault("make image", o.Program, err)
	}
	return image, nil
}

// never is the time of everything in an image: a clock would make two images of the same files differ.
var never = time.Unix(0, 0).UTC()

func configOf(image v1.Image, o Options, architecture string) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		c = &v1.ConfigFile{} // of an image made in memory there is no such error
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = "linux", architecture, v1.Time{Time: never}
	c.Config = v1.Config{
		Entrypoint:   []string{programPath},
		User:         fmt.Sprintf("%d:%d", user, user),
		WorkingDir:   "/",
		Env:          []string{"PATH=/", "HOME=/tmp"},
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

// checkProgram tells which processor a program is for, and refuses one that needs a loader or libraries: an image from
// nothing has none.
func checkProgram(name string) (architecture string, err error) {
	refuse := func(msg, hint string) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "make image", Msg: name + " " + msg, Hint: hint}
	}
	if _, err := os.Stat(name); err != nil {
		return "", fault("make image", name, err)
	}
	f, err := elf.Open(name)
	if err != nil {
		return "", refuse("is no program for Linux", "GOOS=linux go build builds one; --program FILE names it")
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", refuse("needs libraries that an image from nothing has not", "build it with CGO_ENABLED=0")
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

// entry is a file or, where data is nil, a folder of an image.
type entry struct {
	path string
	mode int64
	data []byte
}

func readFiles(o Options) ([]entry, error) {
	program, err := os.ReadFile(o.Program)
	if err != nil {
		return nil, fault("read program", o.Program, err)
	}
	certificates, err := os.ReadFile(o.Certificates)
	if err != nil {
		return nil, fault("read certificates", o.Certificates, err)
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

// layerOf packs files with no time and no owner but root's.
func layerOf(files []entry) (v1.Layer, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, f := range files {
		h := &tar.Header{
			Name: f.path[1:], Mode: f.mode, Size: int64(len(f.data)), ModTime: never, Format: tar.FormatUSTAR,
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
		tarball.WithMediaType(types.OCILayer))
}
