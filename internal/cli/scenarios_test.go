package cli

import (
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Scenarios of a newcomer's first weeks. Each is a script that starts from an empty home. make scenarios prints
// their times.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files := scenarioFiles(t)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			t.Cleanup(func() { t.Logf("scenario %s %.1f s", name, time.Since(began).Seconds()) })
			testscript.Run(t, testscript.Params{
				Files: []string{file}, UpdateScripts: *update, RequireExplicitExec: true,
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"serve": serveForScript, "pictures": writePictures, "table": writeTable, "array": writeArray,
					"oldhome": copyOldHome, "hangup": hangUp, "again": again, "document": oneDocument,
				},
				Setup: func(e *testscript.Env) error {
					home := filepath.Join(e.WorkDir, "home")
					e.Setenv("DISDEL_HOME", home)
					e.Setenv("NO_COLOR", "1")
					e.Defer(func() { endLeftPlatform(home) })
					return nil
				},
			})
		})
	}
}

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/scenarios/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	return files
}

// The expectations of users, by number. Each is shown by a scenario, in a line "# expectation N: ...".
const expectations = 25

func TestEveryExpectationHasAScenario(t *testing.T) {
	line := regexp.MustCompile(`(?m)^# expectation (\d+)`)
	var shown []string
	for _, file := range scenarioFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			shown = append(shown, m[1])
		}
	}
	// The page's own tests show these: it updates in place, and compares many jobs (service/web).
	shown = append(shown, "15", "16")
	for n := 1; n <= expectations; n++ {
		if !slices.Contains(shown, strconv.Itoa(n)) {
			t.Errorf("no scenario shows expectation %d", n)
		}
	}
}

// program is disdel in a script's environment.
func program(ts *testscript.TestScript, args ...string) *exec.Cmd {
	cmd := exec.Command("disdel", args...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "DISDEL_HOME", "DISDEL_SERVER", "DISDEL_TOKEN", "WORK"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	return cmd
}

// hangUp is the command hangup REGEXP ARGS: it starts disdel with ARGS, waits until it has printed REGEXP, and closes
// its terminal. The file hangup.log has what it printed.
func hangUp(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: hangup REGEXP ARGS")
	}
	log, err := os.Create(ts.MkAbs("hangup.log"))
	ts.Check(err)
	defer log.Close()
	cmd := program(ts, args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	ts.Check(cmd.Start())
	form := regexp.MustCompile(args[0])
	until(ts, args[0], func() bool {
		text, err := os.ReadFile(log.Name())
		return err == nil && form.Match(text)
	})
	ts.Check(cmd.Process.Signal(syscall.SIGHUP))
	_ = cmd.Wait() // its exit code is not what is looked at
}

// again is the command again REGEXP ARGS: it runs disdel with ARGS until its output matches.
func again(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: again REGEXP ARGS")
	}
	form := regexp.MustCompile(args[0])
	until(ts, args[0], func() bool {
		out, _ := program(ts, args[1:]...).CombinedOutput() // it may fail until then
		return form.Match(out)
	})
}

// until returns when holds is true, and fails the script if that takes longer than a minute.
func until(ts *testscript.TestScript, what string, holds func() bool) {
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("no %s", what)
		}
	}
}

// writePictures is the command pictures DIR CLASS... N: N small pictures of each class in a folder of its own, light
// ones of the first class and darker ones of each further class.
func writePictures(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: pictures DIR CLASS... N")
	}
	n, err := strconv.Atoi(args[len(args)-1])
	ts.Check(err)
	rng := rand.New(rand.NewPCG(1, 2))
	for c, class := range args[1 : len(args)-1] {
		dir := filepath.Join(ts.MkAbs(args[0]), class)
		ts.Check(os.MkdirAll(dir, 0o700))
		for i := range n {
			size := 20 + rng.IntN(8)
			m := image.NewGray(image.Rect(0, 0, size, size))
			for k := range m.Pix {
				m.Pix[k] = uint8(220 - 70*c + rng.IntN(30))
			}
			m.SetGray(i%size, 0, color.Gray{Y: 0})
			f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.png", i)))
			ts.Check(err)
			ts.Check(png.Encode(f, m))
			ts.Check(f.Close())
		}
	}
}

// writeTable is the command table FILE ROWS KIND: a CSV file with two numbers, a word, an id and the last column, which
// is a class ("species"), a number ("price"), a number that follows from the width ("rent") or a text ("review").
func writeTable(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: table FILE ROWS KIND")
	}
	rows, err := strconv.Atoi(args[1])
	ts.Check(err)
	rng := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	fmt.Fprintf(&b, "id,length,width,color,%s\n", args[2])
	for i := range rows {
		class := i % 3
		width := float64(3-class) + rng.Float64()/2
		last := map[string]string{
			"species": []string{"setosa", "versicolor", "virginica"}[class],
			"price":   strconv.Itoa(60_000 + rng.IntN(700_000)),
			"rent":    fmt.Sprintf("%.1f", 400+300*width+20*rng.Float64()),
			"review":  fmt.Sprintf("%q", fmt.Sprintf("I liked part %d of it, %d of 10", i, rng.IntN(10))),
		}[args[2]]
		length := ""
		if i%17 != 0 { // some are missing
			length = fmt.Sprintf("%.2f", float64(class)+rng.Float64()/2)
		}
		fmt.Fprintf(&b, "r%d,%s,%.2f,%s,%s\n", i, length, width,
			[]string{"red", "blue"}[rng.IntN(2)], last)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o600))
}

// writeArray is the command array X Y ROWS COLUMNS: float32 features and int64 labels as .npy files, of two classes.
func writeArray(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: array X Y ROWS COLUMNS")
	}
	rows, err := strconv.Atoi(args[2])
	ts.Check(err)
	columns, err := strconv.Atoi(args[3])
	ts.Check(err)
	rng := rand.New(rand.NewPCG(5, 6))
	x, y := make([]float32, 0, rows*columns), make([]int64, 0, rows)
	for i := range rows {
		y = append(y, int64(i%2))
		for range columns {
			x = append(x, float32(i%2)+rng.Float32())
		}
	}
	write := func(path, kind, shape string, data any) {
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kind, shape)
		head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
		f, err := os.Create(ts.MkAbs(path))
		ts.Check(err)
		_, err = io.WriteString(f, "\x93NUMPY\x01\x00"+string(binary.LittleEndian.AppendUint16(nil, uint16(len(head))))+head)
		ts.Check(err)
		ts.Check(binary.Write(f, binary.LittleEndian, data))
		ts.Check(f.Close())
	}
	write(args[0], "<f4", fmt.Sprintf("%d, %d", rows, columns), x)
	write(args[1], "<i8", fmt.Sprintf("%d,", rows), y)
}

// copyOldHome is the command oldhome DIR: a home folder as the version of 2026-11-21 left it.
func copyOldHome(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: oldhome DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	archive, err := filepath.Abs("../../test/robust/testdata/home-2026-11-21.tar.gz")
	ts.Check(err)
	ts.Check(exec.Command("tar", "-xzf", archive, "-C", dir).Run())
}
