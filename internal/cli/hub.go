package cli

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/terminal"
)

var hubFlag = &cli.StringFlag{
	Name: "hub", EnvVars: []string{"HF_ENDPOINT"}, Usage: "`URL` of the hub, or a mirror, of hf:// addresses",
	DefaultText: "https://huggingface.co",
}

// fetched is a file or folder of a hub on this computer.
type fetched struct {
	path   string
	folder string // with nothing else; "": nothing was fetched
}

// done deletes what was fetched, after it was stored. What failed is kept, and a second try fetches only the rest.
func (f fetched) done() error {
	if f.folder == "" {
		return nil
	}
	return os.RemoveAll(f.folder)
}

// fetchFromHub fetches what an hf:// address names, and leaves other names as they are.
func fetchFromHub(ctx context.Context, c *cli.Context, u *ui, name string) (f fetched, err error) {
	if f.path = name; !export.IsHubRef(name) {
		return f, nil
	}
	ref, err := export.ParseHubRef(name)
	if err != nil {
		return f, err
	}
	dir, err := home(c)
	if err != nil {
		return f, err
	}
	hub := export.Hub{URL: c.String("hub"), Token: os.Getenv("HF_TOKEN"), Say: u.Say, Wait: time.Second}
	parent, commit := filepath.Join(dir, "hub"), ""
	if ref.Dataset {
		f.path, commit, err = hub.FetchData(ctx, ref, parent)
	} else {
		f.path, commit, err = hub.FetchModel(ctx, ref, parent)
	}
	if err != nil {
		return f, err
	}
	f.folder = filepath.Join(parent, export.HubFolder(ref))
	u.Say("note   %s is at commit %s; write @%.12s to name it", terminal.OneLine(ref.Repo), commit, commit)
	return f, nil
}
