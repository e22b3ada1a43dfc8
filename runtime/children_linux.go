package runtime

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hasChildren tells whether this process has started others. It costs one system call, and most actions have none.
func hasChildren() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return !errors.Is(err, unix.ECHILD)
}

// ownMemory is the memory of this process. It allocates nothing: a training's heap is at the collector's limit, and
// each look's garbage started a collection, 50 times a second.
func ownMemory() processMemory {
	var buffer [8192]byte
	fd, _, failed := unix.Syscall6(unix.SYS_OPENAT, 0, uintptr(unsafe.Pointer(&ownStatus[0])),
		unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
	if failed != 0 {
		return processMemory{}
	}
	defer func() { _ = unix.Close(int(fd)) }()
	n, err := unix.Read(int(fd), buffer[:])
	if err != nil || n == len(buffer) { // a user of very many groups
		return memoryOf("self")
	}
	return parseStatus(buffer[:n])
}

// ownStatus is the path of this process's status, as system calls take it.
var ownStatus = [...]byte{'/', 'p', 'r', 'o', 'c', '/', 's', 'e', 'l', 'f', '/', 's', 't', 'a', 't', 'u', 's', 0}
