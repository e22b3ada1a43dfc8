package dense

import (
	"image"
	"os"
	"runtime"
	"sync"

	"golang.org/x/image/draw"

	"github.com/disdel/disdel/dataset"
)

// each gives the pictures, decoded on all cores and in their order: a few of them are in memory at once.
func (f *folder) each(yield func(dataset.DenseRow) error) error {
	channels := 3
	if f.Gray || f.gray {
		channels = 1
	}
	wrong := &faults{file: f.Folder}
	lot := make([]decoded, 2*runtime.GOMAXPROCS(0))
	for at := 0; at < len(f.files); at += len(lot) {
		part := f.files[at:min(at+len(lot), len(f.files))]
		f.decode(part, lot, channels)
		for i, p := range part {
			if lot[i].err != nil {
				wrong.at(0, 0, p.path, "%v", lot[i].err)
			}
			if len(wrong.list) > 0 { // nothing is written any more: what follows is read for its faults
				continue
			}
			if err := yield(dataset.DenseRow{Bytes: lot[i].pixels, Label: p.label, HeldOut: at+i >= f.train}); err != nil {
				return err
			}
		}
		if wrong.full() {
			break
		}
	}
	return wrong.err()
}

// decoded is a picture as a row, [channels height width].
type decoded struct {
	pixels []byte
	canvas *image.RGBA
	err    error
}

// decode reads some pictures, one on each core at a time.
func (f *folder) decode(part []picture, lot []decoded, channels int) {
	var all sync.WaitGroup
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), len(part)) {
		all.Go(func() {
			for i := range next {
				lot[i].err = lot[i].read(part[i].file, channels, f.Height, f.Width)
			}
		})
	}
	for i := range part {
		next <- i
	}
	close(next)
	all.Wait()
}

// read reads a file into the memory of the one before.
func (d *decoded) read(file string, channels, height, width int) error {
	in, err := os.Open(file)
	if err != nil {
		return plain(err)
	}
	defer in.Close()
	img, _, err := image.Decode(in)
	if err != nil {
		return err
	}
	if d.canvas == nil {
		d.canvas = image.NewRGBA(image.Rect(0, 0, width, height))
		d.pixels = make([]byte, channels*height*width)
	}
	if g, ok := img.(*image.Gray); ok && channels == 1 && g.Bounds().Dx() == width && g.Bounds().Dy() == height {
		for y := range height {
			copy(d.pixels[y*width:(y+1)*width], g.Pix[y*g.Stride:])
		}
		return nil
	}
	d.draw(img, channels)
	return nil
}

// draw brings a picture to the canvas' size, over white where it is not there at all, and takes its channels apart.
func (d *decoded) draw(img image.Image, channels int) {
	draw.Draw(d.canvas, d.canvas.Bounds(), image.White, image.Point{}, draw.Src)
	if img.Bounds().Size() == d.canvas.Bounds().Size() {
		draw.Draw(d.canvas, d.canvas.Bounds(), img, img.Bounds().Min, draw.Over)
	} else {
		draw.BiLinear.Scale(d.canvas, d.canvas.Bounds(), img, img.Bounds(), draw.Over, nil)
	}
	pix, n := d.canvas.Pix, len(d.canvas.Pix)/4
	for i := range n {
		r, g, b := pix[4*i], pix[4*i+1], pix[4*i+2]
		if channels == 1 {
			d.pixels[i] = luma(r, g, b)
			continue
		}
		d.pixels[i], d.pixels[n+i], d.pixels[2*n+i] = r, g, b
	}
}

// luma is the gray of a color, as ITU-R BT.601 has it.
func luma(r, g, b byte) byte {
	return byte((299*uint32(r) + 587*uint32(g) + 114*uint32(b) + 500) / 1000)
}
