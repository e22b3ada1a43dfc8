package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// watchedLine is the part of a watch's line that the guide promises.
type watchedLine struct {
	File    string `json:"file"`
	Model   string `json:"model"`
	Classes []int  `json:"classes"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// linesOf are the whole lines of a watch's output.
func linesOf(t *testing.T, file string) (out []watchedLine) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(data)) {
		var line watchedLine
		if !strings.HasSuffix(text, "\n") {
			break
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		out = append(out, line)
	}
	return out
}

// digitPicture is a picture of 8x8 gray pixels, larger by a factor.
func digitPicture(t *testing.T, factor int) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 8*factor, 8*factor))
	for i := range 8 * factor {
		img.SetGray(4*factor, i, color.Gray{Y: 255})
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A watch answers files of every sort as they come, waits for one that is being written, tells of one that cannot be
// read, ends with Ctrl-C, and says nothing twice when it is started again.
func TestAFolderIsWatched(t *testing.T) {
	t.Parallel()
	d := build(t)
	if _, errs, code := d.run("-q", "quickstart", "--set", "training.epochs=2"); code != 0 {
		t.Fatal(errs)
	}
	in, output := t.TempDir(), filepath.Join(t.TempDir(), "said.jsonl")
	put := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(in, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sample, _, _ := d.run("dataset", "sample", "digits", "--row", "7", "--row", "8")
	var watch *exec.Cmd
	var errs *bytes.Buffer
	begin := func() {
		t.Helper()
		watch, _, errs = d.command("infer", "digits-cnn", "--watch", in, "--output", output)
		if err := watch.Start(); err != nil {
			t.Fatal(err)
		}
	}
	end := func() {
		t.Helper()
		if err := watch.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := watch.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, errs)
		}
	}
	answered := func(files ...string) {
		t.Helper()
		d.until(fmt.Sprint("answers for ", files), func() bool {
			said := map[string]bool{}
			for _, l := range linesOf(t, output) {
				said[l.File] = said[l.File] || l.Error == nil || l.File == "broken.png"
			}
			return !slices.ContainsFunc(files, func(f string) bool { return !said[f] })
		})
	}
	put("rows.json", []byte(sample))
	begin()
	answered("rows.json")
	whole := digitPicture(t, 1)
	half, err := os.Create(filepath.Join(in, "slow.png"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range whole { // over longer than a file has to stay as it is
		if _, err := half.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond / time.Duration(len(whole)))
	}
	if err := half.Close(); err != nil {
		t.Fatal(err)
	}
	answered("slow.png")
	put("large.png", digitPicture(t, 4))
	put("table.csv", []byte(strings.TrimSuffix(strings.Repeat("0.5,", 64), ",")+"\n"))
	put("broken.png", whole[:50])
	put(".hidden", whole)
	if err := os.Rename(filepath.Join(in, ".hidden"), filepath.Join(in, "renamed.png")); err != nil {
		t.Fatal(err)
	}
	answered("large.png", "table.csv", "broken.png", "renamed.png")
	end()
	put("late.json", []byte(sample))
	begin()
	answered("late.json")
	end()
	var got []string
	for _, l := range linesOf(t, output) {
		switch {
		case l.Error != nil && l.File == "slow.png": // where the writer was kept from writing for longer than a second
		case l.Error != nil:
			got = append(got, l.File+" failed")
		case l.Model != "digits-cnn:v1":
			t.Errorf("%+v", l)
		default:
			got = append(got, fmt.Sprint(l.File, " ", len(l.Classes)))
		}
	}
	if got[0] != "rows.json 2" || got[1] != "slow.png 1" || got[len(got)-1] != "late.json 2" {
		t.Errorf("%v", got)
	}
	slices.Sort(got)
	want := []string{
		"broken.png failed", "large.png 1", "late.json 2", "renamed.png 1", "rows.json 2", "slow.png 1", "table.csv 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v\n%s", got, errs)
	}
	d.nothingStays()
}

// Who interrupts an inference of a data set finds neither a file nor answers beside the models.
func TestAnInterruptedInferenceLeavesNothing(t *testing.T) {
	t.Parallel()
	d := build(t)
	if _, errs, code := d.run("-q", "quickstart", "--set", "training.epochs=1"); code != 0 {
		t.Fatal(errs)
	}
	dir, answers := t.TempDir(), filepath.Join(d.home, "models", "answers")
	file := filepath.Join(dir, "said.csv")
	for try := 0; ; try++ {
		cmd, _, errs := d.command("infer", "digits-cnn", "--dataset", "digits", "--output", file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			cmd.Wait() //nolint:errcheck // its exit code is looked at
		}()
		d.until("answers that are wanted", func() bool {
			select {
			case <-ended:
				return true
			default:
			}
			begun, _ := filepath.Glob(filepath.Join(answers, "*", "*"))
			return len(begun) > 0
		})
		cmd.Process.Signal(syscall.SIGINT) //nolint:errcheck // it may have ended
		<-ended
		code := cmd.ProcessState.ExitCode()
		if code == 0 && try < 20 && os.Remove(file) == nil { // it was done before it was told
			continue
		}
		if code != 130 {
			t.Errorf("exit %d\n%s", code, errs)
		}
		break
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if left, _ := os.ReadDir(answers); len(left) > 0 {
		t.Errorf("%v is left beside the models", left)
	}
	d.nothingStays()
}

// What an inference leaves that is killed outright, the next one takes away. The first cannot be done before: nobody
// reads what it has to say.
func TestTheNextInferenceSweepsForAKilledOne(t *testing.T) {
	t.Parallel()
	d := build(t)
	if _, errs, code := d.run("-q", "quickstart", "--set", "training.epochs=1"); code != 0 {
		t.Fatal(errs)
	}
	cmd, _, errs := d.command("infer", "digits-cnn", "--dataset", "digits", "--output", "-")
	cmd.Stdout = nil
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	_, err = io.ReadFull(said, first)
	cmd.Process.Kill() //nolint:errcheck // it may have ended
	cmd.Wait()         //nolint:errcheck // it was killed
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	left := func(folder string) []string {
		files, _ := filepath.Glob(filepath.Join(d.home, "models", folder, "*"))
		return files
	}
	if notes, answers := left("waiting"), left("answers"); len(notes) != 1 || len(answers) != 1 {
		t.Fatalf("killed, it has left %v and %v", notes, answers)
	}
	file := filepath.Join(t.TempDir(), "said.csv")
	if _, errs, code := d.run("infer", "digits-cnn", "--dataset", "digits", "--output", file); code != 0 {
		t.Errorf("exit %d\n%s", code, errs)
	}
	for _, folder := range []string{"waiting", "answers"} {
		if files := left(folder); len(files) > 0 {
			t.Errorf("%v stays", files)
		}
	}
	d.until("end of its containers", func() bool { return len(d.children()) == 0 })
	d.nothingStays()
}
