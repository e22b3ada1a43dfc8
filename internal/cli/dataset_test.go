package cli

import (
	"encoding/binary"
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// writeIDX is the scripts' command idx FILE SIDE...: an IDX file in which value i of row r is (r modulo 2) times 200,
// plus i modulo 50; of rank 1 just r modulo 2.
func writeIDX(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: idx FILE SIDE...")
	}
	data, values := []byte{0, 0, 8, byte(len(args) - 1)}, 1
	for _, text := range args[1:] {
		n, err := strconv.Atoi(text)
		ts.Check(err)
		data, values = binary.BigEndian.AppendUint32(data, uint32(n)), values*n
	}
	rows, err := strconv.Atoi(args[1])
	ts.Check(err)
	for i := range values {
		r := i / (values / rows)
		if len(args) == 2 {
			data = append(data, byte(r%2))
			continue
		}
		data = append(data, byte(r%2*200+i%50))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o600))
}
