package faults

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
)

// Drawn is how many damaged files a test draws of each kind, and from which seed: DISDEL_TEST_DRAWN and
// DISDEL_TEST_SEED, or 40 and 1.
func Drawn() (files int, seed uint64) {
	files, seed = 40, 1
	if v, err := strconv.Atoi(os.Getenv("DISDEL_TEST_DRAWN")); err == nil {
		files = v
	}
	if v, err := strconv.ParseUint(os.Getenv("DISDEL_TEST_SEED"), 10, 64); err == nil {
		seed = v
	}
	return files, seed
}

// Watched calls read and returns its error. wrong says that it panicked, or allocated more than so many bytes.
func Watched(most uint64, read func() error) (wrong string, err error) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = read()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > most {
		wrong = fmt.Sprintf("%d bytes of memory were allocated: %v", took, err)
	}
	return wrong, err
}

// Mutate returns a damaged copy of a file, and what was done to it. The damage is drawn: flipped bits, other bytes, cut
// ends, doubled or swapped parts, huge numbers in the head or the foot, and other digits in a text.
func Mutate(rng *rand.Rand, file []byte) (damaged []byte, what string) {
	out := bytes.Clone(file)
	if len(out) < 16 {
		return append(out, 0), "a byte more"
	}
	from, to := piece(rng, len(out))
	switch rng.IntN(8) {
	case 0:
		for range 1 + rng.IntN(8) {
			out[rng.IntN(len(out))] ^= 1 << rng.IntN(8)
		}
		return out, "flipped bits"
	case 1:
		for range 1 + rng.IntN(8) {
			out[rng.IntN(len(out))] = byte(rng.Uint32())
		}
		return out, "other bytes"
	case 2:
		return out[:from], "a cut end"
	case 3:
		return bytes.Join([][]byte{file[:to], file[from:to], file[to:]}, nil), "a doubled part"
	case 4:
		return bytes.Join([][]byte{file[:from], file[to:]}, nil), "a missing part"
	case 5:
		half := from + (to-from)/2
		return bytes.Join([][]byte{file[:from], file[half:to], file[from:half], file[to:]}, nil), "swapped parts"
	case 6:
		at := rng.IntN(min(len(out)-8, 128))
		if rng.IntN(3) == 0 {
			at = len(out) - 8 - at
		}
		huge := []uint64{1 << 31, 1<<32 - 1, 1 << 40, 1<<63 - 1, 1<<64 - 1}[rng.IntN(5)]
		binary.LittleEndian.PutUint64(out[at:], huge)
		return out, "a huge number"
	default:
		return digits(rng, out), "more digits"
	}
}

// piece draws a part of a file of n bytes.
func piece(rng *rand.Rand, n int) (from, to int) {
	from = rng.IntN(n)
	return from, min(n, from+1+rng.IntN(1+n/4))
}

// digits writes a number that is far too large, or none, where a file has digits; without digits it does so anywhere.
func digits(rng *rand.Rand, file []byte) []byte {
	at := rng.IntN(len(file))
	if next := bytes.IndexAny(file[at:], "0123456789"); next >= 0 {
		at += next
	}
	put := []string{"9999999999", "-1", "1e300", "NaN", "1,234", "99999999999999999999", "\"", "\x00", "[", "{"}
	return bytes.Join([][]byte{file[:at], []byte(put[rng.IntN(len(put))]), file[at:]}, nil)
}
