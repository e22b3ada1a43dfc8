package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// NamesDataFiles says whether the user names files, not one of the known data sets.
func NamesDataFiles(c *cli.Context) bool {
	return slices.ContainsFunc([]string{
		"format", "images", "labels", "test-images", "test-labels", "layout", "classes",
		"npz", "safetensors",
	},
		c.IsSet)
}

// DataFiles is the files that the flags of `dataset add` name. It returns Invalid.
func DataFiles(c *cli.Context) (dataset.Files, error) {
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
