package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/dense"
	"github.com/disdel/disdel/dataset/sparse"
	"github.com/disdel/disdel/dataset/text"
	"github.com/disdel/disdel/internal/files"
)

// namesArrayFiles says whether the flags name files instead of a known data set.
func namesArrayFiles(c *cli.Context) bool {
	return slices.ContainsFunc([]string{
		"format", "images", "labels", "test-images", "test-labels", "layout", "classes",
		"npz", "safetensors",
	},
		c.IsSet)
}

// arrayFiles reads the flags that name files of arrays. It returns Invalid.
func arrayFiles(c *cli.Context) (dataset.Files, error) {
	bad := func(msg, hint string) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "add data set", Msg: msg, Hint: hint}
	}
	layout := dataset.Layout(strings.ToLower(c.String("layout")))
	format := dataset.Format(strings.ToLower(c.String("format")))
	out := dataset.Files{
		Format: format, Images: c.String("images"), Labels: c.String("labels"), TestImages: c.String("test-images"),
		TestLabels: c.String("test-labels"),
	}
	if names := c.String("classes"); names != "" {
		out.ClassNames = strings.Split(names, ",")
	}
	if c.IsSet("layout") {
		out.Layout = layout
	}
	switch idx := format == dataset.FormatIDX; {
	case !slices.Contains(dataset.Formats(), string(format)):
		return out, bad(fmt.Sprintf("format %q is not supported", c.String("format")),
			"the formats are idx, npy, pictures, cifar10 and cifar100")
	case !idx && (out.Images == "" || out.Labels+out.TestImages+out.TestLabels != "" || c.IsSet("layout")):
		return out, bad(fmt.Sprintf("format %s takes a folder and nothing else", format),
			"--images FOLDER, that its binary version unpacks to")
	case !idx:
		return out, nil
	case layout != dataset.CHW && layout != dataset.HWC:
		return out, bad(fmt.Sprintf("there is no layout %q", layout), "--layout chw or --layout hwc")
	case out.Images == "" || out.Labels == "":
		return out, bad("it needs both --images and --labels", "--images FILE --labels FILE")
	case (out.TestImages == "") != (out.TestLabels == ""):
		return out, bad("--test-images and --test-labels go together", "give both, or neither")
	}
	return out, nil
}

// denseFlags are the flags of `dataset add` for tables, arrays and pictures.
func denseFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "test-csv", Usage: "`FILE` of held-out rows for --csv"},
		&cli.StringFlag{
			Name: "label",
			Usage: "label `COLUMN` of --csv (default: label, class, target, y or the last one); " +
				"several, each yes or no: funny,sad",
		},
		&cli.BoolFlag{
			Name:  "label-classes",
			Usage: "treat each different number of the labels as a class, however many there are",
		},
		&cli.StringFlag{
			Name:  "target",
			Usage: "`COLUMNS` of --csv with numbers to predict, by name or number: price,rent",
		},
		&cli.StringFlag{Name: "skip", Usage: "`COLUMNS` of --csv to leave out, by name or number: id,name"},
		&cli.StringSliceFlag{
			Name:  "kind",
			Usage: "kinds of columns of --csv: `NAME=KIND` with number, category or skip (repeatable; default: detect)",
		},
		&cli.BoolFlag{Name: "stratify", Usage: "hold out the same share of each class"},
		&cli.StringFlag{
			Name:  "group",
			Usage: "`COLUMN` of --csv whose texts are groups: no group is both held out and for training",
		},
		&cli.StringFlag{
			Name:  "header",
			Usage: "whether the first line of --csv is a header: yes or no (default: detect)",
		},
		&cli.StringFlag{
			Name:  "separator",
			Usage: "`CHARACTER` between the columns of --csv, or blanks: spaces and tabs (default: detect)",
		},
		&cli.StringFlag{
			Name:  "missing",
			Usage: "additional `TEXTS` in --csv for missing values: -1,unknown",
		},
		&cli.StringFlag{
			Name:  "decimal",
			Usage: "`MARK` of decimals in --csv, a comma or a point; the other one then separates thousands",
		},
		&cli.StringFlag{
			Name:  "scale",
			Usage: "scaling of the numbers of --csv: standard, range or none; tokens, also of arrays: none",
		},
		&cli.StringFlag{Name: "shape", Usage: "image shape `CxHxW` of the rows of --csv: 1x28x28"},
		&cli.IntFlag{
			Name:  "max-columns",
			Usage: "largest `NUMBER` of columns of --csv; each needs 3 kB of memory, and a server takes at most 65536",
			Value: 1 << 16,
		},
		&cli.StringFlag{Name: "npz", Usage: "`FILE` of NumPy arrays x_train, y_train, x_test and y_test, or x and y"},
		&cli.StringFlag{Name: "safetensors", Usage: "safetensors `FILE`, with the tensor names of --npz"},
		&cli.StringFlag{Name: "size", Usage: "resize pictures to `HxW`: 32x32"},
		&cli.StringFlag{Name: "text", Usage: "`COLUMN` of --csv with texts, for rows of tokens; a .jsonl file has objects"},
		&cli.StringFlag{
			Name:  "text-files",
			Usage: "plain text `FILES` or a folder, for a language model; a folder with a folder for each class: a text is a row",
		},
		&cli.StringFlag{
			Name:  "tokenizer",
			Usage: "tokens of texts: bpe:8000 trains so many on the texts, `FILE` names a tokenizer.json",
			Value: "bpe:8000",
		},
		&cli.IntFlag{
			Name: "positions", Usage: "`NUMBER` of tokens of a row of texts; --text cuts longer texts off", Value: 128,
		},
		&cli.BoolFlag{Name: "gray", Usage: "read pictures as grayscale"},
		&cli.StringFlag{
			Name: "program", TakesFile: true, Usage: "Python `FILE` whose disdel.Task reads the rows: net.py:Net",
		},
		pythonFlag,
	}
}

// denseRows reads a data set of a table, arrays or pictures; named says whether the flags name one. It returns Invalid,
// and *disdel.Faults for faults of the files.
func denseRows(c *cli.Context, name string) (in dataset.DenseInput, named bool, err error) {
	images := arrayKind(c)
	if c.IsSet("target") && (!c.IsSet("csv") || c.IsSet("schema")) {
		return in, true, badFlags("--target names columns of a table", "write --csv FILE --target COLUMN")
	}
	rule, err := heldOutOfArrays(c, images)
	if err != nil {
		return in, true, err
	}
	if c.IsSet("kind") && (!c.IsSet("csv") || c.IsSet("schema")) {
		return in, true, badFlags("--kind names columns of a table", "write --csv FILE --kind COLUMN=category")
	}
	switch {
	case c.IsSet("text-files"):
		in, err = plainText(c, name)
	case c.IsSet("text"):
		in, err = textRows(c, name)
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
	if err == nil && rule != nil {
		in, err = rule.Of(in)
	}
	return in, true, err
}

// heldOutOfArrays is the rule that holds out rows of arrays, pictures or texts; nil: there is none, or the rows are
// others. It returns Invalid for flags that do not go with the rows.
func heldOutOfArrays(c *cli.Context, images string) (*dense.HeldOut, error) {
	table := c.IsSet("csv") && !c.IsSet("schema") && !c.IsSet("text")
	sparse := c.IsSet("libsvm") || c.IsSet("ratings") || c.IsSet("schema")
	ruleless := !c.Bool("stratify") && !c.IsSet("group")
	switch {
	case table || ruleless && (sparse || !c.IsSet("held-out")):
		return nil, nil
	case c.IsSet("group"):
		return nil, badFlags("--group names a column of a table", "write --csv FILE --group COLUMN; of other rows, give the "+
			"held-out groups as files of their own (--test-images, --test-csv)")
	case c.IsSet("text-files") && !hasClasses(c.String("text-files")):
		return nil, badFlags("--text-files makes rows without classes", "leave --stratify and --held-out out: each job "+
			"draws its held-out rows (data.split)")
	case !c.IsSet("text") && !c.IsSet("text-files") && !c.IsSet("npz") && !c.IsSet("safetensors") && images == "":
		return nil, badFlags("--stratify and --held-out hold out rows of tables, arrays, pictures and texts",
			"leave them out: each job draws its held-out rows (data.split)")
	default:
		return heldOutRule(c)
	}
}

func badFlags(msg, hint string) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "add data set", Msg: msg, Hint: hint}
}

// arrayKind is the format of --images: npy, pictures, or "" for any other.
func arrayKind(c *cli.Context) string {
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

// rejectFlags returns Invalid for flags that do not go with another one.
func rejectFlags(c *cli.Context, with string, others ...string) error {
	for _, other := range others {
		if c.IsSet(other) {
			return badFlags(fmt.Sprintf("--%s does not go with %s", other, with), "leave it out")
		}
	}
	return nil
}

func denseCSV(c *cli.Context, name string) (in dataset.DenseInput, err error) {
	if err := rejectFlags(c, "--csv", "images", "labels", "test-images", "test-labels", "npz", "safetensors", "libsvm",
		"ratings", "format", "layout", "classes", "size", "gray"); err != nil {
		return in, err
	}
	table := dense.CSV{
		Source: dataset.FileSource(c.String("csv")), Header: dense.Header(c.String("header")), Label: c.String("label"),
		LabelClasses: c.Bool("label-classes"), Targets: splitCommas(c.String("target")),
		Skip: splitCommas(c.String("skip")), Missing: splitCommas(c.String("missing")),
		Scale: dense.Scale(c.String("scale")), Decimal: c.String("decimal"), MaxColumns: c.Int("max-columns"),
	}
	if table.Kinds, err = columnKinds(c.StringSlice("kind")); err != nil {
		return in, err
	}
	if table.HeldOut, err = heldOutRule(c); err != nil {
		return in, err
	}
	if file := c.String("test-csv"); file != "" {
		test := dataset.FileSource(file)
		table.Test = &test
	}
	if table.Separator, err = separator(c); err != nil {
		return in, err
	}
	if text := c.String("shape"); text != "" {
		if table.Shape, err = parseSides(text, 3); err != nil {
			return in, badFlags(fmt.Sprintf("%q is no shape", text), "write channels x height x width: --shape 1x28x28")
		}
	}
	return table.Input(name)
}

// separator reads the separator of columns; 0: it is detected. It returns Invalid.
func separator(c *cli.Context) (rune, error) {
	text := c.String("separator")
	switch r, size := utf8.DecodeRuneInString(text); {
	case text == "":
		return 0, nil
	case text == `\t` || text == "tab":
		return '\t', nil
	case text == "blanks":
		return dense.Blanks, nil
	case size < len(text):
		return 0, badFlags(fmt.Sprintf("the separator is one character, and not %q", text),
			`--separator ';', --separator tab, or --separator blanks`)
	default:
		return r, nil
	}
}

// usualHeldOut is the share of rows that --stratify and --group hold out, as jobs do.
const usualHeldOut = 0.2

// heldOutRule is the rule that holds out rows; nil: there is none. It returns Invalid.
func heldOutRule(c *cli.Context) (*dense.HeldOut, error) {
	rule := &dense.HeldOut{Share: usualHeldOut, Group: c.String("group"), Seed: c.Int64("seed")}
	switch given := c.IsSet("held-out"); {
	case c.Bool("stratify") && c.IsSet("group"):
		return nil, badFlags("--stratify and --group are two rules", "leave one of them out")
	case !c.Bool("stratify") && !c.IsSet("group") && given:
		return nil, badFlags("--held-out needs a rule", "add --stratify, or --group COLUMN of a table; without them each "+
			"job draws its held-out rows (data.split)")
	case !c.Bool("stratify") && !c.IsSet("group"):
		return nil, nil
	case given:
		rule.Share = c.Float64("held-out")
	}
	return rule, nil
}

// columnKinds reads the kinds of columns: NAME=KIND. It returns Invalid.
func columnKinds(list []string) (map[string]dataset.ColumnKind, error) {
	kinds := map[string]dataset.ColumnKind{}
	for _, text := range givenKinds(list) {
		at := strings.LastIndexByte(text, '=') // names may have one, kinds have none
		if at < 1 {
			return nil, badFlags(fmt.Sprintf("%q gives no column a kind", text), "write --kind COLUMN=category")
		}
		name, kind := text[:at], dataset.ColumnKind(text[at+1:])
		if before, ok := kinds[name]; ok && before != kind {
			return nil, badFlags(fmt.Sprintf("%s has the kinds %s and %s", name, before, kind), "give each column one kind")
		}
		kinds[name] = kind
	}
	return kinds, nil
}

// givenKinds divides texts like age=category,zip=number. A text whose parts are not all such pairs is one pair: a name
// may have a comma.
func givenKinds(list []string) (out []string) {
	for _, text := range list {
		parts := strings.Split(text, ",")
		if slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(part, "=") }) {
			parts = []string{text}
		}
		out = append(out, parts...)
	}
	return out
}

// textRows reads a table of texts.
func textRows(c *cli.Context, name string) (in dataset.DenseInput, err error) {
	if err := rejectFlags(c, "--text", "images", "labels", "npz", "safetensors", "libsvm", "ratings", "schema", "target",
		"skip", "kind", "missing", "scale", "shape", "decimal", "size", "gray", "classes"); err != nil {
		return in, err
	}
	if !c.IsSet("csv") || !c.IsSet("label") {
		return in, badFlags("--text needs a table and its column of classes",
			"write --csv FILE --text COLUMN --label COLUMN")
	}
	table := text.Table{
		Source: dataset.FileSource(c.String("csv")), Text: c.String("text"), Label: c.String("label"),
		Positions: c.Int("positions"), Headless: c.String("header") == string(dense.HeaderNo),
	}
	if file := c.String("test-csv"); file != "" {
		test := dataset.FileSource(file)
		table.Test = &test
	}
	if table.Separator, err = separator(c); err == nil && table.Separator == 0 {
		table.Separator, err = dense.SeparatorOf(table.Source)
	}
	if table.Separator == dense.Blanks {
		err = badFlags("a text has blanks itself", "write the table with commas, and texts with commas in quotes")
	}
	if err != nil {
		return in, err
	}
	if table.Tokenizer, table.Vocabulary, err = tokenizer(c); err != nil {
		return in, err
	}
	return table.Input(name)
}

// tokenizer reads the tokenizer that the flags name; nil: one of so many tokens is trained.
func tokenizer(c *cli.Context) (t *text.Tokenizer, vocabulary int, err error) {
	if size, ok := strings.CutPrefix(c.String("tokenizer"), "bpe:"); ok {
		if vocabulary, err = strconv.Atoi(size); err != nil {
			return nil, 0, badFlags(fmt.Sprintf("%q is no number of tokens", size), "write --tokenizer bpe:8000")
		}
		return nil, vocabulary, nil
	}
	file, err := dataset.FileSource(c.String("tokenizer")).Open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, badFlags(fmt.Sprintf("--tokenizer %s: there is no such file", c.String("tokenizer")),
			"write bpe:8000 to train one on the texts, or name a tokenizer.json; "+
				"disdel model export MODEL --to tokenizer writes that of a model")
	}
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	t, err = text.Read(file)
	return t, 0, err
}

// plainText reads text files for a language model.
func plainText(c *cli.Context, name string) (in dataset.DenseInput, err error) {
	if err := rejectFlags(c, "--text-files", "images", "labels", "npz", "safetensors", "libsvm", "ratings", "schema",
		"target", "skip", "missing", "scale", "shape", "separator", "header", "decimal", "size", "gray", "held-out", "classes",
		"csv", "test-csv", "text", "label"); err != nil {
		return in, err
	}
	made, vocabulary, err := tokenizer(c)
	if err != nil {
		return in, err
	}
	if named := c.String("text-files"); hasClasses(named) {
		return text.Folder{
			Path: named, Tokenizer: made, Vocabulary: vocabulary, Positions: c.Int("positions"),
		}.Input(name)
	}
	texts := text.Plain{Positions: c.Int("positions"), Tokenizer: made, Vocabulary: vocabulary}
	for _, named := range splitCommas(c.String("text-files")) {
		list, err := filesIn(named)
		if err != nil {
			return in, err
		}
		for _, file := range list {
			texts.Sources = append(texts.Sources, dataset.FileSource(file))
		}
	}
	if len(texts.Sources) == 0 {
		return in, badFlags("--text-files names no file", "write --text-files a.txt,b.txt")
	}
	return texts.Input(name)
}

// hasClasses tells whether a name is of a folder with folders in it.
func hasClasses(name string) bool {
	inside, err := files.Subfolders(name)
	return err == nil && len(inside) > 0
}

// filesIn are the files that a name stands for: the file itself, or those in a folder in the order of their names.
func filesIn(name string) (list []string, err error) {
	if !files.IsFolder(name) {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			list = append(list, filepath.Join(name, e.Name()))
		}
	}
	return list, err
}

// denseArchive reads arrays from one file.
func denseArchive(c *cli.Context, name, flag string, read func(file string) (dense.Arrays, error)) (
	in dataset.DenseInput, err error,
) {
	if err := rejectFlags(c, "--"+flag, "images", "labels", "test-images", "test-labels", "csv", "format", "size",
		"gray"); err != nil {
		return in, err
	}
	from, err := read(c.String(flag))
	if err != nil {
		return in, err
	}
	return arrays(c, from, name)
}

// arrays completes arrays by the other flags.
func arrays(c *cli.Context, from dense.Arrays, name string) (in dataset.DenseInput, err error) {
	if from.Labels.Name == "" {
		return in, badFlags("arrays of features need an array of labels", "--arrays FILE --labels FILE")
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
	if scale := c.String("scale"); scale != "" && scale != string(dense.AsIs) {
		return in, badFlags(fmt.Sprintf("arrays have no scale %q", scale), "--scale none keeps numbers as they are: tokens")
	}
	from.AsIs = c.String("scale") == string(dense.AsIs)
	from.ClassNames, from.LabelClasses = splitCommas(c.String("classes")), c.Bool("label-classes")
	return from.Input(name)
}

func densePictures(c *cli.Context, name string) (in dataset.DenseInput, err error) {
	if err := rejectFlags(c, "a folder of pictures", "test-labels", "layout", "classes", "label-classes"); err != nil {
		return in, err
	}
	from := dense.Pictures{Folder: c.String("images"), Test: c.String("test-images"), Gray: c.Bool("gray")}
	if c.IsSet("labels") {
		if err := rejectFlags(c, "a folder of pictures and a table of labels", "test-images"); err != nil {
			return in, err
		}
		table := dataset.FileSource(c.String("labels"))
		from.Labels, from.Label = &table, c.String("label")
	}
	if text := c.String("size"); text != "" {
		size, err := parseSides(text, 2)
		if err != nil || slices.Max(size) > mostSide {
			return in, badFlags(fmt.Sprintf("%q is no size", text), "write height x width: --size 32x32")
		}
		from.Height, from.Width = size[0], size[1]
	}
	return from.Input(name)
}

// mostSide limits the sides of pictures.
const mostSide = 4096

// splitCommas splits a text at commas. It is nil for an empty text.
func splitCommas(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// parseSides reads n positive numbers with an x between them.
func parseSides(text string, n int) ([]int, error) {
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

// sparseFiles are the flags that name a file of sparse rows.
var sparseFiles = []string{"libsvm", "csv", "ratings"}

// heldOutFlags say which rows are held out from training.
func heldOutFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{
			Name: "held-out",
			Usage: "held-out `SHARE` of sparse rows (default: each job draws its own), or of --stratify and --group " +
				"(default: 0.2)",
		},
		&cli.StringFlag{
			Name: "held-out-by", Usage: "hold out a share of all rows (row), or of the ratings of each user (user): `UNIT`",
			Value: "row",
		},
		&cli.Int64Flag{Name: "seed", Usage: "`SEED` of the random numbers", Value: 1},
	}
}

// sparseFlags are the flags of `dataset add` for sparse rows.
func sparseFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "libsvm", Usage: "LIBSVM `FILE` of sparse rows, plain or gzip"},
		&cli.StringFlag{
			Name: "csv", Aliases: []string{"table"},
			Usage: "`FILE` of a table: CSV, plain or gzip, JSON objects, or Parquet; with --schema, CSV of sparse rows",
		},
		&cli.StringFlag{Name: "schema", Usage: "JSON `FILE` that describes the fields of --csv"},
		&cli.StringFlag{
			Name:  "ratings",
			Usage: "MovieLens `FILE` of user, item, rating and time, plain or gzip",
		},
		&cli.IntFlag{Name: "columns", Usage: "`NUMBER` of columns of --libsvm (default: as many as the file has)"},
	}, heldOutFlags()...)
}

func heldOut(c *cli.Context) (h sparse.HeldOut, err error) {
	h = sparse.HeldOut{Share: c.Float64("held-out"), ByUser: c.String("held-out-by") == "user", Seed: c.Int64("seed")}
	if by := c.String("held-out-by"); by != "row" && by != "user" {
		return h, &disdel.Error{
			Kind: disdel.Invalid, Op: "add data set", Msg: fmt.Sprintf("rows are not held out by %q", by),
			Hint: "--held-out-by row or --held-out-by user",
		}
	}
	return h, nil
}

// sparseRows reads a data set of sparse rows; named says whether the flags name one. It returns Invalid.
func sparseRows(c *cli.Context, name string) (in dataset.SparseInput, named bool, err error) {
	flags := slices.DeleteFunc(slices.Clone(sparseFiles), func(f string) bool { return !c.IsSet(f) })
	if len(flags) == 0 {
		return in, false, nil
	}
	bad := func(msg, hint string) (dataset.SparseInput, bool, error) {
		return in, true, &disdel.Error{Kind: disdel.Invalid, Op: "add data set", Msg: msg, Hint: hint}
	}
	held, err := heldOut(c)
	if err != nil {
		return in, true, err
	}
	switch {
	case len(flags) > 1 || namesArrayFiles(c):
		return bad("it names files of several kinds", "give one of --libsvm, --csv and --ratings")
	case c.IsSet("csv") != c.IsSet("schema"):
		return bad("--csv and --schema go together", "--csv FILE --schema FILE")
	case held.ByUser && !c.IsSet("ratings"):
		return bad("only ratings have users", "--held-out-by row")
	}
	from := dataset.FileSource(c.String(flags[0]))
	switch flags[0] {
	case "libsvm":
		in, err = sparse.Libsvm{Source: from, Columns: c.Int("columns"), HeldOut: held}.Input(name)
	case "ratings":
		in, err = sparse.Ratings{Source: from, HeldOut: held}.Input(name)
	default:
		in, err = csvRows(c, from, held, name)
	}
	return in, true, err
}

func csvRows(c *cli.Context, from dataset.Source, held sparse.HeldOut, name string) (
	in dataset.SparseInput, err error,
) {
	file := c.String("schema")
	f, err := os.Open(file)
	if err != nil {
		return in, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + file, Err: files.Plain(err), Hint: "check the file's name",
		}
	}
	defer f.Close()
	schema, err := sparse.ReadSchema(f, file)
	if err != nil {
		return in, err
	}
	return sparse.CSV{Source: from, Schema: schema, HeldOut: held}.Input(name)
}

// generateFlags are the flags of `dataset generate`.
func generateFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{
			Name: "like", Usage: "ratings: the size of `SET`: ml-100k, ml-1m, ml-10m or ml-20m",
			Value: "ml-100k",
		},
		&cli.IntFlag{Name: "users", Usage: "ratings: `NUMBER` of users"},
		&cli.IntFlag{Name: "items", Usage: "ratings: `NUMBER` of items"},
		&cli.IntFlag{Name: "rows", Usage: "`NUMBER` of ratings or clicks (default for clicks: 100000)"},
		&cli.IntFlag{Name: "features", Usage: "clicks: `NUMBER` of columns to hash categories to", Value: 100_000},
		&cli.BoolFlag{Name: "overwrite", Usage: "replace a data set of this name"},
	}, heldOutFlags()...)
}

// defaultClicks is the number of generated clicks.
const defaultClicks = 100_000

// generatedRows is the data set that `dataset generate` describes. It returns Invalid.
func generatedRows(c *cli.Context) (in dataset.SparseInput, err error) {
	held, err := heldOut(c)
	if err != nil {
		return in, err
	}
	bad := func(msg, hint string) (dataset.SparseInput, error) {
		return in, &disdel.Error{Kind: disdel.Invalid, Op: "generate data set", Msg: msg, Hint: hint}
	}
	what, name := c.Args().Get(0), c.Args().Get(1)
	switch what {
	case "clicks":
		if held.ByUser {
			return bad("only ratings have users", "--held-out-by row")
		}
		return sparse.MadeClicks{
			Rows: cmp.Or(c.Int("rows"), defaultClicks), Features: c.Int("features"), Seed: c.Int64("seed"), HeldOut: held,
		}.Input(name)
	case "ratings":
		users, items, ratings, ok := sparse.MovieLensSize(c.String("like"))
		if !ok {
			return bad(fmt.Sprintf("no size is known as %q", c.String("like")), "ml-100k, ml-1m, ml-10m or ml-20m")
		}
		return sparse.MadeRatings{
			Users: cmp.Or(c.Int("users"), users), Items: cmp.Or(c.Int("items"), items), Ratings: cmp.Or(c.Int("rows"), ratings),
			Seed: c.Int64("seed"), HeldOut: held,
		}.Input(name)
	default:
		return bad(fmt.Sprintf("%q cannot be made", what), "disdel dataset generate ratings NAME, or clicks NAME")
	}
}
