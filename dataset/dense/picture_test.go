package dense

import (
	"bytes"
	"errors"
	"image/color"
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
		"one of many pixels": bytes.Replace(whole, []byte{0, 0, 0, 4, 0, 0, 0, 2}, []byte{0, 8, 0, 0, 0, 8, 0, 0}, 1),
	} {
		if _, _, err := Picture(data, 3, 2, 4); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Picture(whole, 2, 2, 4); !errors.Is(err, disdel.Invalid) {
		t.Errorf("of two channels: %v", err)
	}
}
