package dense

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	harm "github.com/disdel/disdel/internal/test/faults"
)

// damaged is a kind of file: a good one, and how its rows are added from a file of that name.
type damaged struct {
	file string // within the folder of the case
	data []byte
	add  func(ctx context.Context, s *dataset.Store, folder, file string) error
	// beside are good files that the reader needs too.
	beside map[string][]byte
}

// damagedKinds are small good files of every format that rows are read from.
func damagedKinds(t *testing.T) map[string]damaged {
	t.Helper()
	table := func(_, file string) (dataset.DenseInput, error) {
		return CSV{Source: dataset.FileSource(file), Targets: []string{"price"}}.Input("d")
	}
	pictures := func(folder, _ string) (dataset.DenseInput, error) { return Pictures{Folder: folder}.Input("d") }
	archived := func(_, file string) (dataset.DenseInput, error) {
		a, err := Archive(file)
		if err != nil {
			return dataset.DenseInput{}, err
		}
		return a.Input("d")
	}
	idx := func(ctx context.Context, s *dataset.Store, folder, _ string) error {
		in, err := dataset.Files{
			Images: filepath.Join(folder, "x.idx"), Labels: filepath.Join(folder, "y.idx"),
		}.Input("d")
		if err == nil {
			_, err = s.Add(ctx, in, false)
		}
		return err
	}
	x := npy("<f4", "False", "40, 3", bytesOf(binary.LittleEndian, quarters(120)))
	y := npy("|u1", "False", "40,", bytes.Repeat([]byte{0, 1}, 20))
	arrays := func(folder, _ string) (dataset.DenseInput, error) {
		return Arrays{
			Images: dataset.FileSource(filepath.Join(folder, "x.npy")),
			Labels: dataset.FileSource(filepath.Join(folder, "y.npy")),
		}.Input("d")
	}
	var text, lines strings.Builder
	text.WriteString("town,area,price\n")
	rows := make([]home, 40)
	for i := range rows {
		area := float64(i) / 3
		rows[i] = home{Town: []string{"Rome", "Bath"}[i%2], Area: &area, Price: float32(i)}
		fmt.Fprintf(&text, "%s,%g,%d\n", rows[i].Town, area, i)
		fmt.Fprintf(&lines, "{\"town\": %q, \"area\": %g, \"price\": %d}\n", rows[i].Town, area, i)
	}
	rome, err := os.ReadFile(parquetOf(t, rows...).Path)
	if err != nil {
		t.Fatal(err)
	}
	pixels := image.NewGray(image.Rect(0, 0, 9, 9))
	for i := range pixels.Pix {
		pixels.SetGray(i%9, i/9, color.Gray{Y: byte(i * 3)})
	}
	var asPNG, asJPEG bytes.Buffer
	if err := png.Encode(&asPNG, pixels); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&asJPEG, pixels, nil); err != nil {
		t.Fatal(err)
	}
	good := map[string][]byte{"b/good.png": asPNG.Bytes()}
	return map[string]damaged{
		"npy":         {file: "x.npy", data: []byte(x), add: rowsOf(arrays), beside: map[string][]byte{"y.npy": []byte(y)}},
		"npy labels":  {file: "y.npy", data: []byte(y), add: rowsOf(arrays), beside: map[string][]byte{"x.npy": []byte(x)}},
		"npz":         {file: "a.npz", add: rowsOf(archived), data: zipped(t, zip.Deflate, x, y)},
		"npz, stored": {file: "a.npz", add: rowsOf(archived), data: zipped(t, zip.Store, x, y)},
		"PNG":         {file: "a/bad.png", data: asPNG.Bytes(), add: rowsOf(pictures), beside: good},
		"JPEG":        {file: "a/bad.jpg", data: asJPEG.Bytes(), add: rowsOf(pictures), beside: good},
		"CSV":         {file: "a.csv", data: []byte(text.String()), add: rowsOf(table)},
		"gzip":        {file: "a.csv.gz", data: gzipped(t, text.String()), add: rowsOf(table)},
		"JSON lines":  {file: "a.jsonl", data: []byte(lines.String()), add: rowsOf(table)},
		"Parquet":     {file: "a.parquet", data: rome, add: rowsOf(table)},
		"IDX": {
			file: "x.idx", data: append([]byte{0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 3, 0, 0, 0, 3}, make([]byte, 360)...), add: idx,
			beside: map[string][]byte{"y.idx": append([]byte{0, 0, 8, 1, 0, 0, 0, 40}, bytes.Repeat([]byte{0, 1}, 20)...)},
		},
		"IDX labels": {
			file: "y.idx", data: append([]byte{0, 0, 8, 1, 0, 0, 0, 40}, bytes.Repeat([]byte{0, 1}, 20)...), add: idx,
			beside: map[string][]byte{
				"x.idx": append([]byte{0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 3, 0, 0, 0, 3}, make([]byte, 360)...),
			},
		},
	}
}

// rowsOf adds the rows that a reader reads.
func rowsOf(read func(folder, file string) (dataset.DenseInput, error)) func(
	context.Context, *dataset.Store, string, string,
) error {
	return func(ctx context.Context, s *dataset.Store, folder, file string) error {
		in, err := read(folder, file)
		if err == nil {
			_, err = s.AddDense(ctx, in, false)
		}
		return err
	}
}

func quarters(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i) / 4
	}
	return out
}

func zipped(t *testing.T, method uint16, x, y string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, data := range map[string]string{"x.npy": x, "y.npy": y} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Damaged files are added as whole data sets, or refused with the name of the file and the next step. Nothing stays of
// those that are refused, and what a file only claims takes no memory.
//
// DISDEL_TEST_DRAWN is how many are drawn of each kind, from DISDEL_TEST_SEED.
func TestDrawnDamageOfFiles(t *testing.T) {
	drawn, seed := harm.Drawn()
	for kind, k := range damagedKinds(t) {
		t.Run(kind, func(t *testing.T) {
			folder := t.TempDir()
			for name, data := range k.beside {
				writeFile(t, filepath.Join(folder, name), data)
			}
			refused := 0
			for i := range drawn {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				data, what := harm.Mutate(rng, k.data)
				file := filepath.Join(folder, k.file)
				writeFile(t, file, data)
				wrong := damageOf(t, k, folder, file)
				if wrong == "" {
					continue
				}
				if refused++; wrong != "refused" {
					t.Errorf("seed %d, %s %d, %s: %s", seed, kind, i, what, wrong)
				}
			}
			if drawn >= 40 && refused < drawn/5 {
				t.Errorf("%d of %d damaged files are refused", refused, drawn)
			}
		})
	}
}

func writeFile(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// damageOf adds a damaged file, and returns "" if it was added whole, "refused" if it was refused as it should, or
// what is wrong.
func damageOf(t *testing.T, k damaged, folder, file string) (wrong string) {
	t.Helper()
	s, err := dataset.OpenStore(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wrong, err = harm.Watched(64<<20, func() error { return k.add(t.Context(), s, folder, file) })
	if wrong != "" {
		return wrong
	}
	list, wrongList := s.List(t.Context())
	if wrongList != nil {
		t.Fatal(wrongList)
	}
	if err == nil {
		if len(list) != 1 {
			return fmt.Sprintf("it was added, and %d data sets are there", len(list))
		}
		return ""
	}
	if len(list) > 0 {
		return fmt.Sprintf("a refused file left %s", list[0].Name)
	}
	if _, err := s.Remove(t.Context(), "d"); disdel.KindOf(err) != disdel.NotFound {
		return fmt.Sprintf("a refused file left parts: %v", err)
	}
	return refusalOf(err, file)
}

// refusalOf tells whether a refusal helps the user: it names the file, it is the user's error, and it is no Go text.
func refusalOf(err error, file string) string {
	text := err.Error()
	switch {
	case disdel.KindOf(err) != disdel.Invalid:
		return fmt.Sprintf("the error has the kind %v: %v", disdel.KindOf(err), err)
	case !strings.Contains(text, filepath.Base(file)):
		return "the error names no file: " + text
	case strings.Contains(text, "goroutine") || strings.Contains(text, "runtime error"):
		return "the error is of the program: " + text
	case len(text) > 8000:
		return fmt.Sprintf("the error has %d bytes", len(text))
	}
	return "refused"
}
