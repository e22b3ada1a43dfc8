package dense

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"testing"
)

// packings are the ways to pack that compress/flate has: stored, one code for all blocks, codes of their own.
var packings = []int{
	flate.NoCompression, flate.BestSpeed, flate.DefaultCompression, flate.BestCompression, flate.HuffmanOnly,
}

func packed(t testing.TB, text []byte, level int) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, level)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// texts are what comes out of it: noise, few letters, runs, copies from near and far, letters of which most are rare,
// so that codes are long.
func texts(rng *rand.Rand) [][]byte {
	out := [][]byte{{}, {7}, bytes.Repeat([]byte{9}, 300), bytes.Repeat([]byte("abc"), 5000)}
	for _, letters := range []int{2, 24, 256} {
		text := make([]byte, 1+rng.IntN(90_000))
		for i := range text {
			text[i] = byte(rng.IntN(letters))
		}
		out = append(out, text, append(bytes.Clone(text[:len(text)/3]), text...))
	}
	rare := make([]byte, 200_000)
	for i := range rare {
		for rare[i] < 40 && rng.IntN(2) == 0 {
			rare[i]++
		}
	}
	return append(out, rare)
}

// What was packed comes back, in memory that held another text, and exactly as much as was asked for.
func TestInflate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var z inflater
	for range 5 {
		for i, text := range texts(rng) {
			for _, level := range packings {
				in := append(packed(t, text, level), "and more"...)
				got := bytes.Repeat([]byte{1}, len(text)+spare)[:len(text)]
				rest, ok := z.inflate(in, got)
				if !ok || string(rest) != "and more" || !bytes.Equal(got, text) {
					t.Errorf("text %d of %d bytes by %d: %t, %q", i, len(text), level, ok, rest)
				}
				for _, other := range []int{len(text) - 1, len(text) + 1} {
					if other < 0 {
						continue
					}
					if _, ok := z.inflate(in, make([]byte, other, other+spare)); ok {
						t.Errorf("text %d of %d bytes by %d: %d of them", i, len(text), level, other)
					}
				}
			}
		}
	}
}

// A damaged stream is refused, or is what compress/flate makes of it; so is one that ends early.
func TestInflateDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var z inflater
	for _, text := range texts(rng) {
		text = text[:min(len(text), 600)]
		for _, level := range packings {
			in := packed(t, text, level)
			for range 400 {
				bad := bytes.Clone(in)
				for range 1 + rng.IntN(3) {
					bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
				}
				same(t, &z, bad, len(text))
			}
			for n := range in {
				if _, ok := z.inflate(in[:n], make([]byte, len(text), len(text)+spare)); ok {
					t.Fatalf("%d of %d bytes are enough", n, len(in))
				}
			}
		}
	}
}

// same holds what a stream comes to against compress/flate, unless it is refused.
func same(t *testing.T, z *inflater, in []byte, size int) {
	t.Helper()
	got := make([]byte, size, size+spare)
	rest, ok := z.inflate(in, got)
	if !ok {
		return
	}
	from := bytes.NewReader(in)
	want, err := io.ReadAll(flate.NewReader(from))
	if err != nil || !bytes.Equal(got, want) || from.Len() != len(rest) {
		t.Fatalf("%x is read, and it is %v", in, err)
	}
}

// FuzzInflate looks for a stream that is read in another way than compress/flate reads it, or that breaks the reader.
func FuzzInflate(f *testing.F) {
	f.Add(packed(f, []byte("some text, some more text"), flate.BestCompression), 25)
	f.Add([]byte{3, 0}, 0)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		if size >= 0 && size <= 1<<20 {
			same(t, new(inflater), in, size)
		}
	})
}

// BenchmarkInflate unpacks slopes with noise, as pictures have them.
func BenchmarkInflate(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 6))
	text := make([]byte, 1<<18)
	for i := range text {
		text[i] = byte(rng.IntN(24)) - byte(rng.IntN(24))
	}
	in, out := packed(b, text, flate.DefaultCompression), make([]byte, len(text), len(text)+spare)
	b.Run("inflater", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		var z inflater
		for b.Loop() {
			z.inflate(in, out)
		}
	})
	b.Run("flate", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		r := flate.NewReader(bytes.NewReader(in))
		for b.Loop() {
			r.(flate.Resetter).Reset(bytes.NewReader(in), nil)
			io.ReadFull(r, out)
		}
	})
}
