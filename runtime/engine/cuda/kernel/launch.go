package kernel

import (
	"encoding/binary"

	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// Threads is how many threads each block of each kernel has.
const Threads = 256

// perThread is how many values a thread of a kernel has that goes value by value.
const perThread = 4

// over is n divided by each, rounded up.
func over(n, each int) int { return (n + each - 1) / each }

// of is a launch of a kernel on blocks of Threads. The fields of args are those of the kernel's struct, in its order,
// without gaps; every kind of field is as large there as it is in Go.
func of(name string, grid [3]int, args any) driver.Launch {
	data, err := binary.Append(nil, binary.LittleEndian, args)
	if err != nil {
		panic(err) // args is no struct of numbers
	}
	return driver.Launch{Kernel: name, Grid: grid, Args: data}
}

// each is a launch with a thread for every perThread of n values, one with a thread for every value.
func each(name string, n int, args any) driver.Launch {
	return of(name, [3]int{over(n, Threads*perThread), 1, 1}, args)
}

func one(name string, n int, args any) driver.Launch {
	return of(name, [3]int{over(n, Threads), 1, 1}, args)
}

// flag is a C int that is 0 or 1.
func flag(v bool) int32 {
	if v {
		return 1
	}
	return 0
}
