package terminal

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

func TestFaultsShowNoControlCharacters(t *testing.T) {
	faults := &disdel.Faults{File: "a\x1b.yaml", Faults: []disdel.Fault{
		{Path: "x\u202e", Line: 1, Column: 4, Msg: "a\nb", Hint: "c\x07"},
		{Path: "y", Line: 2, Column: 99, Msg: "behind the end"},
		{Path: "z", Line: 9, Column: 1, Msg: "below the end"},
		{Path: "s", Msg: "from the command line"},
	}}
	var out bytes.Buffer
	PrintFaults(faults, []byte("a:\t\x1b[31m\u202e!\r\nü: \xff1\r\n"), &out)
	want := `a\x1b.yaml:1:4: x\u202e: a b; c\a
   1 | a: \x1b[31m\u202e!
     |    ^^^^
a\x1b.yaml:2:99: y: behind the end
` + "   2 | ü: \ufffd1\n" + `     |      ^
a\x1b.yaml:9:1: z: below the end
--set: s: from the command line
4 problems
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsWithoutFileOrSource(t *testing.T) {
	var out bytes.Buffer
	PrintFaults(&disdel.Faults{Faults: []disdel.Fault{{Path: "p", Msg: "m"}}}, nil, &out)
	PrintFaults(&disdel.Faults{File: "f", Faults: []disdel.Fault{{Line: 3, Column: 2, Msg: "m"}}}, nil, &out)
	PrintFaults(&disdel.Faults{File: "f.csv", Faults: []disdel.Fault{{Path: "rows", Msg: "there are none"}}}, nil, &out)
	want := "p: m\n1 problem\nf:3:2: m\n1 problem\nf.csv: rows: there are none\n1 problem\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
