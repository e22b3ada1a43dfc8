package dense

import (
	"bytes"
	"fmt"
	"image"
	"io"
	"os"

	"golang.org/x/image/draw"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// each gives the pictures, decoded on all cores and in their order: a few of them are in memory at once.
func (f *folder) each(yield func(dataset.DenseRow) error) error {
	channels := 3
	if f.Gray || f.gray {
		channels = 1
	}
	wrong, at := &faults{file: f.Folder}, 0
	err := inOrder(
		func(d *decoded) bool {
			if at == len(f.files) {
				return false
			}
			d.picture, d.heldOut = f.files[at], at >= f.train
			at++
			return true
		},
		func(d *decoded) { d.err = d.read(channels, f.Height, f.Width) },
		func(d *decoded) error {
			if d.err != nil {
				wrong.at(0, 0, d.path, "%v", d.err)
			}
			if wrong.full() {
				return errEnough
			}
			if len(wrong.list) > 0 { // nothing is written any more: what follows is read for its faults
				return nil
			}
			return yield(dataset.DenseRow{Bytes: d.pixels, Label: d.label, HeldOut: d.heldOut})
		})
	if err != nil {
		return err
	}
	return wrong.err()
}

// decoded is a picture as a row, [channels height width].
type decoded struct {
	picture
	heldOut bool
	file    bytes.Buffer
	png     pngReader
	pixels  []byte
	canvas  *image.RGBA
	err     error
}

// mostFile is how large the file of a picture may be.
const mostFile = 1 << 30

// read reads the file into the memory of the one before.
func (d *decoded) read(channels, height, width int) error {
	if err := d.load(); err != nil {
		return err
	}
	return d.decode(channels, height, width)
}

// decode makes what was read a row.
func (d *decoded) decode(channels, height, width int) error {
	if d.pixels == nil {
		d.pixels = make([]byte, channels*height*width)
	}
	if d.png.read(d.file.Bytes(), channels, height, width, d.pixels) {
		return nil
	}
	img, _, err := image.Decode(bytes.NewReader(d.file.Bytes()))
	if err != nil {
		return err
	}
	fits := img.Bounds().Dx() == width && img.Bounds().Dy() == height
	switch p := img.(type) {
	case *image.Gray:
		if fits && channels == 1 {
			for y := range height {
				copy(d.pixels[y*width:(y+1)*width], p.Pix[y*p.Stride:])
			}
			return nil
		}
	case *image.RGBA: // most PNG in color: nothing has to be drawn
		if fits && p.Stride == 4*width && p.Opaque() {
			d.part(p.Pix, channels)
			return nil
		}
	}
	if d.canvas == nil {
		d.canvas = image.NewRGBA(image.Rect(0, 0, width, height))
	}
	if err := d.draw(img); err != nil {
		return err
	}
	d.part(d.canvas.Pix, channels)
	return nil
}

// Bounds of a picture that somebody sends, of which a few bytes can claim anything: its pixels, its longer side, which
// is JPEG's own bound, and its pixels where it stays as large as it is.
const (
	mostAsked    = 1 << 26
	longestAsked = 1 << 16
	mostKept     = 1 << 24
)

// mostScaled bounds what draw.BiLinear holds while it scales, four float64 for every column of the new picture and row
// of the old one; it counts them in 32 bits, and panics where that is too few.
const mostScaled = 1 << 25

// Picture is the bytes of a PNG or JPEG file as a row of a data set of pictures, [channels height width] from 0 to 255,
// brought to that size and to one channel or three as those of a folder are. A height of 0 leaves the size as it is. It
// returns the shape, and Invalid for what is no picture or one of too many pixels.
func Picture(file []byte, channels, height, width int) (pixels []byte, shape []int, err error) {
	bad := func(msg string, err error) ([]byte, []int, error) {
		return nil, nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read picture", Msg: msg, Err: err, Hint: "pictures are PNG or JPEG files",
		}
	}
	head, _, err := image.DecodeConfig(bytes.NewReader(file))
	switch {
	case err != nil:
		return bad("", err)
	case head.Width < 1 || head.Height < 1 || max(head.Width, head.Height) > longestAsked ||
		head.Width > mostAsked/head.Height || height == 0 && head.Width > mostKept/head.Height:
		return bad(fmt.Sprintf("one of %dx%d pixels is not read", head.Height, head.Width), nil)
	case channels != 1 && channels != 3:
		return bad(fmt.Sprintf("pictures have 1 channel or 3, and %d are asked for", channels), nil)
	case height == 0:
		height, width = head.Height, head.Width
	}
	d := decoded{file: *bytes.NewBuffer(file)}
	if err := d.decode(channels, height, width); err != nil {
		return bad("", err)
	}
	return d.pixels, []int{channels, height, width}, nil
}

// load reads the bytes of the file.
func (d *decoded) load() error {
	in, err := os.Open(d.picture.file)
	if err != nil {
		return plain(err)
	}
	defer in.Close()
	d.file.Reset()
	if _, err := d.file.ReadFrom(io.LimitReader(in, mostFile)); err != nil {
		return plain(err)
	}
	return nil
}

// draw brings a picture to the canvas' size, over white where it is not there at all.
func (d *decoded) draw(img image.Image) error {
	from, to := img.Bounds().Size(), d.canvas.Bounds().Size()
	if from != to && to.X > mostScaled/max(1, from.Y) {
		return fmt.Errorf("one of %dx%d pixels cannot be brought to %dx%d", from.Y, from.X, to.Y, to.X)
	}
	draw.Draw(d.canvas, d.canvas.Bounds(), image.White, image.Point{}, draw.Src)
	if from == to {
		draw.Draw(d.canvas, d.canvas.Bounds(), img, img.Bounds().Min, draw.Over)
	} else {
		draw.BiLinear.Scale(d.canvas, d.canvas.Bounds(), img, img.Bounds(), draw.Over, nil)
	}
	return nil
}

// part takes the channels of pixels apart.
func (d *decoded) part(pix []byte, channels int) {
	n := len(pix) / 4
	if channels == 1 {
		for i := range n {
			d.pixels[i] = luma(pix[4*i], pix[4*i+1], pix[4*i+2])
		}
		return
	}
	red, green, blue := d.pixels[:n], d.pixels[n:2*n], d.pixels[2*n:3*n]
	for i := range n {
		p := pix[4*i : 4*i+4]
		red[i], green[i], blue[i] = p[0], p[1], p[2]
	}
}

// luma is the gray of a color, as ITU-R BT.601 has it.
func luma(r, g, b byte) byte {
	return byte((299*uint32(r) + 587*uint32(g) + 114*uint32(b) + 500) / 1000)
}
