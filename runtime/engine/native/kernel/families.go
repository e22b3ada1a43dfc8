package kernel

import "github.com/disdel/disdel"

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
