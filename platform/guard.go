package platform

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// guard is a process that outlives the platform by a moment: the kernel ends a container when the platform dies, but
// not what the container started. The guard knows the process groups and, when its input ends, kills what is left of
// them.
type guard struct {
	cmd   *exec.Cmd
	input *os.File
}

// guardScript uses nothing but the shell. It is told "+ group" and "- group"; its arguments are folders of control
// groups, which also hold what left its process group.
const guardScript = `trap '' HUP INT TERM
groups=" "
while read -r what n; do
	case $what in
	+) groups="$groups$n " ;;
	-) groups="${groups%%" $n "*} ${groups#*" $n "}" ;;
	esac
done
for n in $groups; do kill -s KILL -- "-$n"; done
for dir in "$@"; do
	for f in "$dir"/c-*/cgroup.procs; do
		[ -e "$f" ] || continue
		while read -r n; do kill -s KILL "$n"; done <"$f"
	done
done 2>/dev/null
`

// newGuard starts a guard; where there is no shell, the death signal of the containers themselves must do.
func newGuard(folders []string) *guard {
	keepDescriptors()
	in, out, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer in.Close()
	g := &guard{
		cmd:   exec.Command("/bin/sh", append([]string{"-c", guardScript, "guard"}, folders...)...),
		input: out,
	} //nolint:gosec // our own script
	g.cmd.Stdin, g.cmd.Env, g.cmd.Dir = in, []string{}, "/"
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends the platform's group shall not end the guard
	if err := g.cmd.Start(); err != nil {
		out.Close()
		return nil
	}
	return g
}

func (g *guard) tell(what string, group int) {
	if g != nil {
		fmt.Fprintln(g.input, what, group) //nolint:errcheck // a guard that was killed guards no more
	}
}

func (g *guard) close() {
	if g != nil {
		g.input.Close()
		g.cmd.Wait() //nolint:errcheck // there is nothing to learn from it
	}
}
