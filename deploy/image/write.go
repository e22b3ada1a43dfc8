package image

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/disdel/disdel"
)

// WriteLayout writes an image as an OCI layout into a folder, which is made if it is missing. It returns Conflict for
// one with other files.
func WriteLayout(folder string, image v1.Image) error {
	files, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault("write layout", folder, err)
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
			return fault("write layout", folder, err)
		}
	}
	digest, err := image.Digest()
	if err != nil {
		return fault("write layout", folder, err)
	}
	// The same image again replaces itself: the index names it once.
	err = path.ReplaceImage(image, func(d v1.Descriptor) bool { return d.Digest == digest })
	return fault("write layout", folder, err)
}

// WriteTar writes an image under its reference into a file for `docker load`.
func WriteTar(file, reference string, image v1.Image) error {
	tag, err := tagOf(reference)
	if err != nil {
		return err
	}
	return fault("write image", file, tarball.WriteToFile(file, tag, image))
}

// Push sends an image to the registry of its reference, signed in as `docker login` left it. It returns Denied where
// the registry refuses, Unavailable where it does not answer, Canceled where ctx ends.
func Push(ctx context.Context, reference string, image v1.Image) error {
	tag, err := tagOf(reference)
	if err != nil {
		return err
	}
	err = remote.Write(tag, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	return fault("push image", reference, err)
}

// tagOf reads a reference. OpenWhisk pulls an image without a tag, or one that is latest, at every cold start, and a
// start whose pull fails is lost: both are refused.
func tagOf(reference string) (name.Tag, error) {
	tag, err := name.NewTag(reference, name.WithDefaultTag(""))
	if err != nil {
		return tag, &disdel.Error{
			Kind: disdel.Invalid, Op: "name image", Msg: err.Error(), Hint: "write REGISTRY/NAME:TAG",
		}
	}
	if s := tag.TagStr(); s == "" || s == "latest" {
		return tag, &disdel.Error{
			Kind: disdel.Invalid, Op: "name image", Msg: reference + " has no tag of its own",
			Hint: "write " + strings.TrimSuffix(reference, ":latest") +
				":TAG; OpenWhisk pulls latest at every cold start, and fails where it cannot",
		}
	}
	return tag, nil
}

// fault is an Error of what an image is written to or made from.
func fault(op, subject string, err error) error {
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
