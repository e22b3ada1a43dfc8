package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/text"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// continued is the workload of tokens_per_s: a step is a token, and as many as a row has make a text.
var continued = workload{"tokens", "gpt-small", "1x1x256", 1, 5 * 255, 8192}

// continuing continues texts of one token by the most probable ones and prints a measurement, tokens a second as its
// samples.
func continuing(args []string) error {
	f := flag.NewFlagSet("continue", flag.ContinueOnError)
	network := f.String("network", continued.network, "")
	input := f.String("input", continued.input, "")
	classes := f.Int("classes", continued.classes, "")
	f.Int("batch", 1, "")
	steps := f.Int("steps", continued.steps, "")
	f.Int("warmup", 2, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	g, err := graph(*network, *input, *classes)
	if err != nil {
		return err
	}
	e, err := native.New(engine.Spec{Graph: g, BatchSize: 1, Continues: true})
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Init(disdel.Init{Scheme: "he"}); err != nil {
		return err
	}
	m := measurement{Network: *network, Batch: 1, Plan: int64(e.Plan().Bytes()), Kernels: e.Kernels()}
	rates, row := make([]float64, 0, groups), []float32{1}
	for range groups {
		start, n := time.Now(), max(1, *steps/groups)
		for range n {
			if len(row) == g.Input().Len() {
				row = row[:1]
			}
			p, err := e.Predict(dataset.Dense(1, row, nil))
			if err != nil {
				return err
			}
			row = append(row, float32(disdel.Largest(p.Values)))
		}
		rates = append(rates, float64(n)/time.Since(start).Seconds())
	}
	m.PerSecond, m.PeakRSS = rig.Median(rates), peakRSS()
	return json.NewEncoder(os.Stdout).Encode(m)
}

// texts compares the tokens a second of gpt-small on one core with those of PyTorch, which keeps keys and values, too.
func (b *bench) texts() error {
	var ours []float64
	peers, rates := tried{}, map[string][]float64{}
	for range b.rounds {
		m, _, err := run("0", []string{b.self, "continue"}, continued)
		if err != nil {
			return err
		}
		ours = append(ours, m.PerSecond)
		for _, p := range b.peers() {
			if p.name != "torch" {
				continue
			}
			p.command = []string{p.command[0], "bench/peer/torch_continue.py"}
			if m, ok := peers.run(p, continued); ok {
				rates[m.Torch] = append(rates[m.Torch], m.PerSecond)
			}
		}
	}
	best := 0.0
	for torch, r := range rates {
		fmt.Printf("# %s continued by torch %s: %.1f tokens/s\n", continued.network, strings.TrimSpace(torch), rig.Median(r))
		best = max(best, rig.Median(r))
	}
	rig.Figure("tokens_per_s", rig.Median(ours), "1/s")
	if best > 0 {
		rig.Figure("tokens_ratio", rig.Median(ours)/best, "x")
	}
	return nil
}

// attended is an attention of six heads of 64 channels, as gpt-small has it.
type attended struct {
	positions, rows int
	causal          bool
}

// attendedSizes have 2,048 positions in all.
var attendedSizes = []attended{{128, 16, false}, {512, 4, false}, {2048, 1, false}, {2048, 1, true}}

// arguments are those of the process that computes an attention.
func (a attended) arguments() []string {
	out := []string{"--positions", strconv.Itoa(a.positions), "--rows", strconv.Itoa(a.rows), "--steps", "9"}
	if a.causal {
		out = append(out, "--causal")
	}
	return out
}

func (a attended) String() string {
	name := strconv.Itoa(a.positions)
	if a.causal {
		name += "_causal"
	}
	return name
}

// attentionStep is what a process needs for an attention forward and back.
type attentionStep struct {
	Milliseconds float64 `json:"step_ms"`   // of processor time, the median
	Memory       int64   `json:"rss_bytes"` // the peak above that before the first step
	Torch        string  `json:"torch"`
	Fused        bool    `json:"fused"` // by F.scaled_dot_product_attention
}

// attending computes an attention forward and back, and prints an attentionStep.
func attending(args []string) error {
	f := flag.NewFlagSet("attention", flag.ContinueOnError)
	positions := f.Int("positions", 128, "")
	rows := f.Int("rows", 1, "")
	steps := f.Int("steps", 1, "")
	causal := f.Bool("causal", false, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	set, err := kernel.Choose()
	if err != nil {
		return err
	}
	const heads, width, lanes = 6, 64, 32
	fold := lanes / *rows // as the plan of a network of few rows has it
	images := plan.Image{C: 3 * heads * width, H: *positions / fold, W: 1, Lanes: lanes, Fold: fold}
	runtime.GC()
	held := peakRSS()
	x, dx := values(images.Len()), make([]float32, images.Len())
	y, dy := make([]float32, len(x)/3), values(len(x)/3)
	a := kernel.Attention{
		Sequence: kernel.Sequence{Image: images, Rows: *rows}, Heads: heads, KVHeads: heads, Width: width, Causal: *causal,
		Kept: make([]float32, heads*images.H*lanes), Scratch: make([]float32, heads*images.Attention(width).Scratch(true)),
	}
	var times []float64
	kernel.NewTeam(set, 1, 1).Run(func(w *kernel.Worker) {
		for range 1 + *steps {
			start := processorTime()
			w.Attention(&a, x, y)
			clear(dx)
			w.AttentionBack(&a, x, y, dy, dx)
			times = append(times, float64(processorTime()-start)/1e6)
		}
	})
	return json.NewEncoder(os.Stdout).Encode(attentionStep{
		Milliseconds: rig.Median(times[1:]), Memory: peakRSS() - held,
	})
}

// attention compares attentions with PyTorch's, forward and back, in processor time of one core. The memory at 2,048
// positions is compared with that of PyTorch's attention by its definition.
func (b *bench) attention() error {
	least := 0.0
	for _, size := range attendedSizes {
		times, memory := map[string][]float64{}, map[string][]float64{}
		note := func(name string, more ...string) error {
			command := strings.Fields(name)
			var step attentionStep
			if err := onOneCore(slices.Concat(command, size.arguments(), more), &step); err != nil {
				return err
			}
			key := strings.TrimSpace(fmt.Sprint(step.Torch, " ", strings.Join(more, " ")))
			times[key], memory[key] = append(times[key], step.Milliseconds), append(memory[key], float64(step.Memory))
			return nil
		}
		for range b.rounds {
			if err := note(b.self + " attention"); err != nil {
				return err
			}
			for _, p := range b.peers() {
				if p.name != "torch" {
					continue
				}
				for _, more := range [][]string{nil, {"--eager"}} {
					if err := note(p.command[0]+" bench/peer/attention.py", more...); err != nil {
						fmt.Printf("# attention of %s is left out: %v\n", size, err)
					}
				}
			}
		}
		fastest, eager := 0.0, 0.0
		for key, t := range times {
			fmt.Printf("# attention of %s, torch %q: %.1f ms, %.1f MB\n", size, key, rig.Median(t), rig.Median(memory[key])/1e6)
			if key != "" && (fastest == 0 || rig.Median(t) < fastest) {
				fastest = rig.Median(t)
			}
			if m := rig.Median(memory[key]); strings.HasSuffix(key, "--eager") && (eager == 0 || m < eager) {
				eager = m
			}
		}
		if fastest == 0 {
			continue
		}
		ratio := fastest / rig.Median(times[""])
		rig.Figure("attention_ratio_"+size.String(), ratio, "x")
		if least == 0 || ratio < least {
			least = ratio
		}
		if size.positions == 2048 && !size.causal {
			rig.Figure("attention_memory", rig.Median(memory[""])/eager, "of PyTorch's by the definition")
		}
	}
	if least > 0 {
		rig.Figure("attention_ratio", least, "x")
	}
	return nil
}

// onOneCore runs a command on the first core, and reads the JSON that it prints.
func onOneCore(command []string, into any) error {
	var errs bytes.Buffer
	cmd := exec.Command("taskset", append([]string{"-c", "0"}, command...)...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return errors.Join(err, errors.New(errs.String()))
	}
	return json.Unmarshal(out, into)
}

// tokenizedBytes is how much text the tokenizers are compared on.
const tokenizedBytes = 10_000_000

// tokenizers compares disdel's tokenizers with PyPI's, in processor time of one core, on the same texts and the same
// tokenizer.json: one that was trained here, a published one, and a WordPiece.
func (b *bench) tokenizers() error {
	if _, err := os.Stat(b.tokens); err != nil {
		fmt.Println("# no tokenizers to compare with")
		return nil
	}
	texts := filepath.Join(b.home, "texts")
	script := func(args ...string) error {
		return exec.Command(b.tokens, append([]string{"bench/peer/tokens.py"}, args...)...).Run()
	}
	path := func(name string) string { return filepath.Join(b.home, name+".json") }
	if err := errors.Join(script("text", texts, strconv.Itoa(tokenizedBytes)), script("published", path("deepseek")),
		script("pieces", texts, path("wordpiece"))); err != nil {
		return err
	}
	rows, err := readTexts(texts)
	if err != nil {
		return err
	}
	trained, err := text.TrainBPE(slices.Values(rows), 8000)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path("bpe"), trained.JSON(), 0o600); err != nil {
		return err
	}
	least, differ := 0.0, 0
	for _, name := range []string{"bpe", "deepseek", "wordpiece"} {
		var ours, theirs []float64
		out := filepath.Join(b.home, "tokens")
		for range b.rounds {
			var mine, peer float64
			err := errors.Join(onOneCore([]string{b.self, "encode", texts, path(name)}, &mine),
				onOneCore([]string{b.tokens, "bench/peer/tokens.py", "encode", texts, path(name), out}, &peer))
			if err != nil {
				return err
			}
			ours, theirs = append(ours, mine), append(theirs, peer)
		}
		wrong, err := mismatches(rows, path(name), out)
		if err != nil {
			return err
		}
		differ += wrong
		mine, peer := rig.Median(ours), rig.Median(theirs)
		fmt.Printf("# %s: %.2f MB/s, tokenizers %.2f MB/s, %d texts differ\n", name, mine, peer, wrong)
		rig.Figure("tokenizer_"+name+"_ratio", mine/peer, "x")
		if least == 0 || mine/peer < least {
			least = mine / peer
		}
	}
	rig.Figure("tokenizer_mb_per_s", least, "of the library tokenizers', the least of three")
	rig.Figure("tokenizer_mismatch", float64(differ), "texts")
	return nil
}

// readTexts reads what tokens.py wrote.
func readTexts(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00"), nil
}

// readTokenizer reads a tokenizer.json.
func readTokenizer(path string) (*text.Tokenizer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return text.Read(bytes.NewReader(data))
}

// encoding encodes texts with a tokenizer, and prints megabytes a second of processor time, the best of three passes.
// Each pass begins without words that it knows.
func encoding(args []string) error {
	rows, err := readTexts(args[0])
	if err != nil {
		return err
	}
	t, err := readTokenizer(args[1])
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	best := 0.0
	var tokens []int32
	for range 3 {
		e, size, start := t.Encoder(), 0, processorTime()
		for _, row := range rows {
			tokens = e.Append(tokens[:0], row, false)
			size += len(row)
		}
		best = max(best, float64(size)/1e6/(processorTime()-start).Seconds())
	}
	return json.NewEncoder(os.Stdout).Encode(best)
}

// mismatches is the number of texts whose tokens are others than those that tokens.py wrote: each text's, and then -1.
func mismatches(rows []string, tokenizer, file string) (differ int, err error) {
	t, err := readTokenizer(tokenizer)
	if err != nil {
		return 0, err
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	theirs := make([]int32, len(raw)/4)
	if err := binary.Read(bytes.NewReader(raw), binary.LittleEndian, theirs); err != nil {
		return 0, err
	}
	e := t.Encoder()
	for _, row := range rows {
		end := slices.Index(theirs, -1)
		if end < 0 {
			return 0, fmt.Errorf("%s ends before the last text", file)
		}
		if !slices.Equal(e.Append(nil, row, false), theirs[:end]) {
			differ++
		}
		theirs = theirs[end+1:]
	}
	return differ, nil
}
