package exchange_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/exchange"
)

// What goes is what MLLess' formula says, weight by weight, however many there are: all that is owed and more than
// v / sqrt(t) of its weight.
func TestWhatIsSignificantGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(1, 9000).Draw(t, "weights")
		slack := rapid.IntRange(0, 1).Draw(t, "slack")
		threshold := rapid.SampledFrom([]float64{0, 1e-300, 1e-40, 0.05, 0.7, 0.3, 5, 1e30, 1e300}).Draw(t, "v")
		start := someWeights(n, rng.Uint64())
		r, err := exchange.New(exchange.Config{Members: 2, Threshold: threshold, Slack: slack}, start)
		if err != nil {
			t.Fatal(err)
		}
		x, sent := make([]float32, n), make([]float32, n)
		infinity := float32(math.MaxFloat32)
		if rng.IntN(4) == 0 { // which is never sent: so seldom that steps are compared, too
			infinity = float32(math.Inf(1))
		}
		for step := 1; step <= 1+slack; step++ {
			r.Weights(x)
			bound := threshold / math.Sqrt(float64(step))
			for i := range x {
				switch rng.IntN(20) {
				case 0, 1, 2:
					x[i] += float32(rng.NormFloat64())
				case 3:
					x[i] = float32(float64(start[i]) / (1 - bound)) // as much as the threshold, or nearly
				case 4:
					x[i] = []float32{0, 1e-40, -1e-45, math.MaxFloat32, infinity}[rng.IntN(5)]
				}
			}
			var index []int32
			var value []float32
			for i, v := range x {
				owed := v - start[i]
				owed -= sent[i]
				if owed != 0 && !(math.Abs(float64(owed)) <= bound*math.Abs(float64(v))) {
					index, value = append(index, int32(i)), append(value, owed)
					sent[i] += owed
				}
			}
			d, err := r.Send(x)
			if slices.ContainsFunc(value, func(v float32) bool { return v-v != 0 }) {
				if !errors.Is(err, disdel.Diverged) {
					t.Fatalf("step %d changes a weight by what is no number: %v", step, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(d.Index, index) || !slices.EqualFunc(d.Value, value, sameValue) {
				t.Fatalf("step %d sends %d entries, want %d", step, d.Len(), len(index))
			}
		}
	})
}

func sameValue(a, b float32) bool { return a == b || a != a && b != b }

// The bytes of deltas are what they have always been: workers of two releases read each other's.
func TestTheWireHasItsBytes(t *testing.T) {
	rng, sum := rand.New(rand.NewPCG(5, 6)), sha256.New()
	for range 50 {
		var d exchange.Delta
		most := []int{1, 1, 3, 21, 100}[rng.IntN(5)] // alone, or in rows
		for i := rng.IntN(200); i < 20_000; i += 1 + rng.IntN(300) {
			for range 1 + rng.IntN(most) {
				v := float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(9)-4)))
				if rng.IntN(50) == 0 {
					v = []float32{math.MaxFloat32, -1e-40, 0x1p-126, 127}[rng.IntN(4)]
				}
				d.Index, d.Value = append(d.Index, int32(i)), append(d.Value, v)
				i++
			}
		}
		for _, to := range values {
			copied := exchange.Delta{Index: slices.Clone(d.Index), Value: slices.Clone(d.Value)}
			data := copied.Rounded(to).Append([]byte("head"))
			sum.Write(data)
			read, err := exchange.Delta{}.Read(data[4:], 21_000)
			if err != nil || !slices.Equal(read.Append([]byte("head")), data) {
				t.Fatalf("%d bytes of %s are read as others: %v", len(data), to, err)
			}
		}
	}
	const want = "462bcf8a2b5914d74c7c027b9b8f36ab9389f0f7f7793864333e9a7988ae1532"
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("bytes with the digest %s", got)
	}
}
