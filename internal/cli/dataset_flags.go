package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/dataset"
)

// AddDescription says what `dataset add` takes.
func AddDescription() string {
	return "Known names: " + strings.Join(dataset.Known(), ", ") +
		". Their files come from an installed package, or from their public\n" +
		"address. disdel checks them against pinned checksums.\n\n" +
		"--csv is a table: disdel detects types, header, label and missing values, and prints them. --images is NumPy\n" +
		"or IDX arrays, or a folder with a folder of PNG and JPEG files for each class. Bytes 0..255 become 0..1;\n" +
		"other numbers stay as they are. Arrays are [rows features], [rows height width] or [rows channels height\n" +
		"width]; with --layout hwc, [rows height width channels].\n\n" +
		"   disdel dataset add fashion-mnist\n" +
		"   disdel dataset add flowers --csv iris.csv --label species\n" +
		"   disdel dataset add pets --images pictures --size 32x32\n" +
		"   disdel dataset add letters --images train-images.gz --labels train-labels.gz"
}

// AddFlags are the flags of `dataset add`.
func AddFlags() []cli.Flag {
	return slices.Concat(SparseFlags(), []cli.Flag{
		&cli.StringFlag{
			Name: "format",
			Usage: "`FORMAT` of --images: idx, npy, pictures, cifar10 or cifar100 (default: " +
				"detect)", Value: "idx",
		},
		&cli.StringFlag{
			Name: "images",
			Usage: "`FILE` of training images or features, plain or gzip, or the folder of pictures, " +
				"cifar10 or cifar100",
		},
		&cli.StringFlag{Name: "labels", Usage: "`FILE` of training labels"},
		&cli.StringFlag{Name: "test-images", Usage: "`FILE` of held-out images, or the folder of held-out pictures"},
		&cli.StringFlag{Name: "test-labels", Usage: "`FILE` of held-out labels"},
		&cli.StringFlag{
			Name: "layout", Usage: "channel `LAYOUT` of images: chw or hwc",
			Value: string(dataset.CHW),
		},
		&cli.StringFlag{Name: "classes", Usage: "`NAMES` of the classes, in label order: cat,dog"},
		&cli.BoolFlag{Name: "overwrite", Usage: "replace a data set of this name"},
	}, DenseFlags())
}
