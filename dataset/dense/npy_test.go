package dense

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

func npyFile(header string, data []byte) []byte {
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return append(append(out, header...), data...)
}

func TestNPYFiles(t *testing.T) {
	good := npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }   \n",
		binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.5)), math.Float32bits(-2)))
	v, shape, err := ReadNPY(good)
	if err != nil || !cmp.Equal(v, []float32{1.5, -2}) || !cmp.Equal(shape, []int{1, 2}) {
		t.Errorf("%v %v %v", v, shape, err)
	}
	for name, file := range map[string][]byte{
		"cut": good[:len(good)-1], "long": append(bytes.Clone(good), 0),
		"empty":        npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }\n", nil),
		"texts":        npyFile("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }\n", []byte{65, 0, 0, 0}),
		"huge":         npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 9), }\n", nil),
		"object":       npyFile("{'descr': '|O8', 'fortran_order': False, 'shape': (1,), }\n", make([]byte, 8)),
		"no magic":     []byte("hello, world"),
		"negative":     npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n", nil),
		"turned, long": npyFile("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }\n", make([]byte, 5)),
		"turned, cut":  npyFile("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }\n", make([]byte, 3)),
	} {
		if _, _, err := ReadNPY(file); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v, want Invalid", name, err)
		}
	}
}

// A small file whose header claims a gigabyte takes little memory, in either order.
func TestNPYHeadersTakeNoMemory(t *testing.T) {
	for _, order := range []string{"False", "True"} {
		file := npyFile("{'descr': '<f4', 'fortran_order': "+order+", 'shape': (134217728, 2), }\n", make([]byte, 8))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := ReadNPY(file)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, disdel.Invalid) || took > 1<<20 {
			t.Errorf("fortran_order %s: %v, with %d bytes allocated", order, err, took)
		}
	}
}

// Fortran's order, which NumPy keeps when it transposes, is turned.
func TestNPYFilesInFortransOrder(t *testing.T) {
	for _, c := range []struct {
		shape string
		data  []byte
		want  []float32
	}{
		{"(2, 3)", []byte{1, 4, 2, 5, 3, 6}, []float32{1, 2, 3, 4, 5, 6}},
		{"(2, 2, 2)", []byte{1, 5, 3, 7, 2, 6, 4, 8}, []float32{1, 2, 3, 4, 5, 6, 7, 8}},
		{"(3,)", []byte{1, 2, 3}, []float32{1, 2, 3}},
	} {
		got, _, err := ReadNPY(npyFile("{'descr': '|u1', 'fortran_order': True, 'shape': "+c.shape+", }\n", c.data))
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.shape, err, diff)
		}
	}
}

func FuzzReadNPY(f *testing.F) {
	f.Add(npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", []byte{0, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, data []byte) {
		ReadNPY(data)
	})
}
