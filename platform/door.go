package platform

import (
	"fmt"
	"os"
	"path/filepath"
)

// door is a container's unix socket: the path that it listens on and the one that reaches it.
type door struct {
	listen, dial string
	folder       *os.File // of the socket, where its path is too long; else nil
}

// longestSocket is what sun_path holds, less the final zero.
const longestSocket = 107

// openDoor names the socket in dir. One whose path is too long for the kernel is named from the container's working
// folder on one side, and through the platform's descriptor of that folder on the other.
func openDoor(dir string) (door, error) {
	path := filepath.Join(dir, "s")
	if len(path) <= longestSocket {
		return door{listen: path, dial: path}, nil
	}
	folder, err := os.Open(dir)
	if err != nil {
		return door{}, err
	}
	return door{listen: "s", dial: fmt.Sprintf("/proc/self/fd/%d/s", folder.Fd()), folder: folder}, nil
}

func (d door) close() {
	if d.folder != nil {
		d.folder.Close()
	}
}
