package rig_test

import (
	"fmt"
	"time"

	"github.com/disdel/disdel/bench/rig"
)

func ExampleProgram_Run() {
	out, err := rig.Program{Path: "/bin/cat", Home: "/nowhere"}.Run([]byte("a job"))
	fmt.Println(string(out), err)
	_, err = rig.Program{Path: "/bin/sh", Home: "/nowhere"}.Run(nil, "-c", "echo why >&2; exit 3")
	fmt.Println(err)
	slow := rig.Program{Path: "/bin/sleep", Home: "/nowhere", Longest: 50 * time.Millisecond}
	_, err = slow.Run(nil, "60")
	fmt.Println(err)
	// Output:
	// a job <nil>
	// sh [-c echo why >&2; exit 3]: exit status 3: why
	// sleep [60]: not done after 50ms:
}
