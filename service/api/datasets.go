package api

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service/infer"
)

// Bounds of a sample of a data set: rows, and bytes of their values.
const (
	mostRows    = 1000
	mostSampled = 2 << 20
)

func listData(c *call) (int, any, error) {
	return sendList(c, "datasets", c.Service.AllDatasets(c.Context()),
		func(d infer.Dataset) any { return render.DescribeFound(d) })
}

// addData adds a public data set by its name.
func addData(c *call) (int, any, error) {
	var in apitypes.Source
	if err := c.read(&in); err != nil {
		return 0, nil, err
	}
	m, err := c.Service.AddKnown(c.Context(), in.Source, in.Overwrite)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, render.DescribeDataset(m), nil
}

func showData(c *call) (int, any, error) {
	set, err := c.Service.FindDataset(c.Context(), c.PathValue("name"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, render.DescribeFound(set), nil
}

// sampleData answers with held-out rows, as infer takes them.
func sampleData(c *call) (int, any, error) {
	v := c.URL.Query()
	var rows []int
	for _, text := range v["row"] {
		n, err := strconv.Atoi(text)
		if err != nil || len(rows) >= mostRows {
			return 0, nil, invalid(fmt.Sprintf("row is the number of a held-out row; at most %d at once", mostRows), err)
		}
		rows = append(rows, n)
	}
	if len(rows) == 0 {
		rows = []int{0}
	}
	seed, err := strconv.ParseInt(cmp.Or(v.Get("seed"), strconv.Itoa(disdel.DefaultSeed)), 10, 64)
	if err != nil {
		return 0, nil, invalid("seed is a number", err)
	}
	set, err := c.Service.FindDataset(c.Context(), c.PathValue("name"))
	if err != nil {
		return 0, nil, err
	}
	if size := disdel.Bytes(len(rows)) * set.SampleSize(); size > mostSampled && len(rows) > 1 {
		return 0, nil, invalid(fmt.Sprintf("%d rows of this data set are %v, and %v are the most at once", len(rows), size,
			disdel.Bytes(mostSampled)), nil)
	}
	doc, err := set.Store.Sample(c.Context(), set.Name, rows, seed)
	return http.StatusOK, doc, err
}

// dataStatistics reads all training rows of a data set, and describes them.
func dataStatistics(c *call) (int, any, error) {
	set, err := c.Service.FindDataset(c.Context(), c.PathValue("name"))
	if err != nil {
		return 0, nil, err
	}
	out, err := set.Store.Statistics(c.Context(), set.Name)
	return http.StatusOK, out, err
}

func removeData(c *call) (int, any, error) {
	removed, err := client.Local(c.Service).Data.Remove(c.Context(), c.PathValue("name"))
	return http.StatusOK, removed, err
}

// uploadData adds a data set. It is sent as rows that the client has read from its files, or as a form with files in
// the format IDX: the fields layout, classes and overwrite, then images, labels, and perhaps test-images and
// test-labels.
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
	doc := render.DescribeDataset(m)
	doc.Warnings = in.Warnings(&m, files.Layout != "")
	read := in.Interpretation(&m)
	doc.Understood = &read
	return http.StatusCreated, doc, nil
}

// Memory of an upload, in bytes, for each byte of a row's values and of the head of the rows.
const (
	heldOfRow  = 8
	heldOfHead = 4
)

// spoolFile makes a temporary file for an upload. It removes the file's name at once, so that no file is left if the
// program is killed.
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

// uploadRows adds a data set of rows. A file keeps the rows until they are stored, because they are read twice if the
// data set exists.
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
	var set render.Dataset
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

// unless wraps an error of reading a body. It returns the error for a body that is too long as it is.
func unless(err error, msg string) error {
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return err
	}
	return invalid(msg, err)
}

// upload is a form that is being received. Its files are unpacked to the disk.
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

// mostFields bounds the fields of a form, in bytes.
const mostFields = 64 << 10

// read reads the form of a request. maximum bounds its files together, in bytes, packed and unpacked.
func (up *upload) read(r *http.Request, maximum int64) error {
	form, err := r.MultipartReader()
	if err != nil {
		return invalid("files come as multipart/form-data", err)
	}
	remaining := maximum
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = up.take(part, &remaining)
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

// named adds the name of the file to an error.
func named(file string, err error) error {
	var known *disdel.Error
	if !errors.As(err, &known) {
		return err
	}
	e := *known
	e.Op = "read " + file
	return &e
}

// unpack copies r, unpacked if it is packed, and reduces remaining by the bytes written. It unpacks only once.
func unpack(to io.Writer, r io.Reader, remaining *int64) (int64, error) {
	in := bufio.NewReader(r)
	plain, packed := io.Reader(in), false
	if head, err := in.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return 0, invalid("it is no gzip", err)
		}
		plain, packed = z, true
	}
	bounded := &bounded{r: plain, remaining: remaining}
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

// bounded is a reader that ends when no bytes are left.
type bounded struct {
	r         io.Reader
	remaining *int64
	over      bool
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	var long *http.MaxBytesError
	if *b.remaining -= int64(n); *b.remaining < 0 || errors.As(err, &long) {
		b.over = true
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// idx returns the data set of a form.
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
