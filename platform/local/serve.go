package local

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/process"
	"github.com/disdel/disdel/platform"
)

// Serving configures a platform that serves other processes.
type Serving struct {
	Home       string
	Host       string // to listen on
	Port       int    // 0: any that is free
	Properties string // file of wsk's to set up beside the home's own; "": none
	Platform   platform.Config
	Requests   logrus.FieldLogger // is told every request; nil: nobody is
	// Namespaces are kept from now on, with the keys that they had or that are given here.
	Namespaces []platform.Namespace
	Catalog    bool // whisk.system has the packages utils and samples
}

// Server is a serving platform. Close ends it.
type Server struct {
	State State
	ends  []func() error
}

// Serve claims the home, starts a platform, and publishes its address. It returns Conflict if another platform has the
// home, and Unavailable if it cannot listen.
func Serve(how Serving) (*Server, error) {
	s := &Server{}
	if err := s.start(how); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends the platform and releases the home last: while its file exists, containers may run.
func (s *Server) Close() error {
	var err error
	for _, end := range slices.Backward(s.ends) {
		err = errors.Join(err, end())
	}
	s.ends = nil
	return err
}

func (s *Server) start(how Serving) error {
	file, err := Claim(how.Home)
	if err != nil {
		return err
	}
	s.ends = append(s.ends, func() error { return Unclaim(file) })
	l, err := listen(how.Host, how.Port)
	if err != nil {
		return err
	}
	s.ends = append(s.ends, func() error {
		l.Close() // closed by the platform, if there came to be one
		return nil
	})
	if err := s.serve(l, how); err != nil {
		return err
	}
	releaseMemory()
	return Tell(file, s.State)
}

// serve answers on l.
func (s *Server) serve(l net.Listener, how Serving) error {
	self := process.Self()
	s.State = State{
		PID: self.PID, Address: reachable(l.Addr()), Started: time.Now(), Boot: self.Boot,
		StartTicks: self.Start,
	}
	var err error
	if s.State.Properties, err = absolute(cmp.Or(how.Properties, PropertiesFile(how.Home))); err != nil {
		return err
	}
	if s.State.Data, err = absolute(cmp.Or(how.Platform.DataDir, filepath.Join(how.Home, "platform"))); err != nil {
		return err
	}
	how.Platform.DataDir = s.State.Data
	p, err := platform.New(how.Platform)
	if err != nil {
		return err
	}
	s.ends = append(s.ends, func() error { return End(p) })
	if err := populate(p, &how); err != nil {
		return err
	}
	handler := http.Handler(&Front{API: p.Handler(), Platform: p, Started: s.State.Started})
	if how.Requests != nil {
		handler = platform.LogRequests(handler, how.Requests)
	}
	p.Serve(l, handler)
	for _, path := range propertiesFiles(PropertiesFile(how.Home), s.State.Properties) {
		set := [][2]string{{"APIHOST", s.State.Address}, {"AUTH", p.AuthKey()}, {"NAMESPACE", "_"}}
		if err := WriteProperties(path, set); err != nil {
			return err
		}
	}
	return nil
}

// populate adds the requested namespaces and the catalog.
func populate(p *platform.Platform, how *Serving) error {
	for _, n := range how.Namespaces {
		if _, err := p.PutNamespace(n, true); err != nil {
			return err
		}
	}
	if how.Catalog {
		return p.InstallCatalog()
	}
	return nil
}

// End closes a platform within a time limit.
func End(p *platform.Platform) error {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	return p.Close(ctx)
}

func listen(host string, port int) (net.Listener, error) {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "start platform", Msg: address + " is in use",
			Hint: "end what listens there, or take another port: --port 0 finds a free one",
		}
	}
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "start platform", Err: err,
			Hint: "name an address of this machine with --host",
		}
	}
	return l, nil
}

// absolute is an absolute path.
func absolute(path string) (string, error) {
	out, err := filepath.Abs(path)
	if err != nil {
		return "", &disdel.Error{Kind: disdel.Invalid, Op: "find " + path, Err: err}
	}
	return out, nil
}

// reachable is the URL of an address on this machine.
func reachable(a net.Addr) string {
	host, port, _ := net.SplitHostPort(a.String()) // net made it
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// propertiesFiles are the home's own file, which has the key, and the requested one.
func propertiesFiles(own, asked string) []string {
	if own == asked {
		return []string{own}
	}
	return []string{own, asked}
}

// LastingKey is the home's key. It stays the same between starts, so that clients need no new set-up.
func LastingKey(home string) string {
	if key := ReadProperties(PropertiesFile(home))["AUTH"]; key != "" && key != platform.DefaultConfig().AuthKey {
		return key
	}
	return platform.RandomKey()
}

// OwnNames are the host names of this machine that requests may use if other machines can reach host.
func OwnNames(host string) []string {
	names := []string{host}
	if own, err := os.Hostname(); err == nil {
		names = append(names, own)
	}
	return names
}

// releaseMemory returns memory that starting needed and serving does not, because a platform may idle for days: the
// heap, and the unchanged pages of the program's file, which stay in the kernel's cache.
func releaseMemory() {
	debug.FreeOSMemory()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		from, to, ok := unchangedPart(lines.Text(), self)
		if ok {
			unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED) //nolint:errcheck // it is advice
		}
	}
}

// unchangedPart reads a line of /proc/self/maps (proc(5)): the addresses of a mapping of file that cannot be written.
func unchangedPart(line, file string) (from, to uintptr, ok bool) {
	fields := strings.Fields(line)
	const path = 5
	if len(fields) <= path || fields[path] != file || strings.Contains(fields[1], "w") {
		return 0, 0, false
	}
	_, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to)
	return from, to, err == nil && from < to
}
