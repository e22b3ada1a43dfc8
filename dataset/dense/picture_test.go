package dense

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// A picture alone becomes the row that it becomes in a data set of its folder.
func TestAPictureAloneIsThatOfAFolder(t *testing.T) {
	files := map[string][]byte{
		"a/1.png": asPNG(one(red, 4, 2)), "a/2.jpg": asJPEG(one(color.NRGBA{R: 10, G: 200, B: 90, A: 255}, 7, 5)),
		"b/3.png": asPNG(one(color.NRGBA{R: 90, G: 20, B: 200, A: 100}, 4, 2)),
		"b/4.png": asPNG(one(blue, 9, 9)),
	}
	for _, gray := range []bool{false, true} {
		root := t.TempDir()
		put(t, root, files)
		in, err := Pictures{Folder: root, Height: 2, Width: 4, Gray: gray}.Input("set")
		if err != nil {
			t.Fatal(err)
		}
		names, at := []string{"a/1.png", "a/2.jpg", "b/3.png", "b/4.png"}, 0
		err = in.Each(func(row dataset.DenseRow) error {
			pixels, shape, err := Picture(files[names[at]], in.Shape[0], 2, 4)
			if err != nil || !bytes.Equal(pixels, row.Bytes) || shape[0] != in.Shape[0] || shape[1] != 2 || shape[2] != 4 {
				t.Errorf("%s: %v of shape %v, want %v, %v", names[at], pixels, shape, row.Bytes, err)
			}
			at++
			return nil
		})
		if err != nil || at != 4 {
			t.Fatal(at, err)
		}
	}
	if _, shape, err := Picture(files["b/4.png"], 3, 0, 0); err != nil || shape[1] != 9 || shape[2] != 9 {
		t.Errorf("a picture as large as it is: %v, %v", shape, err)
	}
	whole := files["a/1.png"]
	for name, data := range map[string][]byte{
		"nothing": nil, "a text": []byte("x"), "half of one": whole[:len(whole)/2],
		"one of many pixels": claiming(whole, 1<<19, 1<<19),
	} {
		if _, _, err := Picture(data, 3, 2, 4); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Picture(whole, 2, 2, 4); !errors.Is(err, disdel.Invalid) {
		t.Errorf("of two channels: %v", err)
	}
}

// A small file whose scaling would take any memory, or more than can be counted, is refused, alone and in a folder.
func TestPicturesThatTakeAnyMemoryAreRefused(t *testing.T) {
	thin := asPNG(image.NewGray(image.Rect(0, 0, 1, 1<<16)))
	for _, size := range [][2]int{{1, 1 << 14}, {1, 40_000}} { // rows and columns: 32 GiB, and more than 32 bits count
		if _, _, err := Picture(thin, 1, size[0], size[1]); !errors.Is(err, disdel.Invalid) ||
			!strings.Contains(err.Error(), "cannot be brought") {
			t.Errorf("brought to %v: %v", size, err)
		}
	}
	root := t.TempDir()
	put(t, root, map[string][]byte{"a/1.png": thin, "b/2.png": thin})
	in, err := Pictures{Folder: root, Height: 1, Width: 40_000, Gray: true}.Input("set")
	if err == nil {
		err = in.Each(func(dataset.DenseRow) error { return nil })
	}
	if err == nil || !strings.Contains(err.Error(), "cannot be brought") {
		t.Errorf("in a folder: %v", err)
	}
	whole := asPNG(one(red, 4, 2))
	for name, c := range map[string]struct{ columns, rows, height int }{
		"one of any pixels":                {1 << 14, 1<<12 + 1, 2},
		"one of a long side":               {4, 1<<16 + 1, 2},
		"one that stays as large as it is": {1 << 12, 1<<12 + 1, 0},
	} {
		_, _, err := Picture(claiming(whole, c.columns, c.rows), 3, c.height, 4)
		if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "is not read") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// claiming is a PNG file whose head tells of another size.
func claiming(file []byte, columns, rows int) []byte {
	out := bytes.Clone(file) // a signature, a length, the head's name, its 13 bytes and their checksum
	binary.BigEndian.PutUint32(out[16:], uint32(columns))
	binary.BigEndian.PutUint32(out[20:], uint32(rows))
	binary.BigEndian.PutUint32(out[29:], crc32.ChecksumIEEE(out[12:29]))
	return out
}
