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
	"github.com/disdel/disdel/service"
)

// uploadData adds a data set: of rows that a client has read from files of any format, or of files in the format IDX
// that come as parts of a form: images, labels, and perhaps test-images and test-labels, behind the fields layout,
// classes and overwrite.
func uploadData(c *call) (int, any, error) {
	if kind, _, _ := mime.ParseMediaType(c.Header.Get("Content-Type")); kind == dataset.RowsType {
		return uploadRows(c)
	}
	up, err := c.upload()
	if err != nil {
		return 0, nil, err
	}
	parts, err := up.parts()
	if err != nil {
		return 0, nil, err
	}
	in, err := parts.Input(c.PathValue("name"))
	if err != nil {
		return 0, nil, err
	}
	store, err := c.Service.Datasets(c.Context())
	if err != nil {
		return 0, nil, err
	}
	release, err := c.Service.ClaimDisk(c.Context(), service.InputBytes(&in))
	if err != nil {
		return 0, nil, err
	}
	defer release()
	m, err := store.Add(c.Context(), in, up.fields["overwrite"] == "true")
	if err != nil {
		return 0, nil, err
	}
	doc := datasettext.Describe(m)
	doc.Warnings = dataset.Doubts(&in, &m, parts.Layout != "")
	return http.StatusCreated, doc, nil
}

// uploadRows adds a data set of rows. They are kept in a file until they are stored: of a data set that is there
// already they are read twice.
func uploadRows(c *call) (int, any, error) {
	file, err := os.CreateTemp("", "disdel-rows-*")
	if err != nil {
		return 0, nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "take rows", Msg: "the server has no place for them", Err: err,
		}
	}
	defer os.Remove(file.Name())
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
	dense, sparse, err := dataset.ReadRows(c.PathValue("name"), file)
	if err != nil {
		return 0, nil, invalid("these are no rows of a data set", err)
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

// unless is an error of a body that was read, but for one that is too long, which has words of its own.
func unless(err error, msg string) error {
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return err
	}
	return invalid(msg, err)
}

// upload is a form that has been read.
type upload struct {
	fields map[string]string
	files  map[string]*dataset.IDX
}

// mostFields bounds what a form may say beside its files.
const mostFields = 64 << 10

// upload reads the form of a request. Its files are read as they come, and never kept as they are; packed or not, they
// may have MaxUpload together.
func (c *call) upload() (up upload, err error) {
	form, err := c.MultipartReader()
	if err != nil {
		return up, invalid("files come as multipart/form-data", err)
	}
	up = upload{fields: map[string]string{}, files: map[string]*dataset.IDX{}}
	left := c.server.MaxUpload
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return up, nil
		}
		if err == nil {
			err = up.take(part, &left)
		}
		if err != nil {
			return up, err
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
		x, err := readIDX(part, left)
		up.files[name] = &x
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

// readIDX reads a file of at most so many bytes once it is unpacked.
func readIDX(r io.Reader, left *int64) (dataset.IDX, error) {
	in := bufio.NewReader(r)
	var plain io.Reader = in
	if head, err := in.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return dataset.IDX{}, invalid("it is no gzip", err)
		}
		plain = z
	}
	bounded := &bounded{r: plain, left: left}
	x, err := dataset.ReadIDX(bounded)
	if bounded.over {
		return x, &disdel.Error{
			Kind: disdel.OverLimit, Op: "read file", Msg: "the files of the data set are too large for this server",
			Hint: "whoever runs it may add them with disdel dataset add",
		}
	}
	return x, err
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

// parts is the data set of a form.
func (up *upload) parts() (p dataset.Parts, err error) {
	if names := up.fields["classes"]; names != "" {
		p.ClassNames = strings.Split(names, ",")
	}
	switch p.Layout = dataset.Layout(strings.ToLower(up.fields["layout"])); p.Layout {
	case "", dataset.CHW, dataset.HWC:
	default:
		return p, invalid("layout is chw or hwc", nil)
	}
	images, labels := up.files["images"], up.files["labels"]
	if images == nil || labels == nil {
		return p, invalid("images and labels go together", nil)
	}
	p.Images, p.Labels = *images, *labels
	if p.TestImages, p.TestLabels = up.files["test-images"], up.files["test-labels"]; (p.TestImages == nil) !=
		(p.TestLabels == nil) {
		return p, invalid("test-images and test-labels go together", nil)
	}
	return p, nil
}
