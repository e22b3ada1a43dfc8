package python

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// forksVariable has the descriptor at which the embedded platform takes requests for forks. Other platforms have none.
const forksVariable = "__DISDEL_FORKS"

// forking asks for a worker that is forked from a template: a process of the same interpreter and environment that has
// imported PyTorch.
type forking struct {
	Args  []string   `json:"args"`
	Env   []string   `json:"env"`
	Local []string   `json:"local"` // variables that do not tell templates apart
	Start forkedSpec `json:"start"`
}

// forkedSpec is what is the fork's own.
type forkedSpec struct {
	Folder  string            `json:"folder"`  // where it runs
	Package string            `json:"package"` // the folder of the package disdel
	Env     map[string]string `json:"env"`
}

// forked is a message about a fork: its start, and then its end.
type forked struct {
	PID    int    `json:"pid"`
	Error  string `json:"error"`
	Status *int   `json:"status"` // as wait4 has it
	Most   int64  `json:"most"`   // its largest resident memory, in KB
}

// fork has the worker forked from a template, and tells whether it was: where the platform has no template for it, the
// worker has to be a new process. It returns an error when ctx ends meanwhile.
func (p *process) fork(ctx context.Context, streams []*os.File) (done bool, err error) {
	port, err := strconv.Atoi(os.Getenv(forksVariable))
	if err != nil {
		return false, nil
	}
	unix.CloseOnExec(port) // it is for this process alone
	hideMemory()
	ended, err := p.askFork(port, streams)
	if err != nil {
		return false, nil
	}
	stop := context.AfterFunc(ctx, func() { ended.Close() })
	report, err := receiveForked(ended)
	if !stop() { // the template kills a fork that nobody waits for
		return false, context.Cause(ctx)
	}
	if err == nil && report.PID > 0 {
		p.handle, err = openHandle(report.PID)
	}
	if err != nil || report.PID <= 0 {
		ended.Close()
		return false, nil
	}
	p.pid = report.PID
	go p.follow(ended)
	return true, nil
}

// askFork sends the request. What it returns tells of the fork.
func (p *process) askFork(port int, streams []*os.File) (net.Conn, error) {
	ours, theirs, err := socketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	defer theirs.Close()
	message, err := json.Marshal(p.forking())
	if err != nil {
		return nil, err
	}
	var files []int
	for _, f := range append(slices.Concat(p.cmd.ExtraFiles, streams), theirs) {
		files = append(files, int(f.Fd()))
	}
	if err := unix.Sendmsg(port, message, unix.UnixRights(files...), nil, unix.MSG_NOSIGNAL); err != nil {
		return nil, err
	}
	return net.FileConn(ours)
}

// forking is the request: the command of the worker, as a template has it.
func (p *process) forking() forking {
	out := forking{Args: slices.Clone(p.cmd.Args), Start: forkedSpec{Folder: p.home, Env: map[string]string{}}}
	out.Args[len(out.Args)-1] = "disdel.forks"
	for _, variable := range p.cmd.Env {
		name, value, _ := strings.Cut(variable, "=")
		switch name {
		case "HOME", "TMPDIR", "PATH", "OMP_NUM_THREADS", "MKL_NUM_THREADS":
			out.Start.Env[name] = value
		case strings.TrimSuffix(packages, "="):
			out.Start.Package, out.Local = value, []string{variable}
			out.Args = append(out.Args, filepath.Base(value)) // named by its content: other content is another template
		default:
			out.Env = append(out.Env, variable)
		}
	}
	return out
}

func receiveForked(from net.Conn) (report forked, err error) {
	const maximum = 4 << 10
	data := make([]byte, maximum)
	n, err := from.Read(data)
	if err == nil {
		err = json.Unmarshal(data[:n], &report)
	}
	return report, err
}

// follow waits for the end of a forked worker and kills what it has started.
func (p *process) follow(from net.Conn) {
	defer close(p.ended)
	defer from.Close()
	report, err := receiveForked(from)
	if err != nil || report.Status == nil { // the template is gone, and its forks with it
		killed := int(unix.SIGKILL)
		report.Status = &killed
	}
	p.status, p.usage.Maxrss = unix.WaitStatus(*report.Status), report.Most
	p.kill()
}
