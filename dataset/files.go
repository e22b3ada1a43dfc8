package dataset

import (
	"os"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// Files is a data set that comes as files, plain or gzip.
type Files struct {
	Format                 Format // "": IDX
	Images, Labels         string // names of files; of CIFAR Images is the folder of all files, and nothing else is named
	TestImages, TestLabels string // of held-out rows; both "": none
	Layout                 Layout // of images with several channels; "": CHW
	ClassNames             []string
}

// Parts is a data set in the format IDX that has been read.
type Parts struct {
	Images, Labels         IDX
	TestImages, TestLabels *IDX   // of held-out rows; both nil: none
	Layout                 Layout // "": CHW
	ClassNames             []string
}

// Input reads the files. It returns Invalid for those that cannot be read, or are damaged.
func (f Files) Input(name string) (Input, error) {
	in, err := f.input(name)
	if disdel.KindOf(err) == disdel.Corrupt { // nothing that disdel keeps is damaged
		told := *disdel.AsError(err)
		told.Kind = disdel.Invalid
		err = &told
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

// Input is the parts as a data set to add. Bytes are kept as 0..1 from 0..255, floats as their owner scaled them.
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
