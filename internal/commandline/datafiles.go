package commandline

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
	return slices.ContainsFunc([]string{"format", "images", "labels", "test-images", "test-labels", "layout", "classes"},
		c.IsSet)
}

// DataFiles is the files that the flags of `dataset add` name. It returns Invalid.
func DataFiles(c *cli.Context) (dataset.Files, error) {
	bad := func(msg, hint string) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "add data set", Msg: msg, Hint: hint}
	}
	layout := dataset.Layout(strings.ToLower(c.String("layout")))
	out := dataset.Files{
		Images: c.String("images"), Labels: c.String("labels"), TestImages: c.String("test-images"),
		TestLabels: c.String("test-labels"),
	}
	if names := c.String("classes"); names != "" {
		out.ClassNames = strings.Split(names, ",")
	}
	if c.IsSet("layout") {
		out.Layout = layout
	}
	switch f := c.String("format"); {
	case !strings.EqualFold(f, "idx"):
		return out, bad(fmt.Sprintf("format %q is not supported", f), "the one format is idx, and --format may be left out")
	case layout != dataset.CHW && layout != dataset.HWC:
		return out, bad(fmt.Sprintf("there is no layout %q", layout), "--layout chw or --layout hwc")
	case out.Images == "" || out.Labels == "":
		return out, bad("it needs both --images and --labels", "--images FILE --labels FILE")
	case (out.TestImages == "") != (out.TestLabels == ""):
		return out, bad("--test-images and --test-labels go together", "give both, or neither")
	}
	return out, nil
}
