package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/disdel/disdel"
)

// SystemCertificates is where Debian and most others keep the authorities that a machine trusts.
const SystemCertificates = certificatesPath

// Target is where an image goes: to the registry of its reference, unless it goes into a file or a folder.
type Target struct {
	Reference string // REGISTRY/NAME:TAG
	Layout    string // folder
	Tar       string // file; the reference is then the image's name in it
}

// Made is an image that was made.
type Made struct {
	Reference  string       `json:"reference,omitempty"`
	Digest     string       `json:"digest"` // what `docker pull` shows, and REFERENCE@DIGEST pins
	Size       disdel.Bytes `json:"sizeBytes"`
	Compressed disdel.Bytes `json:"compressedBytes"` // what a node pulls
	Pushed     bool         `json:"pushed"`
	Layout     string       `json:"layout,omitempty"`
	Tar        string       `json:"tar,omitempty"`
}

// Print writes what was made as text.
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

// FindProgram is the runtime that goes into an image: name, or disdel-runtime beside the program that self finds. It
// returns NotFound with the command that builds it.
func FindProgram(name string, self func() (string, error)) (string, error) {
	if name == "" {
		own, err := self()
		if err != nil {
			return "", fault("find runtime", "disdel-runtime", err)
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

// Make builds an image and brings it to its target. It returns Invalid where there is none, or more than one, and the
// errors of Build, WriteLayout, WriteTar and Push.
func Make(ctx context.Context, o Options, to Target) (Made, error) {
	switch {
	case to.Layout != "" && to.Tar != "":
		return Made{}, target("--layout and --tar are two targets", "make two images; they are the same bits")
	case to.Reference == "" && to.Layout == "":
		return Made{}, target("nothing says where the image goes",
			"disdel deploy image REGISTRY/NAME:TAG, or --layout FOLDER")
	}
	image, err := Build(o)
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

func target(msg, hint string) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "make image", Msg: msg, Hint: hint}
}

// measure fills in what is known of an image once it is made.
func (m *Made) measure(image v1.Image) error {
	digest, err := image.Digest()
	if err != nil {
		return fault("measure image", m.Reference, err)
	}
	m.Digest = digest.String()
	layers, err := image.Layers()
	if err != nil {
		return fault("measure image", m.Reference, err)
	}
	for _, layer := range layers {
		compressed, err := layer.Size()
		if err != nil {
			return fault("measure image", m.Reference, err)
		}
		m.Compressed += disdel.Bytes(compressed)
		content, err := layer.Uncompressed()
		if err != nil {
			return fault("measure image", m.Reference, err)
		}
		n, err := io.Copy(io.Discard, content)
		if err = errors.Join(err, content.Close()); err != nil {
			return fault("measure image", m.Reference, err)
		}
		m.Size += disdel.Bytes(n)
	}
	return nil
}
