//go:build (!amd64 && !arm64) || noasm

package kernel

func sets() []Set { return []Set{portable()} }
