package native

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

func newEngine(t testing.TB, g *model.Graph, cfg engine.Spec) *Engine {
	t.Helper()
	e, err := New(enginetest.On(g, cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// initialized is an engine with weights from a seed, where batch norms are not at identity.
func initialized(t testing.TB, g *model.Graph, cfg engine.Spec) *Engine {
	t.Helper()
	e := newEngine(t, g, cfg)
	if err := engine.SetWeights(e, namedWeights(g)); err != nil {
		t.Fatal(err)
	}
	return e
}

func batch(g *model.Graph, rows int, seed uint64) ([]float32, []int32) {
	rng := rand.New(rand.NewPCG(seed, 1))
	x, y := make([]float32, rows*g.Input().Len()), make([]int32, rows)
	for i := range x {
		x[i] = rng.Float32()*2 - 1
	}
	if n := g.Vocabulary(); n > 0 {
		for i := range x {
			x[i] = float32(rng.IntN(n))
		}
	}
	for i := range y {
		y[i] = rng.Int32N(int32(g.Output().Len()))
	}
	return x, y
}

// networks have every layer in every role: in place and not, fused and not, before a fork and after, at odd sizes.
func networks() map[string]func(b *model.Builder) {
	window := func(kh, kw, sh, sw, dh, dw, top, bottom, left, right int) model.Window {
		return model.Window{
			Kernel: model.Sides{H: kh, W: kw}, Stride: model.Sides{H: sh, W: sw},
			Dilation: model.Sides{H: dh, W: dw}, Pad: model.Padding{Top: top, Bottom: bottom, Left: left, Right: right},
		}
	}
	end := func(b *model.Builder, x int) {
		if len(b.Out(x)) == 3 {
			x = b.Flatten("flatten", x)
		}
		b.Same("softmax", b.Dense("fc", x, 3), model.OpSoftmax)
	}
	return map[string]func(b *model.Builder){
		"dense": func(b *model.Builder) { end(b, b.Same("relu", b.Dense("a", b.Flatten("f", 0), 19), model.OpReLU)) },
		"conv":  func(b *model.Builder) { end(b, b.Conv("a", 0, 5, model.Square(3, 1, 1), 1, true)) },
		"asymmetric": func(b *model.Builder) {
			end(b, b.Same("t", b.Conv("a", 0, 5, window(3, 2, 2, 1, 1, 1, 0, 1, 1, 0), 1, true), model.OpTanh))
		},
		"dilated": func(b *model.Builder) {
			end(b, b.Conv("b", b.Conv("a", 0, 5, window(3, 3, 1, 2, 2, 1, 2, 1, 1, 1), 1, true), 4,
				window(2, 2, 1, 1, 1, 2, 0, 0, 0, 0), 1, true))
		},
		"grouped": func(b *model.Builder) {
			end(b, b.Conv("b", b.Conv("a", 0, 6, model.Square(3, 1, 1), 1, true), 4, model.Square(3, 2, 1), 2, true))
		},
		"depthwise": func(b *model.Builder) {
			end(b, b.Conv("b", b.Conv("a", 0, 6, model.Square(3, 1, 1), 1, true), 6, window(3, 3, 2, 1, 1, 1, 1, 1, 1, 0), 6,
				true))
		},
		"idle taps": func(b *model.Builder) {
			x := b.AdaptivePool("to2", b.Conv("a", 0, 5, model.Square(3, 1, 1), 1, true), 2)
			x = b.Same("r", b.Conv("b", x, 4, window(5, 3, 2, 1, 1, 2, 2, 2, 2, 2), 1, true), model.OpReLU)
			x = b.Conv("c", x, 6, model.Square(3, 1, 1), 2, true)
			end(b, b.Conv("d", x, 5, window(1, 3, 1, 1, 1, 2, 0, 0, 2, 2), 1, true))
		},
		"conv relu pool": func(b *model.Builder) {
			end(b, b.Pool("p", b.Same("r", b.Conv("a", 0, 5, model.Square(3, 1, 0), 1, true), model.OpReLU), model.OpMaxPool,
				model.Square(2, 2, 0)))
		},
		"pool relu": func(b *model.Builder) {
			end(b, b.Same("r", b.Pool("p", b.Conv("a", 0, 5, model.Square(3, 1, 0), 1, true), model.OpMaxPool,
				model.Square(3, 2, 1)), model.OpReLU))
		},
		"average": func(b *model.Builder) {
			end(b, b.Pool("p", b.Conv("a", 0, 5, model.Square(3, 1, 0), 1, true), model.OpAvgPool, model.Square(3, 2, 1)))
		},
		"average all": func(b *model.Builder) {
			w := model.Square(3, 1, 1)
			w.CountPad = true
			end(b, b.Pool("p", b.Conv("a", 0, 5, model.Square(3, 1, 0), 1, true), model.OpAvgPool, w))
		},
		"adaptive": func(b *model.Builder) {
			end(b, b.AdaptivePool("p", b.Conv("a", 0, 5, model.Square(2, 1, 0), 1, true), 3))
		},
		"global": func(b *model.Builder) {
			end(b, b.GlobalPool("p", b.Same("s", b.Conv("a", 0, 5, model.Square(2, 1, 0), 1, true), model.OpSigmoid)))
		},
		"norm": func(b *model.Builder) { end(b, b.BatchNorm("n", b.Conv("a", 0, 9, model.Square(3, 1, 1), 1, false))) },
		"norm relu": func(b *model.Builder) {
			end(b, b.Same("r", b.BatchNorm("n", b.Conv("a", 0, 9, model.Square(3, 1, 1), 1, false)), model.OpReLU))
		},
		"norm plain": func(b *model.Builder) {
			end(b, b.Norm("n", b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, false),
				model.Norm{Eps: 1e-3, NoScale: true, NoCenter: true}))
		},
		"norm dense": func(b *model.Builder) {
			end(b, b.Same("r", b.BatchNorm("n", b.Dense("a", b.Flatten("f", 0), 7)), model.OpReLU6))
		},
		"norm input": func(b *model.Builder) { end(b, b.BatchNorm("n", 0)) },
		"joined vectors": func(b *model.Builder) {
			x := b.Flatten("f", b.Conv("a", 0, 3, model.Square(3, 2, 1), 1, true))
			end(b, b.Concat("c", b.Dense("d", x, 7), x, b.Same("r", b.Dense("e", x, 9), model.OpReLU)))
		},
		"residual": func(b *model.Builder) {
			x := b.Same("r0", b.Conv("a", 0, 6, model.Square(3, 1, 1), 1, true), model.OpReLU)
			y := b.BatchNorm("n", b.Conv("b", x, 6, model.Square(3, 1, 1), 1, false))
			end(b, b.Same("r", b.Add("add", y, x), model.OpReLU))
		},
		"projection": func(b *model.Builder) {
			x := b.Same("r0", b.BatchNorm("n0", b.Conv("a", 0, 6, model.Square(3, 1, 1), 1, false)), model.OpReLU)
			y := b.BatchNorm("n1", b.Conv("b", x, 8, model.Square(3, 2, 1), 1, false))
			z := b.BatchNorm("n2", b.Conv("c", x, 8, model.Square(1, 2, 0), 1, false))
			end(b, b.Same("r", b.Add("add", z, y), model.OpReLU))
		},
		"squeeze": func(b *model.Builder) { // a gate for each channel, and products of one shape
			x := b.Same("r0", b.Conv("a", 0, 6, model.Square(3, 1, 1), 1, true), model.OpReLU)
			y := b.Same("s", b.Conv("up", b.Same("r1", b.Conv("down", b.GlobalPool("p", x), 3, model.Square(1, 1, 0), 1, true),
				model.OpReLU), 6, model.Square(1, 1, 0), 1, true), model.OpSigmoid)
			x = b.Multiply("gate", y, x)
			z := b.Same("t", b.Multiply("square", x, x), model.OpTanh)
			end(b, b.Multiply("both", b.Flatten("f", b.Multiply("last", z, b.BatchNorm("n", x))), b.Flatten("g", x)))
		},
		"squeeze pool": func(b *model.Builder) { // the product is in place in inference, and its inputs are needed backward
			x := b.Pool("m", b.Same("r", b.Conv("a", 0, 20, model.Square(3, 1, 1), 1, true), model.OpReLU), model.OpMaxPool,
				model.Square(2, 2, 0))
			y := b.Conv("c", x, 20, model.Square(3, 1, 1), 1, true)
			end(b, b.Same("h", b.Multiply("gate", y, b.Same("s", b.GlobalPool("p", x), model.OpHardSigmoid)), model.OpReLU))
		},
		"shuffled": func(b *model.Builder) {
			x := b.Conv("a", 0, 12, model.Square(3, 1, 1), 1, true)
			y := b.Same("r", b.Conv("b", b.Channels("half", x, 6, 0, 1), 6, model.Square(1, 1, 0), 1, true), model.OpReLU)
			x = b.Channels("shuffled", b.Concat("c", b.Channels("other", x, 0, 6, 1), y), 0, 0, 2)
			end(b, b.Pool("p", b.Channels("some", x, 3, 5, 3), model.OpMaxPool, model.Square(2, 2, 0)))
		},
		"patches norm": func(b *model.Builder) { // a layer norm of images, as ConvNeXt has it
			x := b.LayerNorm("n", b.Conv("a", 0, 6, model.Square(2, 2, 0), 1, true), model.OpLayerNorm, 1e-6)
			x = b.Same("g", b.Conv("b", x, 9, model.Square(1, 1, 0), 1, true), model.OpGELU)
			end(b, b.LayerNorm("m", b.GlobalPool("p", x), model.OpLayerNorm, 0))
		},
		"groups norm": func(b *model.Builder) {
			x := b.GroupNorm("n", b.Conv("a", 0, 6, model.Square(3, 1, 1), 1, true), 2, 1e-3)
			x = b.Conv("b", b.Same("r", x, model.OpReLU), 5, model.Square(3, 2, 1), 1, true)
			x = b.GroupNorm("m", x, 5, 0)
			end(b, b.Add("add", x, b.GroupNorm("o", x, 1, 0)))
		},
		"option a": func(b *model.Builder) {
			x := b.Same("r0", b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, true), model.OpReLU)
			y := b.Conv("b", x, 8, model.Square(3, 2, 1), 1, true)
			end(b, b.Add("add", b.Downsample("d", x, 8, 2), y))
		},
		"fork": func(b *model.Builder) {
			x := b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, true)
			p := b.Pool("p", x, model.OpMaxPool, model.Square(3, 1, 1))
			q := b.Pool("q", x, model.OpAvgPool, model.Square(3, 1, 1))
			r := b.Same("r", x, model.OpReLU)
			d := b.Conv("d", x, 4, model.Square(3, 1, 1), 4, false)
			end(b, b.Concat("cat", p, b.Same("s", q, model.OpTanh), r, d, x, b.Conv("e", r, 3, model.Square(1, 1, 0), 1, false)))
		},
		"sums": func(b *model.Builder) {
			x := b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, true)
			y := b.Add("twice", x, x)
			z := b.Add("three", b.Conv("b", y, 4, model.Square(1, 1, 0), 1, true),
				b.Conv("c", y, 4, model.Square(1, 1, 0), 1, true), x)
			end(b, b.Same("r", z, model.OpReLU))
		},
		"vectors": func(b *model.Builder) { // a flatten that has to reorder, and one that has not
			x := b.Conv("a", 0, 3, model.Square(3, 2, 1), 1, true)
			f := b.Flatten("f", x)
			g := b.Same("r", b.Flatten("g", x), model.OpReLU)
			end(b, b.Add("add", b.Same("s", f, model.OpSigmoid), b.Dense("d", g, b.Out(f)[0])))
		},
		"dead end": func(b *model.Builder) {
			x := b.Conv("a", 0, 3, model.Square(3, 2, 1), 1, true)
			b.Conv("unused", x, 2, model.Square(1, 1, 0), 1, true)
			end(b, x)
		},
		"stacked": func(b *model.Builder) { // activations that must not overwrite each other
			x := b.Same("r", b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, true), model.OpReLU)
			y := b.Same("s0", x, model.OpSigmoid)
			z := b.Same("s", b.Same("r6", b.Conv("b", y, 4, model.Square(1, 1, 0), 1, true), model.OpReLU6), model.OpSigmoid)
			end(b, b.Same("t2", b.Pool("p", b.Conv("c", z, 4, model.Square(1, 1, 0), 1, true), model.OpMaxPool,
				model.Square(2, 2, 0)), model.OpTanh))
		},
		"hard swish": func(b *model.Builder) { // after what it must not overwrite, and before what may overwrite it
			x := b.Same("h0", b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, true), model.OpHardSwish)
			y := b.Same("h1", b.BatchNorm("n", b.Conv("b", x, 4, model.Square(3, 1, 1), 4, false)), model.OpHardSwish)
			z := b.Same("h2", b.Same("r", b.Add("sum", x, y), model.OpReLU), model.OpHardSwish)
			end(b, b.Same("s", b.Pool("p", z, model.OpMaxPool, model.Square(2, 2, 0)), model.OpHardSwish))
		},
		"leaky": func(b *model.Builder) { // every one behind a layer, before a fork and in place
			x := b.LeakyReLU("l0", b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, true), 0.3)
			y := b.Same("e", b.BatchNorm("n", b.Conv("b", x, 4, model.Square(3, 1, 1), 4, false)), model.OpELU)
			z := b.Same("s", b.Add("sum", x, y), model.OpSoftplus)
			z = b.Same("g", b.Conv("c", z, 5, model.Square(1, 1, 0), 1, true), model.OpHardSigmoid)
			end(b, b.Same("l1", b.Flatten("f", z), model.OpLeakyReLU))
		},
		"global max": func(b *model.Builder) {
			x := b.Same("e", b.Conv("a", 0, 5, model.Square(3, 1, 1), 1, true), model.OpELU)
			end(b, b.Flatten("f", b.Concat("cat", b.GlobalMaxPool("m", x), b.GlobalPool("p", x))))
		},
		"hard swish of a vector": func(b *model.Builder) { // whose pixels come before channels
			f := b.Flatten("f", b.Conv("a", 0, 3, model.Square(3, 2, 1), 1, true))
			x := b.Same("h", f, model.OpHardSwish)
			end(b, b.Add("add", b.Dense("d", x, 5), b.Dense("e", f, 5)))
		},
		"tokens mean": func(b *model.Builder) {
			x := b.Positions("p", b.Embedding("e", 0, 6, 5, true), false)
			end(b, b.TakePosition("take", b.Same("r", b.Dense("d", x, 7), model.OpReLU), model.TakeMean))
		},
		"tokens last": func(b *model.Builder) {
			x := b.Positions("p", b.Embedding("e", 0, 6, 5, true), true)
			x = b.Dense("d", b.LayerNorm("n", x, model.OpLayerNorm, 0), 7)
			end(b, b.TakePosition("take", b.Same("g", x, model.OpGELU), model.TakeLast))
		},
		"tokens first": func(b *model.Builder) {
			x := b.Embedding("e", 0, 6, 5, false)
			y := b.Dense("d", b.Same("s", b.LayerNorm("n", x, model.OpRMSNorm, 1e-6), model.OpSiLU), 5)
			x = b.LayerNorm("m", b.Add("add", y, x), model.OpLayerNorm, 0)
			end(b, b.TakePosition("take", b.Same("g", b.Dense("c", x, 4), model.OpGELUTanh), model.TakeFirst))
		},
		"tokens attention": func(b *model.Builder) {
			x := b.Positions("p", b.Embedding("e", 0, 5, 8, true), false)
			x = b.MultiHeadAttention("a", x, model.Attention{Heads: 2})
			end(b, b.TakePosition("take", x, model.TakeMean))
		},
		"tokens causal": func(b *model.Builder) {
			x := b.Embedding("e", 0, 5, 12, false)
			y := b.MultiHeadAttention("a", x, model.Attention{Heads: 6, KVHeads: 2, Causal: true, Theta: 30})
			end(b, b.TakePosition("take", b.Add("add", x, y), model.TakeLast))
		},
		"tokens blocks": func(b *model.Builder) { // more positions than a block has
			x := b.Embedding("e", 0, 5, 14, true)
			y := b.MultiHeadAttention("a", x, model.Attention{Heads: 2, KVHeads: 1})
			z := b.MultiHeadAttention("c", b.Add("add", x, y), model.Attention{Heads: 1, Causal: true})
			end(b, b.TakePosition("take", z, model.TakeMean))
		},
		"tokens lstm": func(b *model.Builder) {
			x := b.Recurrent("l", b.Embedding("e", 0, 5, 6, false), model.OpLSTM, 5)
			end(b, b.TakePosition("take", b.Recurrent("m", x, model.OpLSTM, 17), model.TakeLast))
		},
		"tokens both ways": func(b *model.Builder) {
			x := b.Bidirectional("l", b.Embedding("e", 0, 5, 6, false), model.OpLSTM, 5)
			end(b, b.TakePosition("take", b.Bidirectional("g", x, model.OpGRU, 9), model.TakeMean))
		},
		"tokens both ways unpadded": func(b *model.Builder) {
			x := b.Bidirectional("l", b.Embedding("e", 0, 5, 6, false), model.OpGRU, 7)
			end(b, b.TakePosition("take", x, model.TakeFirst))
		},
		"tokens gru": func(b *model.Builder) {
			x := b.Embedding("e", 0, 5, 6, false)
			x = b.Add("add", x, b.Recurrent("g", x, model.OpGRU, 6))
			end(b, b.TakePosition("take", b.Recurrent("h", x, model.OpGRU, 9), model.TakeMean))
		},
		"patches": func(b *model.Builder) {
			x := b.ClassToken("c", b.Sequence("s", b.Conv("a", 0, 6, model.Square(3, 2, 1), 1, true)))
			x = b.Transformer("t", b.Positions("p", x, false), model.Transformer{
				Attention: model.Attention{Heads: 2}, Hidden: 7, PostNorm: true,
			})
			end(b, b.TakePosition("take", x, model.TakeFirst))
		},
		"blocks": func(b *model.Builder) {
			x := b.SpaceToDepth("d", b.Conv("a", 0, 3, model.Square(2, 1, 0), 1, true), model.Sides{H: 3, W: 1})
			end(b, b.Same("r", b.Conv("c", x, 5, model.Square(1, 1, 0), 1, true), model.OpTanh))
		},
		"patches windows": func(b *model.Builder) { // padded, shifted, some outputs left out
			x := b.Conv("a", 0, 6, model.Square(2, 1, 0), 1, true)
			x = b.Add("s", x, b.WindowAttention("w", x, model.WindowAttention{
				Heads: 2, Window: model.Sides{H: 4, W: 3}, Shift: model.Sides{H: 2, W: 1},
			}))
			x = b.SpaceToDepth("d", x, model.Sides{H: 3, W: 1})
			end(b, b.Add("t", x, b.Same("g", b.WindowAttention("v", x, model.WindowAttention{
				Heads: 3, Window: model.Sides{H: 2, W: 3}, Shift: model.Sides{H: 1}, Cosine: true, NoBias: true,
			}), model.OpTanh)))
		},
		"patches grid": func(b *model.Builder) {
			x := b.Conv("a", 0, 5, model.Square(2, 1, 0), 1, true)
			x = b.WindowAttention("w", b.LayerNorm("n", x, model.OpLayerNorm, 0), model.WindowAttention{
				Heads: 1, Window: model.Sides{H: 3, W: 2}, Grid: true,
			})
			end(b, b.GlobalPool("p", x))
		},
		"patches twice": func(b *model.Builder) { // a sequence whose image is read again
			x := b.Same("r", b.Conv("a", 0, 4, model.Square(3, 2, 1), 1, true), model.OpReLU)
			y := b.TakePosition("take", b.LayerNorm("n", b.Sequence("s", x), model.OpRMSNorm, 0), model.TakeMean)
			end(b, b.Add("add", y, b.Flatten("f", b.GlobalPool("p", x))))
		},
		"tokens flat": func(b *model.Builder) {
			x := b.Positions("p", b.Same("t", b.Embedding("e", 0, 9, 3, false), model.OpTanh), false)
			end(b, b.Flatten("flatten", b.BatchNorm("n", b.Dense("d", x, 4))))
		},
		"pad": func(b *model.Builder) {
			x := b.Pad("p", b.Conv("a", 0, 5, model.Square(3, 1, 1), 1, true), model.Padding{Top: 2, Left: 1, Right: 3})
			end(b, b.Same("r", b.Conv("b", b.Add("s", x, x), 4, model.Square(3, 2, 0), 1, true), model.OpReLU))
		},
		"pad relu": func(b *model.Builder) {
			x := b.Pad("p", b.Same("r", b.Conv("a", 0, 5, model.Square(3, 1, 1), 1, true), model.OpReLU),
				model.Padding{Bottom: 1})
			end(b, b.Pool("m", b.Same("t", x, model.OpReLU6), model.OpMaxPool, model.Square(2, 2, 0)))
		},
		"upsample": func(b *model.Builder) {
			x := b.Conv("a", 0, 5, model.Square(3, 2, 1), 1, true)
			y := b.Upsample("u", x, model.Sides{H: 2, W: 3})
			y = b.Conv("b", y, 4, model.Square(3, 2, 1), 1, true)
			end(b, b.Concat("c", b.AdaptivePool("to", y, 3), b.AdaptivePool("too", x, 3)))
		},
		"transposed": func(b *model.Builder) {
			x := b.Conv("a", 0, 4, model.Square(3, 2, 1), 1, true)
			y := b.ConvTranspose("t", x, 6, window(3, 2, 2, 3, 1, 1, 1, 0, 0, 1), 2, true)
			end(b, b.Add("s", b.AdaptivePool("p", y, 3), b.AdaptivePool("q", b.ConvTranspose("u", x, 6,
				window(2, 3, 1, 2, 2, 1, 1, 1, 0, 0), 1, false), 3)))
		},
		"prelu": func(b *model.Builder) {
			x := b.PReLU("p", b.Conv("a", 0, 5, model.Square(3, 1, 1), 1, true), 5)
			x = b.Add("s", x, b.PReLU("q", x, 1))
			end(b, b.PReLU("v", b.Dense("d", b.Flatten("f", b.BatchNorm("n", x)), 7), 7))
		},
		"pool prelu": func(b *model.Builder) {
			x := b.Pool("m", b.Same("r", b.Conv("a", 0, 20, model.Square(3, 1, 1), 1, true), model.OpReLU), model.OpMaxPool,
				model.Square(2, 2, 0))
			end(b, b.Conv("c", b.PReLU("p", x, 20), 4, model.Square(3, 1, 1), 1, true))
		},
		"tokens conv1d": func(b *model.Builder) {
			w := window(3, 1, 2, 1, 1, 1, 2, 0, 0, 0)
			x := b.Conv1D("c", b.Embedding("e", 0, 9, 3, false), 5, w, 1, true)
			w = window(2, 1, 1, 1, 2, 1, 1, 1, 0, 0)
			end(b, b.TakePosition("mean", b.Conv1D("d", b.Same("r", x, model.OpReLU), 10, w, 5, true), model.TakeMean))
		},
		"tokens prelu": func(b *model.Builder) {
			end(b, b.Flatten("f", b.PReLU("p", b.Dense("d", b.Embedding("e", 0, 9, 3, false), 4), 4)))
		},
		"logits": func(b *model.Builder) {
			b.Dense("fc", b.Flatten("f", b.Conv("a", 0, 3, model.Square(3, 1, 0), 1, true)), 3)
		},
		"sigmoid": func(b *model.Builder) { b.Same("s", b.Dense("fc", b.Flatten("f", 0), 3), model.OpSigmoid) },
	}
}

func build(t testing.TB, name string, f func(b *model.Builder)) *model.Graph {
	t.Helper()
	input := model.Shape{2, 7, 6}
	if strings.HasPrefix(name, "tokens") {
		input = model.Shape{7}
	}
	if name == "tokens blocks" {
		input = model.Shape{53}
	}
	b := model.NewBuilder(name, input)
	f(b)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// someNetworks are all networks, and every eighth of them with -short: for promises about state, which all treat alike.
func someNetworks() map[string]func(b *model.Builder) {
	all := networks()
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if testing.Short() && i%8 > 0 {
			delete(all, name)
		}
	}
	return all
}

// imageNetworks are those without sequences: bfloat16 is for these only.
func imageNetworks() map[string]func(b *model.Builder) {
	all := networks()
	maps.DeleteFunc(all, func(name string, _ func(b *model.Builder)) bool {
		return strings.HasPrefix(name, "tokens") || strings.HasPrefix(name, "patches")
	})
	return all
}
