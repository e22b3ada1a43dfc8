package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/dense"
)

// sides are those of the pictures that are read, and how many there are.
var sides = []struct{ side, count int }{{32, 8000}, {64, 6000}, {224, 1200}}

// pictures reads folders of PNG files beside Pillow, on the same cores.
func pictures(ctx context.Context, t *tools) error {
	for _, s := range sides {
		folder, err := os.MkdirTemp("", "bench-daily-")
		if err != nil {
			return err
		}
		err = errors.Join(beside(ctx, t, folder, s.side, s.count), os.RemoveAll(folder))
		if err != nil {
			return err
		}
	}
	return nil
}

// beside measures both in turns, three times each, and takes the best of each.
func beside(ctx context.Context, t *tools, folder string, side, count int) error {
	if err := writePictures(folder, side, count); err != nil {
		return err
	}
	ours, theirs := 0.0, 0.0
	for range 3 {
		began := time.Now()
		in, err := dense.Pictures{Folder: folder}.Input("pictures")
		n := 0
		if err == nil {
			err = in.Each(func(dataset.DenseRow) error { n++; return nil })
		}
		if err != nil || n != count {
			return errors.Join(err, fmt.Errorf("%d of %d pictures", n, count))
		}
		ours = max(ours, float64(count)/time.Since(began).Seconds())
		text, err := exec.CommandContext(ctx, t.python, "bench/daily/pillow.py", folder).Output()
		if err != nil {
			return err
		}
		rate, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		if err != nil {
			return err
		}
		theirs = max(theirs, rate)
	}
	name := ""
	if side != 64 {
		name = fmt.Sprintf("_%d", side)
	}
	rig.Figure("png_per_s"+name, ours, "pictures/s")
	rig.Figure("png_per_s_pillow"+name, theirs, "pictures/s")
	rig.Figure("png_over_pillow"+name, ours/theirs, "times")
	return nil
}

// writePictures writes pictures with slopes, edges and noise, as photographs have, in a folder for each class.
func writePictures(folder string, side, count int) error {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range count {
		class := filepath.Join(folder, fmt.Sprintf("class%d", i%classes))
		if err := os.MkdirAll(class, 0o777); err != nil {
			return err
		}
		img := image.NewRGBA(image.Rect(0, 0, side, side))
		edge := rng.IntN(side)
		for y := range side {
			for x := range side {
				noise := byte(rng.IntN(24))
				c := color.RGBA{byte(x*200/side) + noise, byte(y*200/side) + noise, byte(edge) + noise, 255}
				if x > edge {
					c.R, c.B = c.B, c.R
				}
				img.SetRGBA(x, y, c)
			}
		}
		f, err := os.Create(filepath.Join(class, fmt.Sprintf("%d.png", i)))
		if err != nil {
			return err
		}
		if err := errors.Join(png.Encode(f, img), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
