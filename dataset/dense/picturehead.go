package dense

import (
	"bytes"
	"image"
	"image/color"
	_ "image/jpeg" // what image.Decode and image.DecodeConfig read
	_ "image/png"  // the same
	"io"
	"os"
)

// head is the beginning of a file.
type head struct {
	picture
	image.Config
	err   error
	begin [pngHead]byte
}

// heads looks at the head of every file: its size, and whether it is gray.
func (f *folder) heads() error {
	wrong, at := &faults{file: f.Folder}, 0
	given := f.Height > 0 && f.Width > 0
	err := inOrder(
		func(h *head) bool {
			if at == len(f.files) {
				return false
			}
			h.picture = f.files[at]
			at++
			return true
		},
		func(h *head) { h.Config, h.err = h.read() },
		func(h *head) error {
			f.look(h, given, wrong)
			if wrong.full() {
				return errEnough
			}
			return nil
		})
	if err != nil {
		return err
	}
	return wrong.err()
}

// look takes a head into account.
func (f *folder) look(h *head, given bool, wrong *faults) {
	switch {
	case h.err != nil:
		wrong.at(0, 0, h.path, "%v", h.err)
	case h.Width < 1 || h.Height < 1 || h.Width > mostPixels/h.Height:
		wrong.at(0, 0, h.path, "a picture of %dx%d pixels is not read", h.Width, h.Height)
	case f.Height == 0:
		f.Height, f.Width = h.Height, h.Width
	case h.Height != f.Height || h.Width != f.Width:
		f.resized++
		if !given {
			wrong.at(0, 0, h.path, "it has %dx%d pixels, and %s %dx%d; bring all to one size: --size %dx%d", h.Width,
				h.Height, f.files[0].path, f.Width, f.Height, f.Height, f.Width)
		}
	}
	f.gray = f.gray && h.err == nil && (h.ColorModel == color.GrayModel || h.ColorModel == color.Gray16Model)
}

func (h *head) read() (image.Config, error) {
	in, err := os.Open(h.file)
	if err != nil {
		return image.Config{}, plain(err)
	}
	defer in.Close()
	n, _ := io.ReadFull(in, h.begin[:]) // what is wrong comes again with the next read
	if config, ok := plainPNG(h.begin[:n]); ok {
		return config, nil
	}
	config, _, err := image.DecodeConfig(io.MultiReader(bytes.NewReader(h.begin[:n]), in))
	return config, err
}
