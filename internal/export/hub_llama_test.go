package export_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/safetensors"
)

// Networks of Llama's kind with any rope_theta answer as a forward pass in float64 does, which turns by that base.
func TestLlamasOfAnyThetaAnswerAsInFloat64(t *testing.T) {
	const rows, tokens, places = 3, 40, 12
	x := make([]float32, rows*places)
	for i := range x {
		x[i] = float32(1 + (i*17+i/places)%(tokens-1))
	}
	var usual []float32
	for _, theta := range []float64{10000, 20, 500000} {
		dir := hubFolder(t, "llama")
		change(t, dir, func(config map[string]any) { config["rope_theta"] = theta })
		m, g := mustReadHub(t, dir, export.HubOptions{})
		l := llama{hubTensors(t, dir), theta}
		var want []float32
		for row := range slices.Chunk(x, places) {
			for _, score := range l.scores(row) {
				want = append(want, float32(score))
			}
		}
		want = lastProbabilities(want, rows, tokens)
		wantClose(t, fmt.Sprintf("theta %g", theta), answers(t, g, m.Weights, rows, x), want)
		if usual == nil {
			usual = want
		} else if d := furthest(usual, want); d < 10*exact {
			t.Errorf("theta %g: the answers are within %g of those of the usual base, too close to tell apart", theta, d)
		}
	}
}

func furthest(a, b []float32) (d float64) {
	for i := range a {
		d = max(d, math.Abs(float64(a[i]-b[i])))
	}
	return d
}

func hubTensors(t *testing.T, dir string) map[string][]float32 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]float32{}
	for _, tensor := range f.Tensors {
		if all[tensor.Name], err = safetensors.Float32s(tensor); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// llama computes the network of testdata/hub/llama: two heads of four channels, which share one head of keys.
type llama struct {
	tensors map[string][]float32
	theta   float64
}

// scores are those of the next token after the last place of one row, by all tokens before it.
func (l llama) scores(row []float32) []float64 {
	xs := make([][]float64, len(row))
	for i, token := range row {
		for _, v := range l.tensors["model.embed_tokens.weight"][8*int(token):][:8] {
			xs[i] = append(xs[i], float64(v))
		}
	}
	for _, layer := range []string{"model.layers.0.", "model.layers.1."} {
		l.attend(layer+"self_attn.", l.norm(layer+"input_layernorm", xs), xs)
		for i, v := range l.norm(layer+"post_attention_layernorm", xs) {
			gate, up := l.product(layer+"mlp.gate_proj", v), l.product(layer+"mlp.up_proj", v)
			for k, z := range gate {
				up[k] *= z / (1 + math.Exp(-z))
			}
			addTo(xs[i], l.product(layer+"mlp.down_proj", up))
		}
	}
	return l.product("lm_head", l.norm("model.norm", xs[len(xs)-1:])[0])
}

// attend adds causal attention of the normed values to xs.
func (l llama) attend(name string, normed, xs [][]float64) {
	var keys, values [][]float64
	for i, v := range normed {
		keys = append(keys, l.turn(l.product(name+"k_proj", v), i))
		values = append(values, l.product(name+"v_proj", v))
		query, out := l.product(name+"q_proj", v), []float64(nil)
		for head := range slices.Chunk(query, 4) {
			q, sum, mean := l.turn(head, i), 0.0, make([]float64, 4)
			for j, key := range keys {
				weight := math.Exp(dot(q, key) / 2) // 2 is the root of the four channels
				sum += weight
				for c := range mean {
					mean[c] += weight * values[j][c]
				}
			}
			for _, v := range mean {
				out = append(out, v/sum)
			}
		}
		addTo(xs[i], l.product(name+"o_proj", out))
	}
}

// turn rotates pairs of channels, half a head apart, by the place times a power of theta.
func (l llama) turn(v []float64, place int) []float64 {
	out, half := make([]float64, len(v)), len(v)/2
	for i := range half {
		sin, cos := math.Sincos(float64(place) * math.Pow(l.theta, -float64(i)/float64(half)))
		out[i], out[i+half] = v[i]*cos-v[i+half]*sin, v[i+half]*cos+v[i]*sin
	}
	return out
}

func (l llama) norm(name string, xs [][]float64) (out [][]float64) {
	for _, x := range xs {
		y, root := make([]float64, len(x)), math.Sqrt(dot(x, x)/float64(len(x))+1e-6)
		for i, scale := range l.tensors[name+".weight"] {
			y[i] = x[i] / root * float64(scale)
		}
		out = append(out, y)
	}
	return out
}

func (l llama) product(name string, x []float64) (out []float64) {
	for row := range slices.Chunk(l.tensors[name+".weight"], len(x)) {
		sum := 0.0
		for i, w := range row {
			sum += float64(w) * x[i]
		}
		out = append(out, sum)
	}
	return out
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func addTo(x, y []float64) {
	for i := range x {
		x[i] += y[i]
	}
}
