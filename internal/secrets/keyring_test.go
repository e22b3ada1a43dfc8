package secrets_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	library "github.com/zalando/go-keyring"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/secrets"
)

// insideSession has the test binary be the program of a session of its own.
const insideSession = "DISDEL_TEST_INSIDE_SESSION"

func TestMain(m *testing.M) {
	if os.Getenv(insideSession) != "" {
		if err := roundTrip(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// roundTrip is a secret's whole life.
func roundTrip() error {
	const name = "test of disdel"
	for _, text := range []string{"first", "second\nwith a line"} {
		if err := secrets.SaveToKeyring(name, text); err != nil {
			return err
		}
		if got, err := secrets.ReadFromKeyring(name); err != nil || got != text {
			return fmt.Errorf("got %q, %w", got, err)
		}
	}
	for range 2 {
		if err := secrets.DeleteFromKeyring(name); err != nil {
			return err
		}
	}
	if _, err := secrets.ReadFromKeyring(name); disdel.KindOf(err) != disdel.NotFound {
		return fmt.Errorf("after it was forgotten: %w", err)
	}
	return nil
}

func TestASecretIsKeptReadAndForgotten(t *testing.T) {
	library.MockInit()
	if err := roundTrip(); err != nil {
		t.Error(err)
	}
}

// The same with a real secret service, in a session of its own: GNOME's keyring, where it is installed.
func TestASecretServiceOfADesktop(t *testing.T) {
	for _, program := range []string{"dbus-run-session", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "dbus-run-session", "--", "sh", "-c",
		`printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null && exec "$0"`, os.Args[0])
	cmd.Env = append(os.Environ(), insideSession+"=1", "HOME="+home, "XDG_DATA_HOME="+home, "XDG_RUNTIME_DIR="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Where there is no keyring the user is told what to do without.
func TestASessionWithoutAKeyring(t *testing.T) {
	library.MockInitWithError(errors.New("dial unix /run/user/1000/bus: connect: no such file or directory"))
	_, err := secrets.ReadFromKeyring("prod")
	for _, err := range []error{err, secrets.SaveToKeyring("prod", "secret"), secrets.DeleteFromKeyring("prod")} {
		if disdel.KindOf(err) != disdel.Unavailable || !strings.Contains(disdel.AsError(err).Hint, "leave --keyring out") ||
			strings.Contains(err.Error(), "secret") && strings.Contains(err.Error(), `"secret"`) {
			t.Errorf("%v", err)
		}
	}
}
