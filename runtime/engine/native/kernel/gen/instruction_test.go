package main

import "testing"

// The words are those that LLVM's assembler gives, for registers that differ in every bit somewhere.
func TestInstructionsAreTheirWords(t *testing.T) {
	for _, c := range []struct {
		got  instruction
		want uint32
		text string
	}{
		{fadd(1, 2, 3), 0x4e23d441, "fadd v1.4s, v2.4s, v3.4s"},
		{fsub(4, 5, 6), 0x4ea6d4a4, "fsub v4.4s, v5.4s, v6.4s"},
		{fmul(31, 30, 29), 0x6e3ddfdf, "fmul v31.4s, v30.4s, v29.4s"},
		{fdiv(7, 8, 9), 0x6e29fd07, "fdiv v7.4s, v8.4s, v9.4s"},
		{fmax(10, 11, 12), 0x4e2cf56a, "fmax v10.4s, v11.4s, v12.4s"},
		{fmin(13, 14, 15), 0x4eaff5cd, "fmin v13.4s, v14.4s, v15.4s"},
		{fcmeq(16, 17, 18), 0x4e32e630, "fcmeq v16.4s, v17.4s, v18.4s"},
		{fcmgt(19, 20, 21), 0x6eb5e693, "fcmgt v19.4s, v20.4s, v21.4s"},
		{fsqrt(22, 23), 0x6ea1faf6, "fsqrt v22.4s, v23.4s"},
		{fmlaElement(24, 25, 26, 0), 0x4f9a1338, "fmla v24.4s, v25.4s, v26.s[0]"},
		{fmlaElement(27, 28, 7, 1), 0x4fa7139b, "fmla v27.4s, v28.4s, v7.s[1]"},
		{fmlaElement(0, 31, 16, 2), 0x4f901be0, "fmla v0.4s, v31.4s, v16.s[2]"},
		{fmlaElement(31, 0, 31, 3), 0x4fbf181f, "fmla v31.4s, v0.4s, v31.s[3]"},
	} {
		if c.got.word != c.want || c.got.text != c.text {
			t.Errorf("%s is 0x%08x, want 0x%08x, %s", c.got.text, c.got.word, c.want, c.text)
		}
	}
}

func TestWhatDoesNotExistIsRefused(t *testing.T) {
	var a neon
	for name, f := range map[string]func(){
		"a vector register": func() { fadd(0, 32, 0) }, "a value of a vector": func() { fmlaElement(0, 0, 0, 4) },
		"a general register": func() {
			for range len(generals) + 1 {
				a.register()
			}
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s too many was taken", name)
				}
			}()
			f()
		}()
	}
}
