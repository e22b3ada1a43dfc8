package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// BlocksVariable is the environment variable that says what blocks are used: weights=98304,rows=8,depth=256, or some of
// these. A number alone is that of weights.
const BlocksVariable = "DISDEL_BLOCKS"

// Blocks is how much of its operands a product works with at a time. It is a matter of speed alone: sums have the same
// terms in the same order, whatever the blocks, so that bits and memory are the same.
type Blocks struct {
	Weights int    `json:"weights"`          // values of a layer's weights, which stay in the second-level cache
	Rows    int    `json:"rows"`             // of a tile of a product, where they are channels; see Set.Heights
	Depth   int    `json:"depth"`            // inner steps of Gemm's panels, one of which stays in the first-level cache
	Family  string `json:"family,omitempty"` // of the processor, where the table knows it
	Basis   string `json:"basis"`            // chosen by: measured, family, caches, default, or DISDEL_BLOCKS
}

// What Blocks were chosen by.
const (
	byMeasurement = "measured" // the engine was measured on this family
	byFamily      = "family"   // by what is known of its units and caches
	byCaches      = "caches"
	byDefault     = "default"
)

// The least and the most that a pass takes: a filter of many channels, and what no cache beside a core holds. Likewise
// Gemm's panels: fewer steps would store a tile more often than it pays, more would need more memory.
const (
	leastBlock = 8 << 10
	mostBlock  = 1 << 20
	leastDepth = 64
	mostDepth  = 512
	usualDepth = 256
)

// BlocksFor chooses by the family of a processor where the table has it, else by its second-level cache: three quarters
// of that, which leaves room for the pixels. A cache that the processor does not tell is its family's. Rows are 0 where
// those of the path will do.
func BlocksFor(m Machine) Blocks {
	b, second := Blocks{Weights: budget, Depth: usualDepth, Basis: byDefault}, m.Second
	if f := familyOf(m); f != nil {
		b.Family, b.Rows, b.Basis = f.name, f.rows(), byFamily
		if second == 0 {
			second = f.second
		}
		if f.weights > 0 {
			b.Weights, b.Basis = f.weights, byMeasurement
			return b
		}
	} else if second > 0 {
		b.Basis = byCaches
	}
	if second > 0 {
		b.Weights = min(max(int(second)/4*3/4, 64<<10), mostBlock)
	}
	return b
}

// Choice is a block, and what could be chosen for it.
type Choice struct {
	Block  string // weights, rows or depth
	Values []int
}

// Choices lists the blocks that a measurement may compare: what was chosen and what is around it, of those for which
// there is more than that.
func (s Set) Choices() (all []Choice) {
	for _, c := range []Choice{
		{"weights", within(leastBlock, mostBlock, s.Blocks.Weights/2, s.Blocks.Weights, s.Blocks.Weights*2)},
		{"rows", s.Heights()},
		{"depth", within(leastDepth, mostDepth, s.Blocks.Depth/2, s.Blocks.Depth, s.Blocks.Depth*3/2)},
	} {
		if len(c.Values) > 1 {
			all = append(all, c)
		}
	}
	return all
}

// within are those of some values that lie between two.
func within(minimum, maximum int, values ...int) []int {
	return slices.DeleteFunc(values, func(v int) bool { return v < minimum || v > maximum })
}

// With is the set with one block of Choices as given.
func (s Set) With(block string, value int) Set {
	switch block {
	case "weights":
		s.Blocks.Weights = value
	case "rows":
		s.Blocks.Rows = value
	case "depth":
		s.Blocks.Depth = value
	}
	return s
}

// String is how the environment variable says it.
func (b Blocks) String() string {
	return fmt.Sprintf("weights=%d,rows=%d,depth=%d", b.Weights, b.Rows, b.Depth)
}

// chooseBlocks goes by this machine, and by the environment where that says otherwise, for a path that has tiles of
// some heights, its usual one first. It returns Invalid for what is no block, all faults at once.
func chooseBlocks(heights []int) (Blocks, error) {
	b := BlocksFor(ReadMachine("/"))
	if !slices.Contains(heights, b.Rows) {
		b.Rows = heights[0]
	}
	text := os.Getenv(BlocksVariable)
	if text == "" {
		return b, nil
	}
	like := b
	b.Basis = BlocksVariable
	var faults []error
	for part := range strings.SplitSeq(text, ",") {
		faults = append(faults, b.set(part, heights))
	}
	if err := errors.Join(faults...); err != nil {
		return Blocks{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "choose kernels",
			Msg:  fmt.Sprintf("%s is %q: %s", BlocksVariable, text, strings.ReplaceAll(err.Error(), "\n", "; ")),
			Hint: fmt.Sprintf("write it like %s, or unset it", like),
		}
	}
	return b, nil
}

// set takes one part of the environment's text.
func (b *Blocks) set(part string, heights []int) error {
	name, value, named := strings.Cut(strings.TrimSpace(part), "=")
	if !named {
		name, value = "weights", name
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		n = -1 // which nothing takes
	}
	switch name {
	case "weights":
		if b.Weights = n; n < leastBlock || n > mostBlock {
			return fmt.Errorf("weights are a number from %d to %d, and not %q", leastBlock, mostBlock, value)
		}
	case "rows":
		if b.Rows = n; !slices.Contains(heights, n) {
			return fmt.Errorf("rows are one of %v on this path, and not %q", heights, value)
		}
	case "depth":
		if b.Depth = n; n < leastDepth || n > mostDepth {
			return fmt.Errorf("depth is a number from %d to %d, and not %q", leastDepth, mostDepth, value)
		}
	default:
		return fmt.Errorf("there is no block %q: there are weights, rows and depth", name)
	}
	return nil
}

// family is a kind of processor whose cores are alike in what blocks go by.
type family struct {
	name    string
	vendor  string
	number  int
	models  [][2]int     // the first and the last of each row of them; none: all
	second  disdel.Bytes // second-level cache of a core
	units   int          // that multiply 512 bits a cycle; halves of them, and narrower ones, do not count
	weights int          // as measured; 0: this family was not
}

// rows is the height of tiles: two units that multiply 16 values a cycle want more of them for each value that is read.
func (f *family) rows() int {
	if f.units >= 2 {
		return tallRows
	}
	return 0
}

// Vendors as processors name themselves: x86 ones by a word, arm64 ones by a number (MIDR_EL1's implementer).
const (
	amd    = "AuthenticAMD"
	intel  = "GenuineIntel"
	arm    = "0x41"
	ampere = "0xc0"
	apple  = "0x61"
)

// families is the table. Numbers of models, caches and units are those of the makers: Intel's optimization manual and
// its list of processor signatures, AMD's software optimization guides by family, Arm's technical reference manuals.
// An Ice Lake of a desktop has one unit of 512 bits where one of a server has two; Zen 4 has two of 256 bits.
func families() []family {
	return []family{
		{name: "Zen, Zen+", vendor: amd, number: 23, models: [][2]int{{0x00, 0x2f}}, second: 512 * disdel.KB},
		{name: "Zen 2", vendor: amd, number: 23, models: [][2]int{{0x30, 0xff}}, second: 512 * disdel.KB},
		{
			name: "Zen 3", vendor: amd, number: 25, models: [][2]int{{0x00, 0x0f}, {0x20, 0x5f}}, second: 512 * disdel.KB,
			weights: 96 << 10,
		},
		{
			name: "Zen 4", vendor: amd, number: 25, models: [][2]int{{0x10, 0x1f}, {0x60, 0xaf}}, second: disdel.MB,
			weights: 96 << 10,
		},
		{
			name: "Zen 5", vendor: amd, number: 26, models: [][2]int{{0x00, 0x1f}, {0x40, 0x4f}}, second: disdel.MB, units: 2,
		},
		{name: "Zen 5, mobile", vendor: amd, number: 26, models: [][2]int{{0x20, 0x3f}, {0x50, 0xff}}, second: disdel.MB},

		{
			name: "Haswell, Broadwell", vendor: intel, number: 6, second: 256 * disdel.KB,
			models: [][2]int{{60, 61}, {63, 63}, {69, 71}, {79, 79}, {86, 86}},
		},
		{
			name: "Skylake to Comet Lake", vendor: intel, number: 6, second: 256 * disdel.KB,
			models: [][2]int{{78, 78}, {94, 94}, {142, 142}, {158, 158}, {165, 166}},
		},
		{
			name: "Skylake-SP to Cooper Lake", vendor: intel, number: 6, models: [][2]int{{85, 85}}, second: disdel.MB,
			units: 2,
		},
		{
			name: "Ice Lake to Rocket Lake", vendor: intel, number: 6, second: 512 * disdel.KB, units: 1,
			models: [][2]int{{125, 126}, {140, 141}, {167, 167}},
		},
		{
			name: "Ice Lake-SP", vendor: intel, number: 6, models: [][2]int{{106, 106}, {108, 108}},
			second: 1280 * disdel.KB, units: 2,
		},
		{
			name: "Sapphire and Emerald Rapids", vendor: intel, number: 6, models: [][2]int{{143, 143}, {207, 207}},
			second: 2 * disdel.MB, units: 2,
		},
		{
			name: "Granite Rapids", vendor: intel, number: 6, models: [][2]int{{173, 174}}, second: 2 * disdel.MB, units: 2,
		},
		{
			name: "Alder Lake and later", vendor: intel, number: 6, second: 1280 * disdel.KB,
			models: [][2]int{{151, 151}, {154, 154}, {170, 170}, {172, 172}, {183, 183}, {186, 186}, {189, 191}, {197, 198}},
		},

		{name: "Cortex-A72", vendor: arm, number: 8, models: [][2]int{{0xd08, 0xd08}}, second: 256 * disdel.KB},
		{name: "Cortex-A76", vendor: arm, number: 8, models: [][2]int{{0xd0b, 0xd0b}}, second: 256 * disdel.KB},
		{name: "Neoverse N1", vendor: arm, number: 8, models: [][2]int{{0xd0c, 0xd0c}}, second: 512 * disdel.KB},
		{name: "Neoverse V1", vendor: arm, number: 8, models: [][2]int{{0xd40, 0xd40}}, second: disdel.MB},
		{name: "Neoverse N2", vendor: arm, number: 8, models: [][2]int{{0xd49, 0xd49}}, second: 512 * disdel.KB},
		{name: "Neoverse V2", vendor: arm, number: 8, models: [][2]int{{0xd4f, 0xd4f}}, second: disdel.MB},
		{name: "AmpereOne", vendor: ampere, number: 8, models: [][2]int{{0xac3, 0xac5}}, second: 2 * disdel.MB},
		{name: "Apple", vendor: apple, number: 8, second: 4 * disdel.MB},
	}
}

// familyOf is the row of the table that a processor is of; nil: none.
func familyOf(m Machine) *family {
	all := families()
	for i := range all {
		if f := &all[i]; f.vendor == m.Vendor && f.number == m.Family && f.has(m.Model) {
			return f
		}
	}
	return nil
}

// has tells whether a model is of the family.
func (f *family) has(model int) bool {
	for _, m := range f.models {
		if m[0] <= model && model <= m[1] {
			return true
		}
	}
	return len(f.models) == 0
}

// Machine is what a processor says of itself. What it does not say is "" or 0. An arm64 one has numbers for its vendor,
// its architecture and its model, and no name.
type Machine struct {
	Vendor string       `json:"vendor,omitempty"` // AuthenticAMD, GenuineIntel; 0x41, which is Arm
	Family int          `json:"family,omitempty"`
	Model  int          `json:"model,omitempty"`
	Name   string       `json:"name,omitempty"`
	First  disdel.Bytes `json:"firstCacheBytes,omitempty"` // of data, of a core
	Second disdel.Bytes `json:"secondCacheBytes,omitempty"`
	Third  disdel.Bytes `json:"thirdCacheBytes,omitempty"` // shared
}

// ReadMachine reads what Linux tells of the first processor under root, "/" but in tests.
func ReadMachine(root string) (m Machine) {
	text, _ := os.ReadFile(filepath.Join(root, "proc/cpuinfo")) // what cannot be read is not known
	first, _, _ := bytes.Cut(text, []byte("\n\n"))
	for line := range strings.Lines(string(first)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "vendor_id", "CPU implementer":
			m.Vendor = value
		case "cpu family", "CPU architecture":
			m.Family, _ = strconv.Atoi(value)
		case "model", "CPU part":
			part, _ := strconv.ParseInt(value, 0, 32)
			m.Model = int(part)
		case "model name":
			m.Name = value
		}
	}
	caches, _ := filepath.Glob(filepath.Join(root, "sys/devices/system/cpu/cpu0/cache/index*"))
	for _, c := range caches {
		m.cache(c)
	}
	return m
}

// cache reads the folder of one cache.
func (m *Machine) cache(folder string) {
	word := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(folder, name))
		return strings.TrimSpace(string(text))
	}
	n, err := strconv.Atoi(strings.TrimSuffix(word("size"), "K"))
	if err != nil || n < 0 || word("type") == "Instruction" {
		return
	}
	size := disdel.Bytes(n) << 10
	switch word("level") {
	case "1":
		m.First = size
	case "2":
		m.Second = size
	case "3":
		m.Third = size
	}
}
