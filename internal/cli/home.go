package cli

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
)

// HomeFolder is where everything of this user lives, whether or not it is there.
func HomeFolder(c *cli.Context) (string, error) {
	dir := c.String("home")
	if dir == "" {
		if dir = os.Getenv("XDG_DATA_HOME"); dir != "" {
			dir = filepath.Join(dir, "disdel")
		}
	}
	if dir == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", &disdel.Error{
				Kind: disdel.Invalid, Op: "find the home folder", Err: err,
				Hint: "name a folder with --home",
			}
		}
		dir = filepath.Join(user, ".local", "share", "disdel")
	}
	return filepath.Abs(dir)
}

// Home is the folder that everything of this user lives in. It is made if it is missing.
func Home(c *cli.Context) (string, error) {
	dir, err := HomeFolder(c)
	var said *disdel.Error
	if errors.As(err, &said) {
		return "", err
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", &disdel.Error{
			Kind: disdel.Invalid, Op: "make the home folder", Err: err,
			Hint: "name a folder you can write to with --home",
		}
	}
	return dir, nil
}
