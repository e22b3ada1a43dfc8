package dataset

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// A source is a file or an object of a bucket, plain or packed, and is opened as often as it is asked.
func TestSources(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte("a,b\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	address := stores(t)["s3"]
	bucket, err := blobs.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string][]byte{"plain.csv": []byte("a,b\n"), "packed.csv.gz": packed.Bytes()} {
		if err := blobs.WriteAll(ctx, bucket, "tables/"+name, text); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		u.Path = "/tables/" + name
		for _, from := range []Source{FileSource(file), FileSource(u.String())} {
			for range 2 {
				in, err := from.Open()
				if err != nil {
					t.Fatalf("%s: %v", from.Name, err)
				}
				if got, err := io.ReadAll(in); err != nil || string(got) != "a,b\n" {
					t.Errorf("%s: %q, %v", from.Name, got, err)
				}
				if err := in.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if from := FileSource(u.String()); from.Name != "s3://sets"+u.Path {
		t.Errorf("it is called %s", from.Name)
	}
	u.Path = "/tables/none.csv"
	for name, kind := range map[string]disdel.Kind{
		u.String(): disdel.NotFound, "s3://sets": disdel.Invalid, "s3:///key": disdel.Invalid, folder: disdel.Invalid,
		folder + "/none": disdel.Invalid,
	} {
		if _, err := FileSource(name).Open(); disdel.KindOf(err) != kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}
