package dense

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"testing"

	harm "github.com/disdel/disdel/internal/test/faults"
)

// Pictures that nobody chose have the pixels that Pillow reads. A file that ends early is refused.
//
// DISDEL_TEST_DRAWN is how many are drawn, from DISDEL_TEST_SEED.
func TestPicturesAreThoseOfPillow(t *testing.T) {
	python := os.Getenv("DISDEL_TEST_ONNXRUNTIME")
	if python == "" {
		t.Skip("DISDEL_TEST_ONNXRUNTIME names no Python with Pillow")
	}
	drawn, seed := harm.Drawn()
	said, err := exec.CommandContext(t.Context(), python, "testdata/drawpictures.py", strconv.Itoa(10*drawn),
		strconv.FormatUint(seed, 10)).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
	if len(lines) != 10*drawn {
		t.Fatalf("%d pictures were drawn, not %d", len(lines), 10*drawn)
	}
	for i, line := range lines {
		var want struct {
			Mode         string
			File, Pixels []byte
			Off          int
		}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		got, shape, err := Picture(want.File, 3, 0, 0)
		if err != nil || len(got) != len(want.Pixels) {
			t.Errorf("seed %d, picture %d (%s): shape %v, %v", seed, i, want.Mode, shape, err)
			continue
		}
		for k := range want.Pixels { // Pillow has the channels last
			v := got[k%3*(len(got)/3)+k/3]
			if d := int(v) - int(want.Pixels[k]); d > want.Off || -d > want.Off {
				t.Errorf("seed %d, picture %d (%s): value %d is %d, not %d", seed, i, want.Mode, k, v, want.Pixels[k])
				break
			}
		}
		if _, _, err := Picture(want.File[:len(want.File)/2], 3, 0, 0); err == nil {
			t.Errorf("seed %d, picture %d (%s): half of the file is read", seed, i, want.Mode)
		}
	}
}
