package api

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/datasettext"
)

// uploadData adds a data set: of rows that a client has read from files of any format, or of files in the format IDX
// that come as parts of a form: images, labels, and perhaps test-images and test-labels, behind the fields layout,
// classes and overwrite.
func uploadData(c *call) (int, any, error) {
	if kind, _, _ := mime.ParseMediaType(c.Header.Get("Content-Type")); kind == dataset.RowsType {
		return uploadRows(c)
	}
	up := &upload{fields: map[string]string{}, files: map[string]*os.File{}}
	defer up.close()
	if err := up.read(c.Request, c.server.MaxUpload); err != nil {
		return 0, nil, err
	}
	files, err := up.idx()
	if err != nil {
		return 0, nil, err
	}
	in, err := files.Rows(c.PathValue("name"))
	if err != nil {
		return 0, nil, err
	}
	if err := c.hold(heldOfRow * in.RowBytes()); err != nil {
		return 0, nil, err
	}
	store, err := c.Service.Datasets(c.Context())
	if err != nil {
		return 0, nil, err
	}
	release, err := c.Service.ClaimDisk(c.Context(), disdel.Bytes(up.size))
	if err != nil {
		return 0, nil, err
	}
	defer release()
	m, err := store.AddDense(c.Context(), in.DenseInput, up.fields["overwrite"] == "true")
	if err != nil {
		return 0, nil, err
	}
	doc := datasettext.Describe(m)
	doc.Warnings = in.Warnings(&m, files.Layout != "")
	return http.StatusCreated, doc, nil
}

// How many bytes of memory an upload holds for each byte of a row's values, and of the head of rows.
const (
	heldOfRow  = 8
	heldOfHead = 4
)

// spoolFile makes a temporary file for an upload. It removes the file's name at once, so that nothing is left however
// the program ends.
func spoolFile() (*os.File, error) {
	file, err := os.CreateTemp("", "disdel-upload-*")
	if err == nil {
		err = os.Remove(file.Name())
	}
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "take upload", Msg: "the server has no place for it", Err: err,
		}
	}
	return file, nil
}

// uploadRows adds a data set of rows. They are kept in a file until they are stored: of a data set that is there
// already they are read twice.
func uploadRows(c *call) (int, any, error) {
	file, err := spoolFile()
	if err != nil {
		return 0, nil, err
	}
	defer file.Close()
	size, err := io.Copy(file, c.Body)
	if err != nil {
		return 0, nil, unless(err, "the rows did not come whole")
	}
	release, err := c.Service.ClaimDisk(c.Context(), disdel.Bytes(size))
	if err != nil {
		return 0, nil, err
	}
	defer release()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, nil, err
	}
	dense, sparse, err := c.rows(file)
	if err != nil {
		return 0, nil, err
	}
	overwrite, at := c.URL.Query().Get("overwrite") == "true", client.Local(c.Service).Data
	var set datasettext.Set
	if dense != nil {
		set, err = at.AddDense(c.Context(), *dense, overwrite)
	} else {
		set, err = at.AddSparse(c.Context(), *sparse, overwrite)
	}
	if disdel.KindOf(err) == disdel.Corrupt {
		err = invalid("these are no rows of a data set", err)
	}
	return http.StatusCreated, set, err
}

// rows reads the head of a file of rows. It reserves memory for the head and for one row.
func (c *call) rows(file *os.File) (dense *dataset.DenseInput, sparse *dataset.SparseInput, err error) {
	const no = "these are no rows of a data set"
	head, err := dataset.RowsHead(file)
	if err != nil {
		return nil, nil, invalid(no, err)
	}
	if err := c.hold(heldOfHead * head); err != nil {
		return nil, nil, err
	}
	if dense, sparse, err = dataset.ReadRows(c.PathValue("name"), file); err != nil {
		return nil, nil, invalid(no, err)
	}
	if dense != nil {
		err = c.hold(heldOfRow * dense.RowBytes())
	}
	return dense, sparse, err
}

// unless is an error of a body that was read, but for one that is too long, which has words of its own.
func unless(err error, msg string) error {
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return err
	}
	return invalid(msg, err)
}

// upload is a form on its way: its files are unpacked on the disk.
type upload struct {
	fields map[string]string
	files  map[string]*os.File
	size   int64 // of the files, unpacked
}

func (up *upload) close() {
	for _, f := range up.files {
		f.Close() //nolint:errcheck // it has no name any more
	}
}

// mostFields bounds what a form may say beside its files.
const mostFields = 64 << 10

// read reads the form of a request. Its files, packed or not, may have so many bytes together.
func (up *upload) read(r *http.Request, most int64) error {
	form, err := r.MultipartReader()
	if err != nil {
		return invalid("files come as multipart/form-data", err)
	}
	left := most
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = up.take(part, &left)
		}
		if err != nil {
			return err
		}
	}
}

// take reads one part.
func (up *upload) take(part *multipart.Part, left *int64) error {
	switch name := part.FormName(); name {
	case "layout", "classes", "overwrite":
		text, err := io.ReadAll(io.LimitReader(part, mostFields))
		up.fields[name] = string(text)
		return err
	case "images", "labels", "test-images", "test-labels":
		if up.files[name] != nil {
			return invalid("a form of a data set has two parts "+name, nil)
		}
		file, err := spoolFile()
		if err != nil {
			return err
		}
		up.files[name] = file
		size, err := unpack(file, part, left)
		up.size += size
		return named(name, err)
	default:
		return invalid(fmt.Sprintf("a form of a data set has no part %.40q", name), nil)
	}
}

// named tells of which file an error is.
func named(file string, err error) error {
	var known *disdel.Error
	if !errors.As(err, &known) {
		return err
	}
	told := *known
	told.Op = "read " + file
	return &told
}

// unpack copies r, unpacked if it is packed, and reduces left by the bytes written. It unpacks only once.
func unpack(to io.Writer, r io.Reader, left *int64) (int64, error) {
	in := bufio.NewReader(r)
	plain, packed := io.Reader(in), false
	if head, err := in.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return 0, invalid("it is no gzip", err)
		}
		plain, packed = z, true
	}
	bounded := &bounded{r: plain, left: left}
	size, err := io.Copy(to, bounded)
	if bounded.over {
		return size, &disdel.Error{
			Kind: disdel.OverLimit, Op: "read file", Msg: "the files of the data set are too large for this server",
			Hint: "whoever runs it may add them with disdel dataset add",
		}
	}
	if err != nil && packed {
		err = &disdel.Error{Kind: disdel.Corrupt, Op: "read gzip", Err: err}
	}
	return size, err
}

// bounded reads until nothing is left of what may be read.
type bounded struct {
	r    io.Reader
	left *int64
	over bool
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	var long *http.MaxBytesError
	if *b.left -= int64(n); *b.left < 0 || errors.As(err, &long) {
		b.over = true
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// idx is the data set of a form.
func (up *upload) idx() (x dataset.IDXFiles, err error) {
	if names := up.fields["classes"]; names != "" {
		x.ClassNames = strings.Split(names, ",")
	}
	switch x.Layout = dataset.Layout(strings.ToLower(up.fields["layout"])); x.Layout {
	case "", dataset.CHW, dataset.HWC:
	default:
		return x, invalid("layout is chw or hwc", nil)
	}
	x.Images, x.Labels = up.files["images"], up.files["labels"]
	x.TestImages, x.TestLabels = up.files["test-images"], up.files["test-labels"]
	switch {
	case x.Images == nil || x.Labels == nil:
		return x, invalid("images and labels go together", nil)
	case (x.TestImages == nil) != (x.TestLabels == nil):
		return x, invalid("test-images and test-labels go together", nil)
	}
	return x, nil
}
