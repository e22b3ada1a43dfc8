//go:build !linux

package runtime

// hasChildren is false: without /proc, the memory of children is unknown.
func hasChildren() bool { return false }

func ownMemory() processMemory { return memoryOf("self") }
