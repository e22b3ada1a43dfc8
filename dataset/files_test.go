package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/disdel/disdel"
)

// An IDX file with a wrong size in its head is refused as bad input. No memory is taken for rows that are missing.
func TestAnIDXFileThatLiesIsBadInput(t *testing.T) {
	lot, folder := rand.New(rand.NewPCG(1, 10)), t.TempDir()
	for i := range 40 {
		data := []byte{0, 0, []byte{idxBytes, idxFloats}[i%2], 3}
		for range 3 {
			data = binary.BigEndian.AppendUint32(data, 2+lot.Uint32()>>lot.IntN(31))
		}
		data = append(data, 1, 2, 3)
		if i%4 > 1 {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			if _, err := z.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			data = packed.Bytes()
		}
		name := filepath.Join(folder, "images")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (Files{Images: name, Labels: name}).Input("a"); !errors.Is(err, disdel.Invalid) {
			t.Errorf("file %d: %v", i, err)
		}
	}
}
