package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
)

// askedFiles are the files and folders that a command line of `infer` names, as operands or with --input.
func askedFiles(c *cli.Context) []string {
	return append(terminal.NonEmpty(c.String("input")), c.Args().Tail()...)
}

// inferFiles classifies the rows of files, and of the files in folders. Faults of files are reported after the answers,
// all at once.
func inferFiles(ctx context.Context, u *ui, models client.Models, model string, named []string,
	how disdel.Continuation,
) error {
	list, faults := inputFiles(named)
	if len(named) == 1 && len(list) == 1 && list[0] == named[0] {
		return inferFile(ctx, u, models, model, named[0], how)
	}
	doc := render.FileAnswers{Files: []render.FileAnswer{}}
	for _, file := range list {
		text, err := readFile(u, file)
		if err == nil {
			err = takeAnswer(ctx, u, models, model, file, text, how, &doc)
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil || isBeyondFile(err) {
			return err
		}
		faults = append(faults, fileFault(file, err))
	}
	if len(doc.Files) > 0 {
		if err := u.Show(doc, func(w io.Writer) { render.PrintFileAnswers(w, doc) }); err != nil {
			return err
		}
	}
	if len(faults) > 0 {
		return &disdel.Faults{Faults: faults}
	}
	return nil
}

// takeAnswer asks a model about one file, and adds the answer.
func takeAnswer(ctx context.Context, u *ui, models client.Models, model, file string, text []byte,
	how disdel.Continuation, to *render.FileAnswers,
) error {
	answer, m, err := models.Answer(ctx, model, file, text, how)
	if err != nil {
		return err
	}
	if to.Model == "" {
		u.Say("model  %s", render.QualityText(&m))
	}
	for _, w := range answer.Warnings {
		u.Say("warning: %s: %s", file, w)
	}
	to.Model = answer.Model
	to.Files = append(to.Files, render.FileAnswer{File: file, Inference: answer})
	return nil
}

// inputFiles are the files that names stand for: themselves, or what a model can be asked about in a folder and below,
// in order of their names.
func inputFiles(names []string) (list []string, faults []disdel.Fault) {
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() {
			list = append(list, name) // reading a file says why it cannot be read
			continue
		}
		var inside []string
		err = filepath.WalkDir(name, func(path string, e fs.DirEntry, err error) error {
			ending := strings.ToLower(filepath.Ext(path))
			if err == nil && !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && slices.Contains(watchedEndings, ending) {
				inside = append(inside, path)
			}
			return err
		})
		if err != nil {
			faults = append(faults, fileFault(name, err))
		} else if len(inside) == 0 {
			faults = append(faults, disdel.Fault{
				Path: name, Msg: "the folder has no file that a model takes",
				Hint: "they end in " + strings.Join(watchedEndings, ", "),
			})
		}
		list = append(list, inside...)
	}
	return list, faults
}

// fileFault is an error of one file.
func fileFault(file string, err error) disdel.Fault {
	e := disdel.AsError(err)
	msg := e.Msg
	if e.Err != nil {
		msg = strings.TrimPrefix(fmt.Sprintf("%s: %v", msg, e.Err), ": ")
	}
	return disdel.Fault{Path: file, Msg: msg, Hint: e.Hint}
}
