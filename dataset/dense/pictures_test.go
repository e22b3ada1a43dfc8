package dense

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// put writes files below a folder.
func put(t testing.TB, root string, list map[string][]byte) {
	t.Helper()
	for name, data := range list {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// one is a picture of a single color.
func one(c color.Color, width, height int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		img.Set(i%width, i/width, c)
	}
	return img
}

func asPNG(img image.Image) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func asJPEG(img image.Image) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

var (
	red  = color.NRGBA{R: 255, A: 255}
	blue = color.NRGBA{B: 255, A: 255}
)

// A class is a folder; its pictures become rows of three channels, in the order of their names.
func TestAFolderOfPictures(t *testing.T) {
	root := t.TempDir()
	put(t, root, map[string][]byte{
		"dog/2.png": asPNG(one(blue, 2, 1)), "dog/1.JPG": asJPEG(one(color.Gray{Y: 100}, 2, 1)),
		"cat/a.png":         asPNG(one(red, 2, 1)),
		"cat/.hidden/x.png": nil, ".git/x.png": nil, "cat/notes.txt": []byte("x"), "readme.md": nil,
	})
	in, err := Pictures{Folder: root}.Input("pets")
	if err != nil {
		t.Fatal(err)
	}
	rows := all(t, in)
	if !slices.Equal(in.Shape, []int{3, 1, 2}) || !slices.Equal(in.ClassNames, []string{"cat", "dog"}) || len(rows) != 3 {
		t.Fatalf("%v %v %v", in.Shape, in.ClassNames, rows)
	}
	if r := rows[0]; !slices.Equal(r.Bytes, []byte{255, 255, 0, 0, 0, 0}) || r.Label != 0 {
		t.Errorf("%+v", r)
	}
	if r := rows[1]; r.Bytes[0] != 100 || r.Bytes[5] != 100 || r.Label != 1 {
		t.Errorf("%+v", r)
	}
	u := in.Understood
	if u.Rows != 3 || u.Example.Place != filepath.Join("cat", "a.png") || len(u.Passed) != 1 ||
		!slices.Equal(u.Classes, []dataset.ClassRows{{Name: "cat", Rows: 1}, {Name: "dog", Rows: 2}}) {
		t.Errorf("%+v", u)
	}
}

// A table names the file and the class of each picture. All wrong rows are told with their lines.
func TestPicturesWithATableOfLabels(t *testing.T) {
	folder := t.TempDir()
	put(t, folder, map[string][]byte{
		"a.png": asPNG(one(red, 1, 1)), "b.png": asPNG(one(blue, 1, 1)), "c.png": asPNG(one(red, 1, 1)),
	})
	for name, c := range map[string]struct {
		table, label string
		classes      []string
	}{
		"header":    {"id,file,kind,more\n7,b.png,dog,x\n8,a.png,cat,y\n", "kind", []string{"cat", "dog"}},
		"no header": {"b.png,dog\na.png,cat\n", "", []string{"cat", "dog"}},
		"endings":   {"\ufefflabel;file\n1;b\n0;a\n", "", nil},
		"folder": {
			fmt.Sprintf("%s/b.png,dog\n%s/a,cat\n", folder, filepath.Base(folder)), "", []string{"cat", "dog"},
		},
	} {
		from := dataset.TextSource("labels.csv", c.table)
		in, err := Pictures{Folder: folder, Labels: &from, Label: c.label}.Input("a")
		if err != nil {
			t.Errorf("%s: %v", name, told(err))
			continue
		}
		rows := all(t, in)
		if len(rows) != 2 || rows[0].Label != 1 || rows[0].Bytes[2] != 255 || rows[1].Label != 0 || rows[1].Bytes[0] != 255 ||
			!slices.Equal(in.ClassNames, c.classes) {
			t.Errorf("%s: %q %v", name, in.ClassNames, rows)
		}
	}
	for table, says := range map[string]string{
		"file,y\na.png,0\nb.png,1\n../a.png,1\nx.png,0\na.png,1\nc.png,\nd.png\n": "labels.csv:4:1: files: " +
			`"../a.png" is no PNG or JPEG|labels.csv:5:1: files: "x.png" is no|:6:1: files: "a.png" is named twice|` +
			`:7:2: label: "c.png" has no label|:8:1: columns: it has 1, and the first line 2`,
		"file,y\na.png,0\nb.png,1\n./a,1\n":        `:4:1: files: "./a" is named twice`,
		"file,y\na.png,0\nb.png,1\n/etc/a.png,1\n": `:4:1: files: "/etc/a.png" is no PNG`,
		"file,y\nx,0\n":                           "no column names a PNG or JPEG file",
		"file,y\na.png,0\nb.png,0\n":              `it is "0" in all rows`,
		"file,y\na.png,0.5\nb.png,1.7\nc.png,0.9": "is a target",
		"":          "there are none",
		"a.png,\"0": "quotes",
	} {
		from := dataset.TextSource("labels.csv", table)
		_, err := Pictures{Folder: folder, Labels: &from}.Input("a")
		for part := range strings.SplitSeq(says, "|") {
			if disdel.KindOf(err) != disdel.Invalid || !strings.Contains(told(err), part) {
				t.Errorf("%q: no %q in %v", table, part, told(err))
			}
		}
	}
}

// Folders train and val, or test, have rows to learn from and held-out ones; classes of numbers go by their value.
func TestHeldOutPictures(t *testing.T) {
	root := t.TempDir()
	gray := image.NewGray(image.Rect(0, 0, 1, 2))
	gray.Pix = []byte{7, 9}
	put(t, root, map[string][]byte{
		"train/10/a.png": asPNG(gray), "train/9/a.png": asPNG(gray), "val/9/b.png": asPNG(gray),
	})
	in, err := Pictures{Folder: root}.Input("digits-of-mine")
	if err != nil {
		t.Fatal(err)
	}
	rows := all(t, in)
	if !slices.Equal(in.Shape, []int{1, 2, 1}) || !slices.Equal(in.ClassNames, []string{"9", "10"}) {
		t.Errorf("%v %v", in.Shape, in.ClassNames)
	}
	if len(rows) != 3 || !rows[2].HeldOut || rows[2].Label != 0 || !slices.Equal(rows[2].Bytes, []byte{7, 9}) {
		t.Errorf("%+v", rows)
	}
}

// Pictures of many sizes are brought to one that is asked for: what was all of one color still is.
func TestPicturesAreBroughtToOneSize(t *testing.T) {
	root := t.TempDir()
	put(t, root, map[string][]byte{
		"a/1.png": asPNG(one(red, 31, 17)), "b/1.png": asPNG(one(blue, 3, 5)), "b/2.png": asPNG(one(color.NRGBA{}, 4, 4)),
	})
	_, err := Pictures{Folder: root}.Input("a")
	if got := told(err); !strings.Contains(got, "b/1.png: it has 3x5 pixels, and a/1.png 31x17") ||
		!strings.Contains(got, "--size") {
		t.Error(got)
	}
	in, err := Pictures{Folder: root, Height: 4, Width: 4}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	rows := all(t, in)
	for i, want := range [][3]byte{{255, 0, 0}, {0, 0, 255}, {255, 255, 255}} { // the last one is not there: white
		for k, v := range rows[i].Bytes {
			if v != want[k/16] {
				t.Fatalf("picture %d, value %d: %d", i, k, v)
			}
		}
	}
	if u := in.Understood; len(u.Notes) != 1 || !strings.Contains(u.Notes[0], "2 of 3") {
		t.Errorf("%+v", u)
	}
	in, err = Pictures{Folder: root, Height: 1, Width: 1, Gray: true}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	if got := all(t, in)[0].Bytes; !slices.Equal(got, []byte{76}) { // 0.299 of 255
		t.Errorf("%v", got)
	}
}

// What is wrong with files is said of all of them at once, also of those whose head was right.
func TestFaultsOfPictures(t *testing.T) {
	whole := asPNG(one(red, 40, 40))
	good := map[string][]byte{"a/1.png": whole, "b/1.png": whole}
	for name, c := range map[string]struct {
		more map[string][]byte
		want []string
	}{
		"no pictures":    {map[string][]byte{"a/2.png": []byte("hello"), "b/2.jpg": nil}, []string{"a/2.png: ", "b/2.jpg: "}},
		"other pictures": {map[string][]byte{"a/2.gif": nil}, []string{"a/2.gif: pictures are PNG or JPEG, and this is gif"}},
		"an empty class": {map[string][]byte{"c/notes.txt": nil}, []string{"c: the class has no picture"}},
	} {
		root := t.TempDir()
		put(t, root, good)
		put(t, root, c.more)
		_, err := Pictures{Folder: root}.Input("a")
		for _, want := range c.want {
			if got := told(err); disdel.KindOf(err) != disdel.Invalid || !strings.Contains(got, want) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	root := t.TempDir()
	put(t, root, good)
	put(t, root, map[string][]byte{"a/2.png": whole[:len(whole)-20], "b/2.png": whole[:len(whole)-30]})
	in, err := Pictures{Folder: root}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = in.Each(func(dataset.DenseRow) error { n++; return nil })
	if got := told(err); !strings.Contains(got, "a/2.png") || !strings.Contains(got, "b/2.png") || n != 1 {
		t.Errorf("%d rows, %s", n, got)
	}
	for _, root := range []string{filepath.Join(root, "a"), filepath.Join(root, "nothing")} {
		if _, err := (Pictures{Folder: root}).Input("a"); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%s: %v", root, err)
		}
	}
}

func ExamplePictures() {
	root, err := os.MkdirTemp("", "pets-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	for _, class := range []string{"cat", "dog"} {
		os.Mkdir(filepath.Join(root, class),
			0o700) //nolint:errcheck // see Input
		os.WriteFile(filepath.Join(root, class, "1.png"), asPNG(image.NewGray(image.Rect(0, 0, 8, 8))),
			0o600) //nolint:errcheck // see Input
	}
	in, err := Pictures{Folder: root}.Input("pets")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(in.Shape, in.ClassNames)
	fmt.Println(in.Understood.Values)
	// Output:
	// [1 8 8] [cat dog]
	// bytes, as 0..1 from 0..255, of 8x8 pixels in gray
}
