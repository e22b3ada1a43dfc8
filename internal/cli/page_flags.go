package cli

import (
	"io"
	"os"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// CreatePage replaces the file: a page is made again as often as one likes.
func CreatePage(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err == nil {
		if err = write(f); err == nil {
			err = f.Close()
		} else {
			f.Close() // the first error counts
		}
	}
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "write report", Msg: name, Err: files.Plain(err),
			Hint: "name a file in a folder that is there",
		}
	}
	return nil
}
