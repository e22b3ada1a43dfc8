package dataset

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/disdel/disdel"
)

// cifarRow is a row of the binary version: labels, then an image whose pixels of a channel have all one value.
func cifarRow(labels []byte, channels ...byte) []byte {
	out := append([]byte(nil), labels...)
	for _, v := range channels {
		out = append(out, bytes.Repeat([]byte{v}, cifarSide*cifarSide)...)
	}
	return out
}

func put(t testing.TB, folder, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The layout of https://www.cs.toronto.edu/~kriz/cifar.html: a byte of the label (of CIFAR-100 two, the coarse one
// first), then 1,024 bytes each of red, green and blue, a row of pixels after the other.
func TestCIFARIsReadAsItIsPublished(t *testing.T) {
	folder := t.TempDir()
	put(t, folder, "data_batch_1.bin", append(cifarRow([]byte{3}, 1, 2, 3), cifarRow([]byte{9}, 4, 5, 6)...))
	put(t, folder, "data_batch_2.bin", cifarRow([]byte{0}, 7, 8, 9))
	put(t, folder, "test_batch.bin", cifarRow([]byte{5}, 10, 11, 12))
	put(t, folder, "batches.meta.txt", []byte("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n"))
	in, err := ReadCIFAR("small", folder, FormatCIFAR10)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(in.Train.Labels, in.Train.Shape, in.Classes, in.ClassNames); got != "[3 9 0] [3 32 32] 10 [a "+
		"b c d e f g h i j]" {
		t.Error(got)
	}
	for row, want := range [][]byte{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}} {
		for c, v := range want {
			if at := row*cifarImage + c*cifarSide*cifarSide; in.Train.U8[at] != v || in.Train.U8[at+cifarSide*cifarSide-1] != v {
				t.Errorf("row %d, channel %d begins with %d, want %d", row, c, in.Train.U8[at], v)
			}
		}
	}
	if in.Test == nil || in.Test.Len() != 1 || in.Test.Labels[0] != 5 {
		t.Errorf("held out: %+v", in.Test)
	}
	hundred := t.TempDir()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(cifarRow([]byte{19, 99}, 1, 2, 3)) //nolint:errcheck // to memory
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, hundred, "train.bin", packed.Bytes())
	if in, err = ReadCIFAR("small", hundred, FormatCIFAR100); err != nil || in.Train.Labels[0] != 99 ||
		in.Classes != 100 ||
		in.Test != nil || in.ClassNames != nil {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestCIFARSaysWhatIsWrong(t *testing.T) {
	whole := cifarRow([]byte{1}, 1, 2, 3)
	for name, c := range map[string]struct {
		file string
		data []byte
		want disdel.Kind
	}{
		"no files":          {"other.bin", whole, disdel.Invalid},
		"half a row":        {"data_batch_1.bin", whole[:1000], disdel.Corrupt},
		"one byte too many": {"data_batch_1.bin", append(append([]byte(nil), whole...), 1), disdel.Corrupt},
		"empty":             {"data_batch_1.bin", nil, disdel.Corrupt},
		"a class too high":  {"data_batch_1.bin", cifarRow([]byte{10}, 1, 2, 3), disdel.Corrupt},
	} {
		folder := t.TempDir()
		put(t, folder, c.file, c.data)
		if _, err := ReadCIFAR("bad", folder, FormatCIFAR10); disdel.KindOf(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := ReadCIFAR("bad", t.TempDir(), "cifar7"); disdel.KindOf(err) != disdel.Invalid {
		t.Error("a format that there is not was read")
	}
}

func ExampleReadCIFAR() {
	folder, err := os.MkdirTemp("", "cifar-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	if err := os.WriteFile(filepath.Join(folder, "data_batch_1.bin"), cifarRow([]byte{3}, 1, 2, 3), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	in, err := ReadCIFAR("cats", folder, FormatCIFAR10)
	fmt.Println(in.Train.Len(), in.Train.Shape, in.Train.Labels, err)
	// Output: 1 [3 32 32] [3] <nil>
}

func FuzzCIFAR(f *testing.F) {
	f.Add(cifarRow([]byte{1}, 1, 2, 3))
	f.Add([]byte{})
	f.Add([]byte{0x1f, 0x8b, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		folder := t.TempDir()
		put(t, folder, "data_batch_1.bin", data)
		in, err := ReadCIFAR("fuzzed", folder, FormatCIFAR10)
		if err == nil && len(in.Train.U8) != in.Train.Len()*cifarImage {
			t.Errorf("%d values of %d rows", len(in.Train.U8), in.Train.Len())
		}
	})
}
