package dataset

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// Format is a format of data set files.
type Format string

// The formats that are read.
const (
	FormatIDX      Format = "idx"
	FormatCIFAR10  Format = "cifar10"  // A. Krizhevsky's binary version: a label, then 3 x 32 x 32 bytes a row
	FormatCIFAR100 Format = "cifar100" // the same with two labels, of which the second, fine one is learned
)

// Formats returns the names of all formats.
func Formats() []string {
	return []string{string(FormatIDX), string(FormatCIFAR10), string(FormatCIFAR100)}
}

// cifar describes one of the two data sets in their binary version.
type cifar struct {
	title           string
	classes, labels int    // labels: bytes before the image, of which the last is the class
	train           string // pattern of the files of training rows
	test, names     string
}

var cifars = map[Format]cifar{
	FormatCIFAR10: {
		title: "CIFAR-10, 32x32", classes: 10, labels: 1, train: "data_batch_[0-9].bin", test: "test_batch.bin",
		names: "batches.meta.txt",
	},
	FormatCIFAR100: {
		title: "CIFAR-100, 32x32", classes: 100, labels: 2, train: "train.bin", test: "test.bin",
		names: "fine_label_names.txt",
	},
}

const (
	cifarSide    = 32
	cifarImage   = 3 * cifarSide * cifarSide
	cifarLicense = "A. Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009"
)

// ReadCIFAR reads a folder with the files of CIFAR's binary version, as unpacked from its archive: data_batch_1.bin
// and so on with test_batch.bin, or train.bin with test.bin. Rows of a test file are held out. Classes get the names
// in the folder's list, if it exists. Pixels 0..255 stand for 0..1. It returns Invalid for a folder without the
// files, and Corrupt for files that are no whole number of rows or have an unknown class.
func ReadCIFAR(name, folder string, format Format) (Input, error) {
	set, ok := cifars[format]
	in := Input{Name: name, Title: set.title, License: cifarLicense, Classes: set.classes, Scale: 1.0 / 255}
	if !ok {
		return in, &disdel.Error{
			Kind: disdel.Invalid, Op: "read data set", Msg: fmt.Sprintf("%q is no format of CIFAR", format),
			Hint: "use cifar10 or cifar100",
		}
	}
	train, err := filepath.Glob(filepath.Join(literal(folder), set.train)) // in the order of their names
	if err != nil || len(train) == 0 {
		return in, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + folder, Msg: "it has no " + set.train,
			Hint: fmt.Sprintf("name the folder that the binary version of %s unpacks to", set.title),
		}
	}
	in.Train = Samples{Shape: []int{3, cifarSide, cifarSide}}
	for _, file := range train {
		if err := set.read(file, &in.Train); err != nil {
			return in, err
		}
	}
	if test := filepath.Join(folder, set.test); exists(test) {
		in.Test = &Samples{Shape: in.Train.Shape}
		if err := set.read(test, in.Test); err != nil {
			return in, err
		}
	}
	in.ClassNames = set.classNames(filepath.Join(folder, set.names))
	return in, nil
}

// literal quotes a folder's name for a pattern.
func literal(folder string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(folder)
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

// read adds the rows of a file, plain or gzip.
func (c cifar) read(file string, to *Samples) error {
	rows := 0
	err := eachRow(file, c.labels+cifarImage, func(row []byte) error {
		label := int32(row[c.labels-1])
		if int(label) >= c.classes {
			return damaged(file, "the label of row %d is %d, and there are %d classes", rows, label, c.classes)
		}
		to.Labels, to.U8 = append(to.Labels, label), append(to.U8, row[c.labels:]...)
		rows++
		return nil
	})
	if err == nil && rows == 0 {
		err = damaged(file, "it is empty")
	}
	return err
}

// classNames reads one name per line; it returns none without such a file, or without one name for each class.
func (c cifar) classNames(file string) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil // the names are optional
	}
	defer f.Close()
	var out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if word := strings.TrimSpace(lines.Text()); word != "" {
			out = append(out, word)
		}
	}
	if len(out) != c.classes {
		return nil
	}
	return out
}

// eachRow calls f with every so many bytes of a file. The bytes are valid until f returns.
func eachRow(file string, size int, f func(row []byte) error) error {
	in, err := os.Open(file)
	if err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "read " + file, Err: files.Plain(err), Hint: "check the file's name"}
	}
	defer in.Close()
	plain, err := expand(in)
	if err != nil {
		return err
	}
	return plain.rows(file, size, f)
}

func (x *expanded) rows(file string, size int, f func(row []byte) error) error {
	row := make([]byte, size)
	for {
		switch n, err := io.ReadFull(x, row); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return damaged(file, "it ends after %d of the %d bytes of a row", n, size)
		case err != nil:
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
}

// Files is a data set in files, plain or gzip.
type Files struct {
	Format                 Format // "": IDX
	Images, Labels         string // names of files; for CIFAR Images is the folder of all files, and the others are empty
	TestImages, TestLabels string // of held-out rows; both "": none
	Layout                 Layout // of images with several channels; "": CHW
	ClassNames             []string
}

// Parts is a data set in the format IDX, in memory.
type Parts struct {
	Images, Labels         IDX
	TestImages, TestLabels *IDX   // of held-out rows; both nil: none
	Layout                 Layout // "": CHW
	ClassNames             []string
}

// Input reads the files. It returns Invalid for those that cannot be read, or are damaged.
func (f Files) Input(name string) (Input, error) {
	in, err := f.input(name)
	if disdel.KindOf(err) == disdel.Corrupt { // the user's file is damaged, nothing of disdel
		shown := *disdel.AsError(err)
		shown.Kind = disdel.Invalid
		err = &shown
	}
	return in, err
}

func (f Files) input(name string) (Input, error) {
	if f.Format != "" && f.Format != FormatIDX {
		in, err := ReadCIFAR(name, f.Images, f.Format)
		if len(f.ClassNames) > 0 {
			in.ClassNames = f.ClassNames
		}
		return in, err
	}
	p := Parts{Layout: f.Layout, ClassNames: f.ClassNames}
	for _, read := range []struct {
		file string
		into func(x IDX)
	}{
		{f.Images, func(x IDX) { p.Images = x }},
		{f.Labels, func(x IDX) { p.Labels = x }},
		{f.TestImages, func(x IDX) { p.TestImages = &x }},
		{f.TestLabels, func(x IDX) { p.TestLabels = &x }},
	} {
		if read.file == "" {
			continue
		}
		x, err := readFile(read.file)
		if err != nil {
			return Input{Name: name}, err
		}
		read.into(x)
	}
	return p.Input(name)
}

// Input returns the parts as a data set to add. Bytes 0..255 stand for 0..1; floats are unchanged.
func (p Parts) Input(name string) (in Input, err error) {
	layout := p.Layout
	if layout == "" {
		layout = CHW
	}
	in = Input{Name: name, ClassNames: p.ClassNames, Classes: len(p.ClassNames)}
	if in.Train, err = FromIDX(p.Images, p.Labels, layout); err != nil {
		return in, err
	}
	if in.Train.U8 != nil {
		in.Scale = 1.0 / 255
	}
	if p.TestImages == nil || p.TestLabels == nil {
		return in, nil
	}
	test, err := FromIDX(*p.TestImages, *p.TestLabels, layout)
	in.Test = &test
	return in, err
}

func readFile(name string) (IDX, error) {
	fail := func(kind disdel.Kind, msg, hint string, err error) (IDX, error) {
		return IDX{}, &disdel.Error{Kind: kind, Op: "read " + name, Msg: msg, Hint: hint, Err: err}
	}
	f, err := os.Open(name)
	if err != nil {
		return fail(disdel.Invalid, "", "check the file's name", files.Plain(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return fail(disdel.Invalid, "it is a folder", "name one IDX file", nil)
	}
	x, err := ReadIDX(f)
	if err != nil {
		e := disdel.AsError(err)
		return fail(e.Kind, e.Msg, e.Hint, nil)
	}
	return x, nil
}
