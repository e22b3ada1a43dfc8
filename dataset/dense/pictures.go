package dense

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // for image.Decode and image.DecodeConfig
	_ "image/png"  // the same
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/image/draw"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/files"
)

// Pictures is a folder with a folder of PNG and JPEG files for each class. Or it has two such folders: train, and one
// with the held-out rows, named test, val, valid or validation.
type Pictures struct {
	Folder        string
	Test          string // folder of held-out pictures; "": see above
	Height, Width int    // of all pictures; 0: all must have the same size
	Gray          bool   // one channel instead of three; also if all files are gray
	// Labels is a table with the name of a file within Folder, and its class, in each row; nil: a folder is a class.
	Labels *dataset.Source
	Label  string // the column of the classes in Labels; "": label, class, target or y, or the last one
}

const (
	mostPictures = 1 << 27 // of a folder
	mostPixels   = 1 << 27 // of a picture: a few bytes of a file can claim any number
)

// Input reads the head of every file, to find out what is in the folder. It returns Invalid, or *disdel.Faults with
// the files.
func (p Pictures) Input(name string) (in dataset.DenseInput, err error) {
	f := &folder{Pictures: p, gray: true, passed: map[string]int{}}
	find := f.list
	if p.Labels != nil {
		find = f.listed
	}
	if err := find(); err != nil {
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

// plainNumbers tells whether names are 0, 1, 2 ... in this order.
func plainNumbers(names []string) bool {
	for i, n := range names {
		if n != fmt.Sprint(i) {
			return false
		}
	}
	return true
}

// folder is a folder of pictures during reading.
type folder struct {
	Pictures
	classes []string
	files   []picture // those for training first
	train   int       // number of files for training
	counts  []int     // of training rows, by class
	gray    bool      // all files are gray
	resized int       // files of another size than the first
	other   *head     // the first of them
	passed  map[string]int
}

type picture struct {
	path  string // within the folder, for messages
	file  string
	label int32
}

// list finds the files.
func (f *folder) list() error {
	root, test := f.Folder, f.Test
	if test == "" {
		root, test = files.TrainAndTest(f.Folder)
	}
	var err error
	if f.classes, err = files.Subfolders(root); err != nil {
		return err
	}
	if len(f.classes) < 2 {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + root,
			Msg:  fmt.Sprintf("it has %d folders, and there is one for each class", len(f.classes)),
			Hint: "put the pictures of a class into a folder of its name: " + filepath.Join(base(root), "cat", "1.png"),
		}
	}
	slices.SortFunc(f.classes, numbersFirst)
	f.counts = make([]int, len(f.classes))
	wrong := &faults{file: f.Folder}
	if err := f.part(root, wrong); err != nil {
		return err
	}
	if f.train = len(f.files); test != "" {
		others, err := files.Subfolders(test)
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

// understood is the interpretation of the folder.
func (f *folder) understood(in *dataset.DenseInput) dataset.Interpretation {
	u := dataset.Interpretation{
		Kind:   fmt.Sprintf("pictures of %d classes, a folder each", len(f.classes)),
		Values: fmt.Sprintf("bytes, as 0..1 from 0..255, of %dx%d pixels in color", f.Height, f.Width), Rows: f.train,
		HeldOut: len(f.files) - f.train,
		Example: dataset.Example{Place: f.files[0].path, Class: f.classes[f.files[0].label]},
	}
	if f.Labels != nil {
		u.Kind = fmt.Sprintf("pictures of %d classes, which %s names", len(f.classes), base(f.Labels.Name))
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

// each yields the pictures, decoded on all cores and in order, with a few of them in memory at once.
func (f *folder) each(yield func(dataset.DenseRow) error) error {
	channels := 3
	if f.Gray || f.gray {
		channels = 1
	}
	wrong, at := &faults{file: f.Folder}, 0
	err := inOrder(0,
		func(d *decoded) bool {
			if at == len(f.files) {
				return false
			}
			d.picture, d.heldOut = f.files[at], at >= f.train
			at++
			return true
		},
		func(d *decoded) { d.err = d.read(channels, f.Height, f.Width) },
		func(d *decoded) error {
			if d.err != nil {
				wrong.at(0, 0, d.path, "%v", d.err)
			}
			if wrong.full() {
				return errEnough
			}
			if len(wrong.list) > 0 { // nothing more is written: the rest is only read for its faults
				return nil
			}
			return yield(dataset.DenseRow{Bytes: d.pixels, Label: d.label, HeldOut: d.heldOut})
		})
	if err != nil {
		return err
	}
	return wrong.err()
}

// decoded is a picture as a row, [channels height width].
type decoded struct {
	picture
	heldOut bool
	file    bytes.Buffer
	png     pngReader
	pixels  []byte
	canvas  *image.RGBA
	err     error
}

// mostFile is the largest file of a picture.
const mostFile = 1 << 30

// read reads the file into the memory of the previous one.
func (d *decoded) read(channels, height, width int) error {
	if err := d.load(); err != nil {
		return err
	}
	return d.decode(channels, height, width)
}

// decode makes a row of the file.
func (d *decoded) decode(channels, height, width int) error {
	if d.pixels == nil {
		d.pixels = make([]byte, channels*height*width)
	}
	if d.png.read(d.file.Bytes(), channels, height, width, d.pixels) {
		return nil
	}
	img, _, err := image.Decode(bytes.NewReader(d.file.Bytes()))
	if err != nil {
		return err
	}
	fits := img.Bounds().Dx() == width && img.Bounds().Dy() == height
	switch p := img.(type) {
	case *image.Gray:
		if fits && channels == 1 {
			for y := range height {
				copy(d.pixels[y*width:(y+1)*width], p.Pix[y*p.Stride:])
			}
			return nil
		}
	case *image.RGBA: // most PNG files in color need no drawing
		if fits && p.Stride == 4*width && p.Opaque() {
			d.part(p.Pix, channels)
			return nil
		}
	}
	if d.canvas == nil {
		d.canvas = image.NewRGBA(image.Rect(0, 0, width, height))
	}
	if err := d.draw(img); err != nil {
		return err
	}
	d.part(d.canvas.Pix, channels)
	return nil
}

// Limits of a sent picture, whose few bytes can claim any size: its pixels, its longer side (JPEG's own limit), and its
// pixels if it keeps its size.
const (
	mostAsked    = 1 << 26
	longestAsked = 1 << 16
	mostKept     = 1 << 24
)

// mostScaled limits the memory of draw.BiLinear while it scales: four float64 for every column of the new picture and
// row of the old one. draw.BiLinear counts them in 32 bits, and panics on overflow.
const mostScaled = 1 << 25

// Picture converts a PNG or JPEG file to a row of a data set of pictures, [channels height width] from 0 to 255, with
// the size and channels of those in a folder. A height of 0 keeps the size. It returns the shape, and Invalid for
// anything else or too many pixels.
func Picture(file []byte, channels, height, width int) (pixels []byte, shape []int, err error) {
	bad := func(msg string, err error) ([]byte, []int, error) {
		return nil, nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read picture", Msg: msg, Err: err, Hint: "pictures are PNG or JPEG files",
		}
	}
	head, _, err := image.DecodeConfig(bytes.NewReader(file))
	switch {
	case err != nil:
		return bad("", err)
	case head.Width < 1 || head.Height < 1 || max(head.Width, head.Height) > longestAsked ||
		head.Width > mostAsked/head.Height || height == 0 && head.Width > mostKept/head.Height:
		return bad(fmt.Sprintf("one of %dx%d pixels is not read", head.Height, head.Width), nil)
	case channels != 1 && channels != 3:
		return bad(fmt.Sprintf("pictures have 1 channel or 3, and %d are asked for", channels), nil)
	case height == 0:
		height, width = head.Height, head.Width
	}
	d := decoded{file: *bytes.NewBuffer(file)}
	if err := d.decode(channels, height, width); err != nil {
		return bad("", err)
	}
	return d.pixels, []int{channels, height, width}, nil
}

// load reads the bytes of the file.
func (d *decoded) load() error {
	in, err := os.Open(d.picture.file)
	if err != nil {
		return plain(err)
	}
	defer in.Close()
	d.file.Reset()
	if _, err := d.file.ReadFrom(io.LimitReader(in, mostFile)); err != nil {
		return plain(err)
	}
	return nil
}

// draw scales a picture to the canvas, over white if it is transparent.
func (d *decoded) draw(img image.Image) error {
	from, to := img.Bounds().Size(), d.canvas.Bounds().Size()
	if from != to && to.X > mostScaled/max(1, from.Y) {
		return fmt.Errorf("one of %dx%d pixels cannot be brought to %dx%d", from.Y, from.X, to.Y, to.X)
	}
	draw.Draw(d.canvas, d.canvas.Bounds(), image.White, image.Point{}, draw.Src)
	if from == to {
		draw.Draw(d.canvas, d.canvas.Bounds(), img, img.Bounds().Min, draw.Over)
	} else {
		draw.BiLinear.Scale(d.canvas, d.canvas.Bounds(), img, img.Bounds(), draw.Over, nil)
	}
	return nil
}

// part separates the channels of pixels.
func (d *decoded) part(pix []byte, channels int) {
	n := len(pix) / 4
	if channels == 1 {
		for i := range n {
			d.pixels[i] = luma(pix[4*i], pix[4*i+1], pix[4*i+2])
		}
		return
	}
	red, green, blue := d.pixels[:n], d.pixels[n:2*n], d.pixels[2*n:3*n]
	for i := range n {
		p := pix[4*i : 4*i+4]
		red[i], green[i], blue[i] = p[0], p[1], p[2]
	}
}

// luma is the gray value of a color, by ITU-R BT.601.
func luma(r, g, b byte) byte {
	return byte((299*uint32(r) + 587*uint32(g) + 114*uint32(b) + 500) / 1000)
}

// head is the start of a file.
type head struct {
	picture
	image.Config
	err   error
	begin [pngHead]byte
}

// heads reads the head of every file: its size, and whether it is gray.
func (f *folder) heads() error {
	wrong, at := &faults{file: f.Folder}, 0
	sized := f.Height > 0 && f.Width > 0
	err := inOrder(0,
		func(h *head) bool {
			if at == len(f.files) {
				return false
			}
			h.picture = f.files[at]
			at++
			return true
		},
		func(h *head) { h.Config, h.err = h.read() },
		func(h *head) error {
			f.look(h, wrong)
			if wrong.full() {
				return errEnough
			}
			return nil
		})
	if err != nil {
		return err
	}
	if f.resized > 0 && !sized {
		wrong.at(0, 0, f.other.path, "it has %dx%d pixels, and %s %dx%d; %d of %d pictures differ from the first; "+
			"bring all to one size: --size %dx%d", f.other.Width, f.other.Height, f.files[0].path, f.Width, f.Height,
			f.resized, len(f.files), f.Height, f.Width)
	}
	return wrong.err()
}

// look considers a head.
func (f *folder) look(h *head, wrong *faults) {
	switch {
	case h.err != nil:
		wrong.at(0, 0, h.path, "%v", h.err)
	case h.Width < 1 || h.Height < 1 || h.Width > mostPixels/h.Height:
		wrong.at(0, 0, h.path, "a picture of %dx%d pixels is not read", h.Width, h.Height)
	case f.Height == 0:
		f.Height, f.Width = h.Height, h.Width
	case h.Height != f.Height || h.Width != f.Width:
		if f.resized++; f.resized == 1 {
			first := *h
			f.other = &first
		}
	}
	f.gray = f.gray && h.err == nil && (h.ColorModel == color.GrayModel || h.ColorModel == color.Gray16Model)
}

func (h *head) read() (image.Config, error) {
	in, err := os.Open(h.file)
	if err != nil {
		return image.Config{}, plain(err)
	}
	defer in.Close()
	n, _ := io.ReadFull(in, h.begin[:]) // an error returns with the next read
	if config, ok := plainPNG(h.begin[:n]); ok {
		return config, nil
	}
	config, _, err := image.DecodeConfig(io.MultiReader(bytes.NewReader(h.begin[:n]), in))
	return config, err
}

// listed finds the files that the table of labels names. It returns all wrong rows as *disdel.Faults.
func (f *folder) listed() error {
	file, err := f.Labels.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	text := bufio.NewReaderSize(file, sniffBytes)
	head, _ := text.Peek(sniffBytes)
	if bytes.HasPrefix(head, []byte(byteOrderMark)) {
		text.Discard(len(byteOrderMark)) //nolint:errcheck // they have been read
	}
	in := csv.NewReader(text)
	in.FieldsPerRecord, in.ReuseRecord = -1, true
	separate(in, Separator(bytes.TrimPrefix(head, []byte(byteOrderMark))))
	p := pictureTable{
		folder: f, file: -1, texts: newLabels(), seen: map[string]bool{}, wrong: &faults{file: f.Labels.Name},
	}
	var classes []string // of the files
	for !p.wrong.full() && !p.hopeless {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return (&table{}).broken(*f.Labels, err)
		}
		at, _ := in.FieldPos(0)
		if class, ok := p.row(at, record); ok {
			classes = append(classes, class)
		}
	}
	return p.close(classes)
}

// pictureTable is the table of labels during reading.
type pictureTable struct {
	*folder
	header      []string // nil: not read yet, or there is none
	width       int      // of all rows
	file, label int      // columns; file is -1 until it is known
	hopeless    bool     // all rows would have the same fault
	texts       *labels
	seen        map[string]bool
	wrong       *faults
}

// row reads a row of the table and adds its file. ok is false for the header and for a row with a fault.
func (p *pictureTable) row(line int, record []string) (class string, ok bool) {
	if p.width == 0 {
		p.width = len(record)
	}
	if p.file < 0 && !p.columns(line, record) {
		return "", false
	}
	if len(record) != p.width {
		p.wrong.at(line, 1, "columns", "it has %d, and the first line %d", len(record), p.width)
		return "", false
	}
	name, class := strings.TrimSpace(record[p.file]), strings.TrimSpace(record[p.label])
	file, found := p.picture(name)
	switch {
	case !found:
		p.wrong.at(line, p.file+1, "files", "%.80q is no PNG or JPEG file in %s", name, p.Folder)
	case p.seen[file]:
		p.wrong.at(line, p.file+1, "files", "%.80q is named twice", name)
	case class == "":
		p.wrong.at(line, p.label+1, "label", "%.80q has no label; leave the row out", name)
	case len(p.files) >= mostPictures:
		p.wrong.at(line, 1, "files", "it has more than %d pictures", mostPictures)
	default:
		p.seen[file] = true
		p.texts.add(class)
		p.files = append(p.files, picture{path: file, file: filepath.Join(p.Folder, file)})
		return strings.Clone(class), true
	}
	return "", false
}

// picture finds the file of a name, which may lack its ending. The name may begin with the folder.
func (p *pictureTable) picture(name string) (file string, ok bool) {
	if name == "" {
		return "", false
	}
	name = filepath.Clean(filepath.FromSlash(name))
	if file, ok = p.within(name); ok {
		return file, true
	}
	if filepath.IsAbs(name) {
		folder, err := filepath.Abs(p.Folder)
		rest, inside := strings.CutPrefix(name, folder+string(filepath.Separator))
		if err != nil || !inside {
			return "", false
		}
		return p.within(rest)
	}
	rest, inside := strings.CutPrefix(name, filepath.Base(p.Folder)+string(filepath.Separator))
	if !inside {
		return "", false
	}
	return p.within(rest)
}

// within finds the file of a name in the folder.
func (p *pictureTable) within(name string) (file string, ok bool) {
	if !filepath.IsLocal(name) {
		return "", false
	}
	for _, ending := range []string{"", ".png", ".jpg", ".jpeg"} {
		file = strings.Clone(name) + ending
		kind := strings.ToLower(filepath.Ext(file))
		if kind != ".png" && kind != ".jpg" && kind != ".jpeg" {
			continue
		}
		if info, err := os.Stat(filepath.Join(p.Folder, file)); err == nil && info.Mode().IsRegular() {
			return file, true
		}
	}
	return "", false
}

// columns finds the columns of files and classes by the first row, or by the second one after a header. It returns
// false for a header, and if there are none.
func (p *pictureTable) columns(line int, record []string) bool {
	at := slices.IndexFunc(record, func(text string) bool { _, ok := p.picture(strings.TrimSpace(text)); return ok })
	switch {
	case at < 0 && p.header == nil && line == 1:
		p.header = slices.Clone(record)
		return false
	case at < 0 || len(record) < 2:
		p.wrong.at(line, 1, "files", "no column names a PNG or JPEG file in %s beside one with its class", p.Folder)
		p.hopeless = true
		return false
	}
	p.file, p.label = at, len(record)-1
	if at == p.label {
		p.label--
	}
	names := usualLabels
	if p.Label != "" {
		names = []string{p.Label}
	}
	for _, name := range slices.Backward(names) {
		is := func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), name) }
		if k := slices.IndexFunc(p.header, is); k >= 0 && k != at {
			p.label = k
		} else if p.Label != "" {
			p.wrong.at(1, 1, "label", "there is no column %q; the columns are %s", name, strings.Join(p.header, ", "))
		}
	}
	return true
}

// close numbers the classes of the files.
func (p *pictureTable) close(classes []string) error {
	p.texts.close()
	if why := p.texts.fault(); why != "" {
		p.wrong.at(0, 0, "label", "%s", why)
	} else if why := p.texts.numeric(false); why != "" {
		p.wrong.at(0, 0, "label", "%s", why)
	} else if len(classes) == 0 {
		p.wrong.at(0, 0, "rows", "there are none")
	}
	if err := p.wrong.err(); err != nil {
		return err
	}
	p.classes, p.train, p.counts = p.texts.names, len(p.files), make([]int, len(p.texts.names))
	for i, class := range classes {
		p.files[i].label, _ = p.texts.index(class)
		p.counts[p.files[i].label]++
	}
	return nil
}
