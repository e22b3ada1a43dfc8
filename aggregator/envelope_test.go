package aggregator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

// whole is the bytes of a value of one column.
func whole(t testing.TB, k kind, u disdel.Update, meta map[string]string, wire disdel.Wire) []byte {
	t.Helper()
	h := &head{
		kind: k, id: u.ID, attempt: u.Attempt, fence: u.Fence, token: 99, samples: u.Samples,
		wire: wire, codec: codecOf(wire), meta: meta,
		difference: wire != disdel.WireFloat32, layout: newLayout(u.Weights, columnValues),
	}
	body := encodeColumn(nil, wire, h.layout.runs(0), h.layout.gather(nil, u.Weights, 0))
	h.sums = []uint32{crc32.Checksum(body, castagnoli)}
	data, err := h.encode()
	if err != nil {
		t.Fatal(err)
	}
	return append(data, body...)
}

// read does all that a reader does with a value of one column.
func read(data []byte, k kind, id disdel.UpdateID, like disdel.Weights) (disdel.Weights, error) {
	h, body, err := decodeHead(data, k, id, like)
	if err != nil || !h.inline() {
		return nil, err
	}
	if err := h.checkColumn(0, body); err != nil {
		return nil, err
	}
	values := make([]float32, h.layout.values())
	return h.layout.weightsOver(values), h.decode(values, 0, body)
}

// R11: every truncation and every flipped bit of a value is refused, in every format.
func TestEveryDamageIsRefused(t *testing.T) {
	u := update(1, 3)
	u.Fence = 7
	for _, k := range []kind{kindUpdate, kindReference, kindState} {
		for _, wire := range disdel.Wires() {
			data := whole(t, k, u, map[string]string{"epoch": "3"}, wire)
			if _, err := read(data, k, u.ID, u.Weights); err != nil {
				t.Fatal(err)
			}
			for n := range data {
				if _, err := read(data[:n], k, u.ID, u.Weights); !errors.Is(err, disdel.Corrupt) {
					t.Fatalf("%v in %s cut to %d bytes: %v", k, wire, n, err)
				}
			}
			for bit := range 8 * len(data) {
				bad := bytes.Clone(data)
				bad[bit/8] ^= 1 << (bit % 8)
				if _, err := read(bad, k, u.ID, u.Weights); !errors.Is(err, disdel.Corrupt) {
					t.Fatalf("%v in %s, bit %d: %v", k, wire, bit, err)
				}
			}
			if _, err := read(append(bytes.Clone(data), 0), k, u.ID, u.Weights); !errors.Is(err, disdel.Corrupt) {
				t.Errorf("%v in %s and a byte more: %v", k, wire, err)
			}
		}
	}
}

// sealed changes a head and makes its checksum right again: what then refuses it is not the checksum.
func sealed(data []byte, change func(b []byte)) []byte {
	out := bytes.Clone(data)
	change(out)
	n := binary.LittleEndian.Uint32(out[56:])
	binary.LittleEndian.PutUint32(out[n-4:], crc32.Checksum(out[:n-4], castagnoli))
	return out
}

func TestForeignValuesAreRefused(t *testing.T) {
	u := update(1, 3)
	data := whole(t, kindUpdate, u, nil, disdel.WireFloat32)
	for name, change := range map[string]func(*disdel.UpdateID){
		"job": func(id *disdel.UpdateID) { id.Job = "job-2" }, "round": func(id *disdel.UpdateID) { id.Round++ },
		"level": func(id *disdel.UpdateID) { id.Level++ }, "member": func(id *disdel.UpdateID) { id.Member++ },
	} {
		id := u.ID
		change(&id)
		if _, err := read(data, kindUpdate, id, u.Weights); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if _, err := read(data, kindState, u.ID, u.Weights); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("another kind: %v", err)
	}
	for name, change := range map[string]func(w disdel.Weights) disdel.Weights{
		"shape": func(w disdel.Weights) disdel.Weights { w[0].Shape = []int{4, 3}; return w },
		"name":  func(w disdel.Weights) disdel.Weights { w[1].Name = "b.bias"; return w },
		"count": func(w disdel.Weights) disdel.Weights { return w[:1] },
	} {
		if _, err := read(data, kindUpdate, u.ID, change(someWeights(1))); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	le := binary.LittleEndian
	for name, change := range map[string]func(b []byte){
		"version": func(b []byte) { le.PutUint16(b[4:], 3) }, "wire": func(b []byte) { b[17] = 2 },
		"no wire": func(b []byte) { b[17] = byte(len(codecs)) },
		"no kind": func(b []byte) { b[16] = 3 }, "difference": func(b []byte) { b[18] = 2 },
		"reserved":   func(b []byte) { b[68] = 1 },
		"no columns": func(b []byte) { le.PutUint32(b[20:], 0) }, "small columns": func(b []byte) { le.PutUint32(b[20:], 1) },
		"no samples":      func(b []byte) { le.PutUint64(b[40:], 0) },
		"endless samples": func(b []byte) { le.PutUint64(b[40:], math.Float64bits(math.Inf(1))) },
		"tensors":         func(b []byte) { le.PutUint32(b[60:], 1<<31) },
		"fewer tensors":   func(b []byte) { le.PutUint32(b[60:], 1) },
		"meta":            func(b []byte) { le.PutUint32(b[64:], 1<<31) },
		"length of job":   func(b []byte) { le.PutUint16(b[6:], 60000) },
		"huge side":       func(b []byte) { le.PutUint32(b[fixedHead+5+2+8+1:], 1<<31) },
		"huge sides": func(b []byte) {
			le.PutUint32(b[fixedHead+5+2+8+1:], 1<<31)
			le.PutUint32(b[fixedHead+5+2+8+1+4:], 1<<31)
		},
		"rank":     func(b []byte) { b[fixedHead+5+2+8] = maxRank + 1 },
		"rank 8":   func(b []byte) { b[fixedHead+5+2+8+1+8+2+6] = maxRank },
		"one more": func(b []byte) { le.PutUint32(b[60:], 3) },
	} {
		if _, err := read(sealed(data, change), kindUpdate, u.ID, u.Weights); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The part of the meta that says which shards have the columns must be readable.
func TestADamagedDivisionIsRefused(t *testing.T) {
	u := update(1, 3)
	for text, corrupt := range map[string]bool{`{}`: false, `{`: true, `[1]`: true} {
		data := whole(t, kindReference, u, map[string]string{divisionKey: text}, disdel.WireFloat32)
		if _, _, err := decodeHead(data, kindReference, u.ID, u.Weights); errors.Is(err, disdel.Corrupt) != corrupt {
			t.Errorf("the division %s: %v", text, err)
		}
	}
}

// A writer that does not check is met by a reader that does.
func TestValuesThatAreNotFiniteAreRefused(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, wire := range []disdel.Wire{disdel.WireFloat32, disdel.WireBfloat16} {
			u := update(1, 3)
			u.Weights[1].Data[2] = float32(v)
			_, err := read(whole(t, kindUpdate, u, nil, wire), kindUpdate, u.ID, u.Weights)
			if !errors.Is(err, disdel.Diverged) ||
				err.Error() != "check update job-1/round 2/level 0/1: value 2 of a.bias is not finite" {
				t.Errorf("%g in %s: %v", v, wire, err)
			}
		}
	}
	for _, v := range []float32{math.SmallestNonzeroFloat32, math.MaxFloat32, float32(math.Copysign(0, -1))} {
		u := update(1, 3)
		u.Weights[1].Data[2] = v
		got, err := read(whole(t, kindUpdate, u, nil, disdel.WireFloat32), kindUpdate, u.ID, u.Weights)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(u.Weights, got); diff != "" {
			t.Errorf("%g (-want +got):\n%s", v, diff)
		}
	}
}

func acceptable(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, disdel.Corrupt) && !errors.Is(err, disdel.Diverged) {
		t.Fatalf("got %v", err)
	}
}

func FuzzValue(f *testing.F) {
	u := update(1, 3)
	for i, wire := range disdel.Wires() {
		f.Add(whole(f, kindUpdate, u, nil, wire), byte(0))
		f.Add(whole(f, kind(i), u, map[string]string{"epoch": "1"}, wire), byte(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, k byte) {
		_, err := read(data, kind(k%3), u.ID, u.Weights)
		acceptable(t, err)
	})
}

// FuzzHead gets past the checksum, so that what reads the table of tensors sees what the fuzzer thinks of.
func FuzzHead(f *testing.F) {
	u := update(1, 3)
	for _, wire := range disdel.Wires() {
		data := whole(f, kindState, u, map[string]string{"epoch": "1"}, wire)
		f.Add(data[:binary.LittleEndian.Uint32(data[56:])-4])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < fixedHead {
			return
		}
		h, err := parseHead(data)
		if err != nil {
			return
		}
		if n := h.layout.values(); n < 0 || n > maxValues || len(h.sums) != h.layout.columns() {
			t.Fatalf("%d values, %d sums", n, len(h.sums))
		}
	})
}

func FuzzColumn(f *testing.F) {
	u := update(1, 3)
	for i, wire := range disdel.Wires() {
		f.Add(encodeColumn(nil, wire, []int{12, 3}, append(u.Weights[0].Data, u.Weights[1].Data...)), byte(i))
	}
	f.Add([]byte{2, 1, 0, 0, 128, 63, 0, 0, 0, 128, 63, 0}, byte(3)) // a place that comes twice
	f.Fuzz(func(t *testing.T, data []byte, wire byte) {
		runs, c := []int{12, 3}, codecs[int(wire)%len(codecs)].open(Format{})
		dst := make([]float32, 15)
		err := c.decode(dst, runs, data)
		least, most := c.size(runs)
		outside := len(data) < least || len(data) > most
		if err == nil && outside || least == most && (err == nil) != (len(data) == most) {
			t.Fatalf("%d bytes: %v", len(data), err)
		}
		s, wanted := make(sums, 15), make(sums, 15)
		bad, failed := c.add(s, column{data, 3}, runs, &scratch{})
		switch finite := notFinite(dst) < 0; {
		case err == nil && failed != nil, err == nil && finite != (bad < 0):
			t.Fatalf("read %v, added %d, %v", dst, bad, failed)
		case err == nil && finite:
			wanted.addFloats(dst, 3)
			if !slices.Equal(s, wanted) {
				t.Fatalf("%v added, %v read", s, dst)
			}
		}
	})
}

func FuzzIndexEntry(f *testing.F) {
	f.Add(entry("disdel:{job-1}:update:1:0:2:7:00ff", 12))
	f.Add("disdel:{job-1}:progress")
	f.Add("a -1")
	f.Fuzz(func(t *testing.T, text string) {
		if key, parts := entryKeys(text); len(parts) > maxParts || key == "" && text != "" && text[0] != ' ' {
			t.Fatalf("%q and %d parts", key, len(parts))
		}
	})
}

func FuzzCapacity(f *testing.F) {
	f.Add("# Memory\r\nused_memory:10\r\nmaxmemory:20\r\nmaxmemory_policy:noeviction\r\n")
	f.Add("used_memory:x\r\n:\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		var c Capacity
		if c.read(text); c.Free() < 0 {
			t.Fatal(c)
		}
	})
}

// What is exactly as large as a bound is written and read; what is one larger is refused on both sides.
func TestABoundOfAHeadIsAllowed(t *testing.T) {
	valid := func(job, name int) error {
		w := disdel.Weights{{Name: strings.Repeat("n", name), Shape: []int{1}, Data: []float32{1}}}
		u := disdel.Update{ID: disdel.UpdateID{Job: disdel.JobID(strings.Repeat("j", job))}, Samples: 1, Weights: w}
		h := head{
			kind: kindUpdate, id: u.ID, samples: 1, wire: disdel.WireFloat32, codec: float32s{},
			layout: newLayout(w, columnValues),
		}
		if err := h.valid(); err != nil {
			return err
		}
		_, err := read(whole(t, kindUpdate, u, nil, disdel.WireFloat32), kindUpdate, u.ID, w)
		return err
	}
	for size, want := range map[[2]int]disdel.Kind{
		{maxJob, maxName}: disdel.UnknownKind, {maxJob + 1, 1}: disdel.Invalid, {1, maxName + 1}: disdel.Invalid,
	} {
		if err := valid(size[0], size[1]); disdel.KindOf(err) != want {
			t.Errorf("a job of %d bytes and a tensor of %d: %v", size[0], size[1], err)
		}
	}
	table := func(name int, sides ...int) []byte {
		out := binary.LittleEndian.AppendUint16(nil, uint16(name))
		out = append(append(out, make([]byte, name)...), byte(len(sides)))
		for _, side := range sides {
			out = binary.LittleEndian.AppendUint32(out, uint32(side))
		}
		return out
	}
	const half = maxValues / 2
	for what, c := range map[string]struct {
		table []byte
		count int
		ok    bool
	}{
		"the longest name":  {table(maxName, 1), 1, true},
		"a longer name":     {table(maxName+1, 1), 1, false},
		"most sides":        {table(1, 1, 1, 1, 1, 1, 1, 1, 1), 1, true},
		"one side more":     {table(1, 1, 1, 1, 1, 1, 1, 1, 1, 1), 1, false},
		"most values":       {table(1, half, 2), 1, true},
		"one value more":    {append(table(1, half, 2), table(1, 1)...), 2, false},
		"twice as many":     {table(1, half, 4), 1, false},
		"two halves":        {append(table(1, half), table(1, half)...), 2, true},
		"the least table":   {table(0), 1, true},
		"less than a table": {table(0), 2, false},
		"a cut side":        {table(1, 7)[:7], 1, false},
	} {
		r := reader{rest: c.table}
		if _, err := r.tensors(c.count); (err == nil) != c.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
}
