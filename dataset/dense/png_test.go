package dense

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawn is a picture with slopes and noise, so that all filters come up.
func drawn(rng *rand.Rand, width, height int, gray bool) image.Image {
	if gray {
		img := image.NewGray(image.Rect(0, 0, width, height))
		for i := range img.Pix {
			img.Pix[i] = byte(i*3) + byte(rng.IntN(9))
		}
		return img
	}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			n := byte(rng.IntN(20))
			img.SetRGBA(x, y, color.RGBA{byte(5*x) + n, byte(7*y) + n, byte(x*y) - n, 255})
		}
	}
	return img
}

// planes is what image/png makes of a file.
func planes(file []byte, channels int) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	size := img.Bounds().Size()
	d := decoded{pixels: make([]byte, channels*size.X*size.Y), canvas: image.NewRGBA(image.Rect(0, 0, size.X, size.Y))}
	d.draw(img)
	d.part(d.canvas.Pix, channels)
	return d.pixels, nil
}

// The short way reads what the long one reads.
func TestPNG(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var p pngReader
	for i := range 60 {
		width, height, gray := 1+rng.IntN(40), 1+rng.IntN(40), i%3 == 0
		channels := 3
		if gray {
			channels = 1
		}
		img := drawn(rng, width, height, gray)
		var file bytes.Buffer
		level := []png.CompressionLevel{png.DefaultCompression, png.NoCompression, png.BestSpeed, png.BestCompression}[i%4]
		if err := (&png.Encoder{CompressionLevel: level}).Encode(&file, img); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, channels*width*height)
		if !p.read(file.Bytes(), channels, height, width, got) {
			t.Fatalf("%dx%d of %d channels is not read", height, width, channels)
		}
		want := slices.Clone(got)
		switch img := img.(type) {
		case *image.Gray:
			copy(want, img.Pix)
		default:
			var err error
			if want, err = planes(file.Bytes(), channels); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%dx%d of %d channels is another picture", height, width, channels)
		}
		if p.read(file.Bytes(), channels, height+1, width, make([]byte, channels*(height+1)*width)) ||
			p.read(file.Bytes(), 4-channels, height, width, make([]byte, 3*height*width)) {
			t.Error("another size, or another color")
		}
	}
}

// A damaged file is left to image/png, or is read as that reads it.
func TestDamagedPNG(t *testing.T) {
	var file bytes.Buffer
	if err := png.Encode(&file, drawn(rand.New(rand.NewPCG(3, 4)), 9, 7, false)); err != nil {
		t.Fatal(err)
	}
	var p pngReader
	got := make([]byte, 3*9*7)
	for at := range file.Len() {
		for _, bit := range []byte{1, 32, 128} {
			bad := bytes.Clone(file.Bytes())
			bad[at] ^= bit
			if !p.read(bad, 3, 7, 9, got) {
				continue
			}
			if want, err := planes(bad, 3); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("byte %d: %v", at, err)
			}
		}
		if p.read(file.Bytes()[:at], 3, 7, 9, got) {
			t.Fatalf("%d bytes are a picture", at)
		}
	}
	if p.read(append(file.Bytes(), 0), 3, 7, 9, got) {
		t.Error("something follows the picture")
	}
	bad := bytes.Clone(file.Bytes()) // the checksum of the pixels alone: that of their chunk, before IEND, is right
	end := len(bad) - 12 - 4
	begin := bytes.Index(bad, []byte("IDAT"))
	bad[end-1] ^= 1
	binary.BigEndian.PutUint32(bad[end:], crc32.ChecksumIEEE(bad[begin:end]))
	if _, err := planes(bad, 3); err == nil || p.read(bad, 3, 7, 9, got) {
		t.Errorf("other pixels than those that were packed: %v", err)
	}
	bad = bytes.Clone(file.Bytes()) // a window that is wider than any is, with its check and its chunk's checksum right
	copy(bad[begin+4:], []byte{0x88, 0x1c})
	binary.BigEndian.PutUint32(bad[end:], crc32.ChecksumIEEE(bad[begin:end]))
	if _, err := planes(bad, 3); err == nil || p.read(bad, 3, 7, 9, got) {
		t.Errorf("a window of 64 KiB: %v", err)
	}
}
