package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/dense"
)

// DenseFlags are the flags of `dataset add` for tables, arrays and pictures.
func DenseFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "test-csv", Usage: "`FILE` of held-out rows for --csv"},
		&cli.StringFlag{
			Name: "label",
			Usage: "label `COLUMN` of --csv, by name or number (default: label, class, target, y or " +
				"the last one)",
		},
		&cli.BoolFlag{
			Name:  "label-classes",
			Usage: "treat each different number of the labels as a class, however many there are",
		},
		&cli.StringFlag{Name: "skip", Usage: "`COLUMNS` of --csv to leave out, by name or number: id,name"},
		&cli.StringFlag{
			Name:  "header",
			Usage: "whether the first line of --csv is a header: yes or no (default: detect)",
		},
		&cli.StringFlag{Name: "separator", Usage: "`CHARACTER` between the columns of --csv (default: detect)"},
		&cli.StringFlag{
			Name:  "missing",
			Usage: "additional `TEXTS` in --csv for missing values: -1,unknown",
		},
		&cli.StringFlag{Name: "scale", Usage: "scaling of the numbers of --csv: standard, range or none"},
		&cli.StringFlag{Name: "shape", Usage: "image shape `CxHxW` of the rows of --csv: 1x28x28"},
		&cli.StringFlag{Name: "npz", Usage: "`FILE` of NumPy arrays x_train, y_train, x_test and y_test, or x and y"},
		&cli.StringFlag{Name: "safetensors", Usage: "safetensors `FILE`, with the tensor names of --npz"},
		&cli.StringFlag{Name: "size", Usage: "resize pictures to `HxW`: 32x32"},
		&cli.BoolFlag{Name: "gray", Usage: "read pictures as grayscale"},
	}
}

// DenseRows is the data set of a table, of arrays or of pictures that the flags of `dataset add` name; named tells
// whether they do. It returns Invalid, and *disdel.Faults for what is wrong with the files.
func DenseRows(c *cli.Context, name string) (in dataset.DenseInput, named bool, err error) {
	images := kindOf(c)
	switch {
	case c.IsSet("csv") && !c.IsSet("schema"):
		in, err = denseCSV(c, name)
	case c.IsSet("npz"):
		in, err = denseArchive(c, name, "npz", dense.Archive)
	case c.IsSet("safetensors"):
		in, err = denseArchive(c, name, "safetensors", dense.Tensors)
	case images == "npy":
		in, err = arrays(c, dense.Arrays{
			Images: dataset.FileSource(c.String("images")), Labels: dataset.FileSource(c.String("labels")),
		}, name)
	case images == "pictures":
		in, err = densePictures(c, name)
	default:
		return in, false, nil
	}
	return in, true, err
}

func badFlags(msg, hint string) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "add data set", Msg: msg, Hint: hint}
}

// kindOf is what --images names: npy, pictures, or "" for everything else.
func kindOf(c *cli.Context) string {
	path := c.String("images")
	if format := strings.ToLower(c.String("format")); c.IsSet("format") {
		if format == "npy" || format == "pictures" {
			return format
		}
		return ""
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "pictures"
	}
	in, err := dataset.FileSource(path).Open()
	if err != nil {
		return ""
	}
	defer in.Close()
	head := make([]byte, 6)
	if _, err := io.ReadFull(in, head); err == nil && bytes.Equal(head, []byte("\x93NUMPY")) {
		return "npy"
	}
	return ""
}

// alone refuses flags that do not go with the files that are named.
func alone(c *cli.Context, with string, others ...string) error {
	for _, other := range others {
		if c.IsSet(other) {
			return badFlags(fmt.Sprintf("--%s does not go with %s", other, with), "leave it out")
		}
	}
	return nil
}

func denseCSV(c *cli.Context, name string) (in dataset.DenseInput, err error) {
	if err := alone(c, "--csv", "images", "labels", "test-images", "test-labels", "npz", "safetensors", "libsvm",
		"ratings",
		"held-out", "format", "layout", "classes", "size", "gray"); err != nil {
		return in, err
	}
	table := dense.CSV{
		Source: dataset.FileSource(c.String("csv")), Header: dense.Header(c.String("header")), Label: c.String("label"),
		LabelClasses: c.Bool("label-classes"),
		Skip:         list(c.String("skip")), Missing: list(c.String("missing")), Scale: dense.Scale(c.String("scale")),
	}
	if file := c.String("test-csv"); file != "" {
		test := dataset.FileSource(file)
		table.Test = &test
	}
	switch text := c.String("separator"); {
	case text == `\t` || text == "tab":
		table.Separator = '\t'
	case utf8.RuneCountInString(text) > 1:
		return in, badFlags(fmt.Sprintf("the separator is one character, and not %q", text),
			`--separator ';' or --separator tab`)
	case text != "":
		table.Separator, _ = utf8.DecodeRuneInString(text)
	}
	if text := c.String("shape"); text != "" {
		if table.Shape, err = sides(text, 3); err != nil {
			return in, badFlags(fmt.Sprintf("%q is no shape", text), "write channels x height x width: --shape 1x28x28")
		}
	}
	return table.Input(name)
}

// denseArchive is the arrays of one file.
func denseArchive(c *cli.Context, name, flag string, read func(file string) (dense.Arrays, error)) (
	in dataset.DenseInput, err error,
) {
	if err := alone(c, "--"+flag, "images", "labels", "test-images", "test-labels", "csv", "format", "size",
		"gray"); err != nil {
		return in, err
	}
	from, err := read(c.String(flag))
	if err != nil {
		return in, err
	}
	return arrays(c, from, name)
}

// arrays adds to arrays what other flags say of them.
func arrays(c *cli.Context, from dense.Arrays, name string) (in dataset.DenseInput, err error) {
	if from.Labels.Name == "" {
		return in, badFlags("it needs both --images and --labels", "--images FILE --labels FILE")
	}
	images, labels := c.String("test-images"), c.String("test-labels")
	if (images == "") != (labels == "") {
		return in, badFlags("--test-images and --test-labels go together", "give both, or neither")
	}
	if images != "" {
		from.TestImages, from.TestLabels = dataset.FileSource(images), dataset.FileSource(labels)
	}
	if c.IsSet("layout") {
		from.Layout = dataset.Layout(strings.ToLower(c.String("layout")))
	}
	if from.Layout != "" && from.Layout != dataset.CHW && from.Layout != dataset.HWC {
		return in, badFlags(fmt.Sprintf("there is no layout %q", from.Layout), "--layout chw or --layout hwc")
	}
	from.ClassNames, from.LabelClasses = list(c.String("classes")), c.Bool("label-classes")
	return from.Input(name)
}

func densePictures(c *cli.Context, name string) (in dataset.DenseInput, err error) {
	if err := alone(c, "a folder of pictures", "labels", "test-labels", "layout", "classes", "label-classes"); err != nil {
		return in, err
	}
	from := dense.Pictures{Folder: c.String("images"), Test: c.String("test-images"), Gray: c.Bool("gray")}
	if text := c.String("size"); text != "" {
		size, err := sides(text, 2)
		if err != nil || slices.Max(size) > mostSide {
			return in, badFlags(fmt.Sprintf("%q is no size", text), "write height x width: --size 32x32")
		}
		from.Height, from.Width = size[0], size[1]
	}
	return from.Input(name)
}

// mostSide bounds the sides of pictures.
const mostSide = 4096

// list is the parts of a text between commas, nil for none.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// sides reads so many whole numbers above 0 with an x between them.
func sides(text string, n int) ([]int, error) {
	out := make([]int, n)
	parts := strings.Split(text, "x")
	if len(parts) != n {
		return nil, fmt.Errorf("%d sides", len(parts))
	}
	for i, p := range parts {
		if _, err := fmt.Sscanf(p, "%d", &out[i]); err != nil || out[i] < 1 || fmt.Sprint(out[i]) != p {
			return nil, fmt.Errorf("a side of %q", p)
		}
	}
	return out, nil
}
