package local

import "testing"

// The program's own unchanged pages are found, and nothing else; and it goes on once they were given back.
func TestOnlyUnchangedPagesAreGivenBack(t *testing.T) {
	for line, want := range map[string]uintptr{
		"00400000-02a00000 r-xp 00000000 08:01 123    /opt/disdel":  0x2600000,
		"02a00000-04000000 r--p 02600000 08:01 123    /opt/disdel":  0x1600000,
		"04000000-04200000 rw-p 03c00000 08:01 123    /opt/disdel":  0,
		"00400000-02a00000 r-xp 00000000 08:01 123    /opt/disdel2": 0,
		"7ffc0000-7ffe0000 rw-p 00000000 00:00 0      [stack]":      0,
		"7ffc0000-7ffe0000 r--p 00000000 00:00 0":                   0,
		"": 0,
	} {
		from, to, ok := unchangedPart(line, "/opt/disdel")
		if ok != (want > 0) || ok && to-from != want {
			t.Errorf("%q: %x-%x, %v", line, from, to, ok)
		}
	}
	releaseMemory()
	if _, _, ok := unchangedPart("00400000-00500000 r--p 0 0 0 /opt/x", "/opt/x"); !ok {
		t.Error("the program does not go on")
	}
}
