package dense

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Pictures is a folder with a folder of PNG and JPEG files for each class; or two such folders, train, and test, val,
// valid or validation, of which the second has the held-out rows.
type Pictures struct {
	Folder        string
	Test          string // folder of held-out ones; "": see above
	Height, Width int    // that all are brought to; 0: all have to be of one size
	Gray          bool   // a channel instead of three; they are gray anyway where all files are
}

// heldOutFolders are the names that the folder of held-out pictures usually has, beside train.
var heldOutFolders = []string{"test", "val", "valid", "validation"}

const (
	mostPictures = 1 << 27 // of a folder
	mostPixels   = 1 << 27 // of a picture: a few bytes of a file can claim any number
)

// Input looks at the head of every file, to find out what is in the folder. It returns Invalid, or *disdel.Faults with
// the files.
func (p Pictures) Input(name string) (in dataset.DenseInput, err error) {
	f := &folder{Pictures: p, gray: true, passed: map[string]int{}}
	if err := f.list(); err != nil {
		return in, err
	}
	if err := f.heads(); err != nil {
		return in, err
	}
	channels := 3
	if f.Gray || f.gray {
		channels = 1
	}
	in = dataset.DenseInput{
		Name: name, Title: "Pictures of " + base(filepath.Clean(p.Folder)), Shape: []int{channels, f.Height, f.Width},
		Classes: len(f.classes), LabelClasses: true, Bytes: true, Each: f.each,
	}
	if !plainNumbers(f.classes) {
		in.ClassNames = f.classes
	}
	in.Understood = f.understood(&in)
	return in, nil
}

// plainNumbers says whether names are 0, 1, 2 ... in this order, and say nothing.
func plainNumbers(names []string) bool {
	for i, n := range names {
		if n != fmt.Sprint(i) {
			return false
		}
	}
	return true
}

// folder is pictures that are being read.
type folder struct {
	Pictures
	classes []string
	files   []picture // those to learn from first
	train   int       // how many these are
	counts  []int     // of rows to learn from, by class
	gray    bool      // all files are
	resized int       // files of another size
	passed  map[string]int
}

// picture is a file.
type picture struct {
	path  string // within the folder, for messages
	file  string
	label int32
}

// list finds the files.
func (f *folder) list() error {
	root, test := f.Folder, f.Test
	if test == "" {
		root, test = halves(f.Folder)
	}
	var err error
	if f.classes, err = subfolders(root); err != nil {
		return err
	}
	if len(f.classes) < 2 {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + root,
			Msg:  fmt.Sprintf("it has %d folders, and there is one for each class", len(f.classes)),
			Hint: "put the pictures of a class into a folder of its name: " + filepath.Join(base(root), "cat", "1.png"),
		}
	}
	slices.SortFunc(f.classes, naturally)
	f.counts = make([]int, len(f.classes))
	wrong := &faults{file: f.Folder}
	if err := f.part(root, wrong); err != nil {
		return err
	}
	if f.train = len(f.files); test != "" {
		others, err := subfolders(test)
		if err != nil {
			return err
		}
		for _, name := range others {
			if !slices.Contains(f.classes, name) {
				wrong.at(0, 0, filepath.Join(base(test), name), "there is no such class to learn from")
			}
		}
		if err := f.part(test, wrong); err != nil {
			return err
		}
	}
	for i, n := range f.counts {
		if n == 0 {
			wrong.at(0, 0, f.classes[i], "the class has no picture (PNG or JPEG)")
		}
	}
	return wrong.err()
}

// halves is the folders to learn from and of held-out pictures, where there are two such.
func halves(root string) (train, test string) {
	train = filepath.Join(root, "train")
	if !isFolder(train) {
		return root, ""
	}
	for _, name := range heldOutFolders {
		if test = filepath.Join(root, name); isFolder(test) {
			return train, test
		}
	}
	return train, ""
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// subfolders are the names of the folders in one, without hidden ones and those that archives of other systems have.
func subfolders(root string) (names []string, err error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + root, Err: plain(err), Hint: "check the folder's name"}
	}
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name(), ".") || e.Name() == "__MACOSX"
		if !hidden && isFolder(filepath.Join(root, e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// part lists the pictures of a folder, class by class.
func (f *folder) part(root string, wrong *faults) error {
	for label, class := range f.classes {
		top := filepath.Join(root, class)
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil && path == top && errors.Is(err, fs.ErrNotExist):
				return nil // a class without held-out pictures
			case err != nil:
				return err
			case strings.HasPrefix(d.Name(), ".") && d.IsDir():
				return fs.SkipDir
			case d.IsDir():
				return nil
			}
			rel, _ := filepath.Rel(f.Folder, path)
			switch ending := strings.ToLower(filepath.Ext(path)); ending {
			case ".png", ".jpg", ".jpeg":
				if len(f.files) >= mostPictures {
					return fmt.Errorf("it has more than %d pictures", mostPictures)
				}
				f.files = append(f.files, picture{path: rel, file: path, label: int32(label)})
				if f.train == 0 {
					f.counts[label]++
				}
			case ".gif", ".bmp", ".webp", ".tif", ".tiff":
				wrong.at(0, 0, rel, "pictures are PNG or JPEG, and this is %s", strings.TrimPrefix(ending, "."))
			default:
				f.passed[ending]++
			}
			return nil
		})
		if err != nil {
			return &disdel.Error{Kind: disdel.Invalid, Op: "read " + root, Err: plain(err)}
		}
	}
	return nil
}

// understood is what the folder was taken for.
func (f *folder) understood(in *dataset.DenseInput) dataset.Understood {
	u := dataset.Understood{
		Kind:   fmt.Sprintf("pictures of %d classes, a folder each", len(f.classes)),
		Values: fmt.Sprintf("bytes, as 0..1 from 0..255, of %dx%d pixels in color", f.Height, f.Width), Rows: f.train,
		HeldOut: len(f.files) - f.train,
		Example: dataset.Example{Place: f.files[0].path, Class: f.classes[f.files[0].label]},
	}
	if in.Shape[0] == 1 {
		u.Values = strings.Replace(u.Values, "in color", "in gray", 1)
	}
	for i, n := range f.counts {
		u.Classes = append(u.Classes, dataset.ClassRows{Name: f.classes[i], Rows: n})
	}
	if f.resized > 0 {
		u.Notes = append(u.Notes,
			fmt.Sprintf("%d of %d pictures had another size and are brought to %dx%d, whatever their sides",
				f.resized, len(f.files), f.Height, f.Width))
	}
	for ending, n := range f.passed {
		u.Passed = append(u.Passed, fmt.Sprintf("%d files %q: no pictures", n, "*"+ending))
	}
	slices.Sort(u.Passed)
	return u
}
