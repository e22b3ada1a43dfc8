package infer

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/dense"
	"github.com/disdel/disdel/model"
)

// isPicture reports whether data begins like a PNG or JPEG file.
func isPicture(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")) || bytes.HasPrefix(data, []byte("\xff\xd8\xff"))
}

// picturePixels returns the number of pixels in the head of a PNG or JPEG file, 0 for anything else.
func picturePixels(data []byte) int {
	if !isPicture(data) {
		return 0
	}
	head, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || head.Width < 1 || head.Height < 1 {
		return 0
	}
	if head.Width > math.MaxInt/head.Height {
		return math.MaxInt
	}
	return head.Width * head.Height
}

// PictureBytes returns the memory that reading a picture takes, in bytes. It is 0 for data that is no picture. Even a
// small file may take much memory.
func PictureBytes(data []byte) disdel.Bytes {
	pixels := picturePixels(data)
	if pixels == 0 {
		return 0
	}
	each := 4
	head, _, _ := image.DecodeConfig(bytes.NewReader(data)) // it was read before
	switch png := data[0] == 0x89; {
	case png && (head.ColorModel == color.NRGBA64Model || head.ColorModel == color.RGBA64Model):
		each = 12 // 8, and another half of them where it is interlaced
	case png:
		each = 6
	case bytes.Contains(data, []byte{0xff, 0xc2}): // a progressive JPEG, whose coefficients are kept to the end
		each = 16
	}
	return disdel.Bytes(min(pixels, math.MaxInt/each) * each)
}

// largePicture is the number of pixels from which a picture is large. A Predictor reads large pictures one at a time.
const largePicture = 1 << 21

// pictureScale turns bytes into numbers as data sets of pictures have them.
const pictureScale = float32(1.0 / 255)

// readPicture makes one row of a picture. It resizes the picture to the network's size as `dataset add` does, or to
// side if the job resized its images.
func readPicture(name string, data []byte, input model.Shape, side int) (in Inputs, err error) {
	if len(input) != 3 {
		return in, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + name, Msg: "it is a picture, and the model takes rows of " + input.Text(),
			Hint: "give rows as JSON, .csv or .npy",
		}
	}
	height, width := input[1], input[2]
	if side > 0 {
		height, width = 0, 0
	}
	pixels, shape, err := dense.Picture(data, input[0], height, width)
	if err != nil {
		e := *disdel.AsError(err)
		e.Op = "read " + name
		return in, &e
	}
	row := make([]float32, len(pixels))
	for i, v := range pixels {
		row[i] = float32(v) * pictureScale
	}
	if side > 0 && (shape[1] != side || shape[2] != side) {
		if row, err = dataset.Resize(row, shape, side); err != nil {
			return in, err
		}
	}
	return Inputs{Rows: [][]float32{row}}, nil
}

// isIDX tells whether data begins like an IDX file of bytes or floats.
func isIDX(data []byte) bool {
	return len(data) > 4 && data[0] == 0 && data[1] == 0 && (data[2] == 0x08 || data[2] == 0x0d) &&
		1 <= data[3] && data[3] <= 4
}

// readIDX reads an IDX array. Its bytes become numbers as data sets of them have them.
func readIDX(name string, data []byte) (a array, err error) {
	x, err := dataset.ReadIDX(bytes.NewReader(data))
	if err != nil {
		e := *disdel.AsError(err)
		e.Kind, e.Op = disdel.Invalid, "read "+name
		return a, &e
	}
	a.values, a.shape = slices.Grow(x.Floats, len(x.Data)), x.Shape
	for _, v := range x.Data {
		a.values = append(a.values, float32(v)*pictureScale)
	}
	return a, nil
}

// mostUnpacked bounds what a packed file of inputs has: of a request, and of a file of the user's own.
const (
	mostUnpacked      = 1 << 30
	mostUnpackedAsked = 4 << 20
)

// Unpack returns the name and the content of a file that is packed with gzip. It returns other files as they are. It
// returns OverLimit for more than may be unpacked.
func (t *Model) Unpack(name string, data []byte) (string, []byte, error) {
	if !bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		return name, data, nil
	}
	most := mostUnpacked
	if t.MostRows > 0 {
		most = mostUnpackedAsked
	}
	var text []byte
	in, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(in, int64(most)+1))
	}
	switch {
	case err != nil:
		return "", nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + name, Msg: "what is packed in it is damaged, or ends early", Err: err,
			Hint: "gzip -t FILE tells",
		}
	case len(text) > most:
		return "", nil, &disdel.Error{
			Kind: disdel.OverLimit, Op: "read " + name, Msg: fmt.Sprintf("it has more than %v when it is unpacked",
				disdel.Bytes(most)), Hint: "unpack it (gunzip), or ask for fewer rows at once",
		}
	}
	return strings.TrimSuffix(name, ".gz"), text, nil
}

// labelColumn is the column of labels in a table.
const labelColumn = "label"

// readTable reads rows of sample numbers, one in each line, separated by commas, semicolons or tabs. A first line
// without numbers is the head; a column named label has labels.
func readTable(name string, data []byte, sample int) (in Inputs, err error) {
	by := dense.Separator(data)
	if by == dense.Blanks {
		data, by = dense.BlanksAsTabs(data), '\t'
	}
	lines := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	lines.Comma, lines.ReuseRecord, lines.TrimLeadingSpace = by, true, true
	labels, values := -1, []float32(nil)
	bad := func(format string, args ...any) (Inputs, error) {
		return Inputs{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + name, Msg: fmt.Sprintf(format, args...),
			Hint: fmt.Sprintf("give lines of %d numbers, scaled as in training", sample),
		}
	}
	if line := tooWide(data, lines.Comma, sample+1); line > 0 {
		return bad("line %d has more than the %d numbers that the model takes", line, sample)
	}
	for first := true; ; first = false {
		record, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return bad("%v", err)
		}
		if first && !numeric(record) {
			for i, column := range record {
				if strings.EqualFold(strings.TrimSpace(column), labelColumn) {
					labels = i
				}
			}
			continue
		}
		line, _ := lines.FieldPos(0)
		begin := len(values)
		for i, text := range record {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 32)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return bad("line %d: %.40q is no number", line, text)
			}
			if i == labels {
				in.Labels = append(in.Labels, int32(v))
				continue
			}
			values = append(values, float32(v))
		}
		if n := len(values) - begin; n != sample {
			return bad("line %d has %d numbers, and the model takes %d", line, n, sample)
		}
	}
	if len(values) == 0 {
		return bad("there are no inputs")
	}
	in.Rows = rowsOf(values, sample)
	return in, nil
}

// tooWide returns the number of the first line with more than maximum fields, 0 if there is none. It runs before any
// field is parsed, because a field takes many times the memory of its text.
func tooWide(data []byte, separator rune, maximum int) (line int) {
	line = 1
	fields, quoted := 1, false
	for _, b := range data { // separators, quotes and ends of lines are single bytes, and parts of no other letter
		switch {
		case b == '"':
			quoted = !quoted
		case b == '\n':
			line++
			if !quoted {
				fields = 1
			}
		case !quoted && rune(b) == separator:
			if fields++; fields > maximum {
				return line
			}
		}
	}
	return 0
}

// rowsOf divides values into rows that share their memory. Separate short rows would take many times as much, and so
// would a growing list.
func rowsOf(values []float32, sample int) [][]float32 {
	rows := make([][]float32, len(values)/sample)
	for i := range rows {
		rows[i] = values[i*sample : (i+1)*sample : (i+1)*sample]
	}
	return rows
}

// numeric reports whether a line begins with a number.
func numeric(record []string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(record[0]), 32)
	return err == nil
}

// mostResized bounds the values of resized images.
const mostResized = 64 << 20

// resized resizes the images of an array to the network's size, side by side. It returns arrays that already fit,
// unless their document gives a shape, and arrays without images as they are.
func (a *array) resized(wanted []int, input model.Shape, side int) (array, error) {
	if len(input) != 3 || len(wanted) == 0 && a.misfit(input) == "" {
		return *a, nil
	}
	shape := a.imageShape(wanted, input[0])
	if shape == nil || shape[0] != input[0] || model.Shape(shape).Len() == 0 ||
		len(a.values)%model.Shape(shape).Len() != 0 || shape[1] == side && shape[2] == side {
		return *a, nil
	}
	n := model.Shape(shape).Len()
	images := len(a.values) / n
	if images > mostResized/input.Len() {
		return *a, &disdel.Error{
			Kind: disdel.OverLimit, Op: "resize inputs", Msg: fmt.Sprintf("%d images of %d values are too many at once", images,
				input.Len()), Hint: "ask for fewer at a time",
		}
	}
	out := array{shape: append([]int{images}, input...), values: make([]float32, 0, images*input.Len())}
	for values := a.values; len(values) > 0; values = values[n:] {
		image, err := dataset.Resize(values[:n], shape, side)
		if err != nil {
			return *a, err
		}
		out.values = append(out.values, image...)
	}
	return out, nil
}

// imageShape returns the shape of an array's images, [channels height width]: that of the document, of the nested
// lists, or of a square; nil if there is none.
func (a *array) imageShape(shape []int, channels int) []int {
	n := len(a.shape)
	switch {
	case len(shape) == 3:
		return shape
	case n == 0:
		return nil
	case n >= 3 && a.shape[n-3] == channels:
		return a.shape[n-3:]
	case n >= 2 && channels == 1 && a.shape[n-2] == a.shape[n-1]:
		return []int{1, a.shape[n-2], a.shape[n-1]}
	}
	last := a.shape[n-1]
	side := int(math.Round(math.Sqrt(float64(last) / float64(max(1, channels)))))
	if channels*side*side != last {
		return nil
	}
	return []int{channels, side, side}
}
