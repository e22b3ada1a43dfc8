package cli

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// generated are files of data for init, drawn from a seed.
type generated struct {
	t   *testing.T
	dir string
	rng *rand.Rand
}

func (g *generated) write(name string, data []byte) string {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		g.t.Fatal(err)
	}
	return path
}

// center is what column j of class k is drawn around; one column in ten tells the classes apart.
func center(k, j int) float64 {
	if j%10 != 0 {
		return 0
	}
	return 3 * float64((k*(j/10+3)+k*k)%11-5)
}

// csv is a table of rows, of which each has a class, numbers, a text and a missing value now and then.
func (g *generated) csv(name string, rows, columns, classes int) string {
	var out strings.Builder
	for j := range columns {
		fmt.Fprintf(&out, "c%d,", j)
	}
	out.WriteString("color,kind\n")
	for i := range rows {
		k := i % classes
		for j := range columns {
			if g.rng.IntN(50) > 0 {
				fmt.Fprintf(&out, "%.3f", 100+center(k, j)+g.rng.NormFloat64())
			}
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%s,class %d\n", []string{"red", "blue"}[g.rng.IntN(2)], k)
	}
	return g.write(name, []byte(out.String()))
}

// npy is a NumPy array.
func (g *generated) npy(name, dtype, shape string, values any) string {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, shape)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	out := bytes.NewBufferString("\x93NUMPY\x01\x00")
	for _, v := range []any{uint16(len(head)), []byte(head), values} {
		if err := binary.Write(out, binary.LittleEndian, v); err != nil {
			g.t.Fatal(err)
		}
	}
	return g.write(name, out.Bytes())
}

// arrays are features of rows and their classes.
func (g *generated) arrays(rows, columns, classes int) (x, y string) {
	values, labels := make([]float32, 0, rows*columns), make([]int64, rows)
	for i := range rows {
		labels[i] = int64(i % classes)
		for j := range columns {
			values = append(values, float32(center(i%classes, j)+g.rng.NormFloat64()))
		}
	}
	return g.npy("x.npy", "<f4", fmt.Sprintf("%d, %d", rows, columns), values),
		g.npy("y.npy", "<i8", fmt.Sprintf("%d,", rows), labels)
}

// pictures is a folder of pictures for each class: stripes of its own width, with noise. mixed: each has its own size.
func (g *generated) pictures(of, classes int, mixed bool) string {
	for k := range classes {
		for i := range of {
			height, width := 24, 24
			if mixed {
				height, width = 20+g.rng.IntN(30), 20+g.rng.IntN(30)
			}
			img := image.NewRGBA(image.Rect(0, 0, width, height))
			for y := range height {
				for x := range width {
					on := 120 * (x * (k + 1) * 2 / width % 2)
					img.Set(x, y, color.RGBA{uint8(60 + on + g.rng.IntN(60)), uint8(g.rng.IntN(255)), 90, 255})
				}
			}
			var out bytes.Buffer
			if err := png.Encode(&out, img); err != nil {
				g.t.Fatal(err)
			}
			g.write(fmt.Sprintf("pictures/kind%d/%d.png", k, i), out.Bytes())
		}
	}
	return filepath.Join(g.dir, "pictures")
}

const initKeras = `{"class_name": "Sequential", "keras_version": "3.10.0", "config": {"name": "m", "layers": [
  {"class_name": "InputLayer", "config": {"name": "in", "batch_shape": [null, 8, 8, 1]}},
  {"class_name": "Flatten", "config": {"name": "flat"}},
  {"class_name": "Dense", "config": {"name": "h", "units": 24, "activation": "relu"}},
  {"class_name": "Dense", "config": {"name": "out", "units": 10, "activation": "softmax"}}]}}`

// What init writes for data of every kind and of very different shapes passes validate, and trains well above guessing
// as it stands.
func TestInitWritesJobsThatLearn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  func(g *generated) []string
		least float64
	}{
		"few rows": {func(g *generated) []string {
			return []string{"--csv", g.csv("few.csv", 30, 3, 2), "--label", "kind"}
		}, 0.8},
		"many classes": {func(g *generated) []string {
			return []string{"--csv", g.csv("many.csv", 1000, 31, 20), "--label", "kind"}
		}, 0.5},
		"a wide table": {func(g *generated) []string { return []string{"--csv", g.csv("wide.csv", 160, 200, 4)} }, 0.7},
		"arrays": {func(g *generated) []string {
			x, y := g.arrays(400, 21, 5)
			return []string{"--arrays", x, "--labels", y}
		}, 0.7},
		"pictures":       {func(g *generated) []string { return []string{"--images", g.pictures(30, 3, false)} }, 0.7},
		"mixed pictures": {func(g *generated) []string { return []string{"--images", g.pictures(20, 2, true)} }, 0.8},
		"texts": {func(g *generated) []string {
			for i := range 200 {
				mood := []string{"great", "lovely", "fine", "weak", "dull", "slow"}[i%2*3+g.rng.IntN(3)]
				g.write(fmt.Sprintf("texts/%d/%d.txt", i%2, i), fmt.Appendf(nil, "film %d\nis %s", g.rng.IntN(40), mood))
			}
			return []string{"--text-files", filepath.Join(g.dir, "texts"), "--tokenizer", "bpe:300", "--positions", "16"}
		}, 0.8},
		"lines without a header": {func(g *generated) []string {
			file := g.csv("lines.csv", 200, 3, 2)
			data, err := os.ReadFile(file)
			if err != nil {
				g.t.Fatal(err)
			}
			_, data, _ = bytes.Cut(data, []byte("\n"))
			g.write("lines.csv", bytes.ReplaceAll(data, []byte(","), []byte("^")))
			return []string{"--csv", file, "--separator", "^", "--header", "no", "--missing", "blue", "--max-columns", "9"}
		}, 0.8},
		"keras": {func(g *generated) []string {
			return []string{"--keras", g.write("my.json", []byte(initKeras)), "--dataset", "digits"}
		}, 0.8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := build(t)
			dir := t.TempDir()
			file := filepath.Join(dir, "job.yaml")
			g := &generated{t, dir, rand.New(rand.NewPCG(33, 1))}
			out, errs, code := d.run(append([]string{"init", "mine", "--file", file}, c.args(g)...)...)
			if code != 0 || !strings.Contains(out, "wrote") || !strings.Contains(errs, "submit "+file) {
				t.Fatalf("exit %d\n%s%s", code, out, errs)
			}
			if _, errs, code := d.run("validate", file); code != 0 {
				t.Fatalf("validate: exit %d\n%s", code, errs)
			}
			out, errs, code = d.run("submit", file, "-o", "json")
			if doc := parse(t, out); code != 0 || doc.Accuracy < c.least {
				text, _ := os.ReadFile(file)
				t.Errorf("exit %d, accuracy %g, want %g\n%s%s", code, doc.Accuracy, c.least, errs, text)
			} else {
				t.Logf("accuracy %g", doc.Accuracy)
			}
		})
	}
}

// numbers is a table whose target is a number: a sum of the columns' effects, of a word's effect, and of noise. size is
// the deviation of the target, and mean what it is around.
func (g *generated) numbers(name string, rows, columns int, mean, size float64) (csv, schema string) {
	var out, fields strings.Builder
	for j := range columns {
		fmt.Fprintf(&out, "c%d,", j)
		fmt.Fprintf(&fields, `{"name": "c%d", "kind": "number"}, `, j)
	}
	out.WriteString("city,price\n")
	for range rows {
		target := 0.0
		for j := range columns {
			v := g.rng.NormFloat64()
			fmt.Fprintf(&out, "%.3f,", 50+20*v)
			target += v / math.Sqrt(float64(columns)) * float64(1-j%2*2)
		}
		city := g.rng.IntN(3)
		fmt.Fprintf(&out, "%s,%.6g\n", []string{"Bern", "Basel", "Chur"}[city],
			mean+size*(target+0.5*float64(city-1)+0.1*g.rng.NormFloat64()))
	}
	fields.WriteString(`{"name": "city", "kind": "category"}, {"name": "price", "kind": "target"}`)
	return g.write(name+".csv", []byte(out.String())),
		g.write(name+".json", []byte(`{"header": true, "hash": 50, "fields": [`+fields.String()+`]}`))
}

// What init writes for targets that are numbers learns them, whatever their size.
func TestInitOfARegressionLearns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows, columns int
		mean, size    float64
	}{
		"prices":   {400, 3, 500_000, 160_000},
		"years":    {400, 3, 2010, 5},
		"few rows": {40, 1, -20, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := build(t)
			dir := t.TempDir()
			file := filepath.Join(dir, "job.yaml")
			g := &generated{t, dir, rand.New(rand.NewPCG(33, 2))}
			csv, schema := g.numbers("data", c.rows, c.columns, c.mean, c.size)
			for _, args := range [][]string{
				{"dataset", "add", "mine", "--csv", csv, "--schema", schema},
				{"init", "--dataset", "mine", "--file", file},
			} {
				if out, errs, code := d.run(args...); code != 0 {
					t.Fatalf("%v: exit %d\n%s%s", args, code, out, errs)
				}
			}
			out, errs, code := d.run("submit", file, "--fail-if", "did not learn", "--jq", ".rounds[-1].rmse")
			rmse, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
			if code != 0 || err != nil || rmse > c.size/3 {
				text, _ := os.ReadFile(file)
				t.Errorf("exit %d, RMSE %v, want at most %g\n%s\n%s", code, out, c.size/3, errs, text)
			}
		})
	}
}
