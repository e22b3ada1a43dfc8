package cli

import (
	"context"
	"errors"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/service"
)

// need is the parts of a service that a command works with. What flags and variables say of the others is not looked
// at.
type need uint8

const (
	storage need = 1 << iota
	records
	actions
	updates
	takingOver // the service continues with jobs that nobody has

	wholeJob = storage | records | actions | updates
)

// withService runs f with a service and closes it, whatever came of f.
func withService(c *cli.Context, u *ui, needs need, f func(ctx context.Context, s *service.Service) error) (err error) {
	cfg, err := config(c, u, needs)
	if err != nil {
		return err
	}
	s, err := service.Open(c.Context, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return f(c.Context, s)
}

// config is what flags and variables say.
func config(c *cli.Context, u *ui, needs need) (cfg service.Config, err error) {
	if cfg.Home, err = home(c); err != nil {
		return cfg, err
	}
	cfg.Log, cfg.Admission = newLog(c, u), c.String("admission")
	cfg.Place = RunsAt(c)
	cfg.TakeOver = needs&takingOver != 0
	for _, part := range []struct {
		need need
		read func() error
	}{
		{storage, func() error {
			cfg.Storage = c.String("storage")
			return addresses.CheckStorage(cfg.Storage)
		}},
		{records, func() (err error) {
			cfg.CouchDB, err = addresses.WithPassword(c.String("couchdb"), "DISDEL_COUCHDB_PASSWORD")
			return err
		}},
		{updates, func() error { return ReadRedis(c, &cfg) }},
		{actions, func() error { return readPlatform(c, &cfg) }},
	} {
		if needs&part.need == 0 {
			continue
		}
		if err := part.read(); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

// readPlatform takes what is said of OpenWhisk, or of the embedded one.
func readPlatform(c *cli.Context, cfg *service.Config) (err error) {
	if err := ReadPool(c, cfg); err != nil {
		return err
	}
	host := c.String("apihost")
	if host == "" {
		return readEmbedded(c, cfg)
	}
	if err := addresses.CheckAPIHost(host); err != nil {
		return err
	}
	cfg.OpenWhisk = service.OpenWhisk{Host: host, Image: c.String("image")}
	cfg.OpenWhisk.Key, err = local.Key(cfg.Home, local.OwnAddress(cfg.Home, host))
	return err
}

// readEmbedded takes what is said of a platform on this machine.
func readEmbedded(c *cli.Context, cfg *service.Config) (err error) {
	if name := c.String("action"); name != "" {
		if cfg.Program, err = service.FindProgram(name); err != nil {
			return err
		}
	}
	cfg.ActionTimeout = c.Duration("action-timeout")
	cfg.ActionMemory, err = disdel.ParseBytes(c.String("action-memory"))
	return err
}

// withClient runs f with what the command line says that commands are carried out by.
func withClient(c *cli.Context, u *ui, needs need, f func(ctx context.Context, at client.Client) error) error {
	at, err := Server(c)
	if err != nil {
		return err
	}
	if at != nil {
		remote, err := client.Remote(*at)
		if err != nil {
			return err
		}
		return f(c.Context, remote)
	}
	return withService(c, u, needs, func(ctx context.Context, s *service.Service) error {
		return f(ctx, client.Local(s))
	})
}

func newLog(c *cli.Context, u *ui) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(u.Err)
	log.AddHook(completing{u})
	log.SetLevel(logrus.WarnLevel)
	if c.Bool("verbose") {
		log.SetLevel(logrus.DebugLevel)
	}
	return log
}

// completing gives commands in messages of a log the flags of the place.
type completing struct{ u *ui }

// Levels is all of them.
func (completing) Levels() []logrus.Level { return logrus.AllLevels }

// Fire changes a message before it is written.
func (h completing) Fire(e *logrus.Entry) error {
	e.Message = h.u.Place.Complete(e.Message)
	return nil
}

// home is the folder that everything of this user lives in.
func home(c *cli.Context) (string, error) { return Home(c) }
