package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/files"
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
	takeOverJobs // the service continues with jobs that nobody has

	allParts = storage | records | actions | updates
)

// withService calls f with a service, and closes it afterwards.
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

// config reads the service's configuration from flags and the environment.
func config(c *cli.Context, u *ui, needs need) (cfg service.Config, err error) {
	if cfg.Home, err = home(c); err != nil {
		return cfg, err
	}
	cfg.Log, cfg.Admission = newLog(c, u), c.String("admission")
	cfg.Place, cfg.Settings = runsAt(c), settingsOf(c)
	cfg.TakeOver = needs&takeOverJobs != 0
	cfg.PackageIndex = c.String("package-index")
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
		{updates, func() error { return readRedis(c, &cfg) }},
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

// readPlatform reads the flags of OpenWhisk, or of the embedded platform.
func readPlatform(c *cli.Context, cfg *service.Config) (err error) {
	if err := readPool(c, cfg); err != nil {
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

// readEmbedded reads the flags of the embedded platform.
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

// withClient calls f with the client that the command line chose: a server, or a service in this process.
func withClient(c *cli.Context, u *ui, needs need, f func(ctx context.Context, at client.Client) error) error {
	at, err := serverOf(c)
	if err != nil {
		return err
	}
	if at != nil {
		remote, err := client.Remote(*at)
		if err != nil {
			return err
		}
		return f(c.Context, remote.WithPrograms(programs(c)))
	}
	return withService(c, u, needs, func(ctx context.Context, s *service.Service) error {
		return f(ctx, client.Local(s).WithPrograms(programs(c)))
	})
}

// withOwnHome is withService for commands about the home itself. It returns Invalid if a server or its context was
// chosen: such a command would act on this machine's home, and its user means the server's.
func withOwnHome(c *cli.Context, u *ui, needs need, f func(ctx context.Context, s *service.Service) error) error {
	at, err := serverOf(c)
	if err != nil {
		return err
	}
	if at != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: c.Command.HelpName,
			Msg: "it works on the machine whose home it is, and " + disdel.Redacted(at.URL) + " is chosen",
			Hint: "run it on the server's machine; for the home of this machine: disdel --context " + client.InProcess +
				strings.TrimPrefix(c.Command.HelpName, c.App.Name),
		}
	}
	return withService(c, u, needs, f)
}

// settingsOf lists the settings of a command that serves: where it works, and the flags of its own. No value has a
// password.
func settingsOf(c *cli.Context) (out []service.Setting) {
	if c.Command == nil || c.Command.Name != "serve" && c.Command.Name != "ui" {
		return nil
	}
	name, ofContext := contextValues(c)
	for _, f := range slices.Concat(c.App.Flags, c.Command.Flags) {
		flag, known := f.(cli.DocGenerationFlag)
		if !known || slices.Contains(c.App.Flags, f) && !addresses.IsPlaceFlag(f.Names()[0]) || f.Names()[0] == "help" {
			continue
		}
		value := fmt.Sprint(c.Value(f.Names()[0]))
		if list := c.StringSlice(f.Names()[0]); list != nil {
			value = strings.Join(list, ",")
		}
		one := service.Setting{
			Name: f.Names()[0], Value: withoutSecrets(value), Meaning: strings.ReplaceAll(flag.GetUsage(), "`", ""),
		}
		one.Source = sourceOf(c, flag, value)
		if !f.IsSet() && value != "" && ofContext[one.Name] == value {
			one.Source = "context " + name
		}
		out = append(out, one)
	}
	return out
}

// sourceOf tells where a flag's value comes from. A context sets flags as the command line does.
func sourceOf(c *cli.Context, f cli.DocGenerationFlag, value string) string {
	variables := f.GetEnvVars()
	switch {
	case f.IsSet() && len(variables) > 0 && sameValue(value, os.Getenv(variables[0])):
		return "variable " + variables[0]
	case c.IsSet(f.Names()[0]):
		return "command line"
	default:
		return "default"
	}
}

// withoutSecrets is a value without users and passwords of addresses.
func withoutSecrets(value string) string {
	if !strings.ContainsAny(value, "@/") {
		return value
	}
	parts := strings.Split(value, ",")
	for i, part := range parts {
		if strings.Contains(part, "://") || strings.Contains(part, "@") {
			parts[i] = disdel.Redacted(part)
		}
	}
	return strings.Join(parts, ",")
}

// sameValue tells whether two texts are the same value: 5m and 5m0s are.
func sameValue(a, b string) bool {
	x, err := time.ParseDuration(a)
	y, err2 := time.ParseDuration(b)
	return a == b || err == nil && err2 == nil && x == y
}

// contextValues are the name of the chosen context and the values that it gives to flags.
func contextValues(c *cli.Context) (name string, values map[string]string) {
	folder, err := homeFolder(c)
	if err != nil {
		return "", nil
	}
	name, at, err := client.ChooseCluster(client.Chosen{
		Home: folder, Server: c.String("server"), Context: c.String("context"),
	})
	if err != nil || at == nil {
		return "", nil
	}
	values = map[string]string{}
	for _, s := range at.Settings() {
		if s.Flag != "" {
			values[s.Flag] = s.Value
		}
	}
	return name, values
}

func newLog(c *cli.Context, u *ui) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(u.Err)
	log.AddHook(logHook{u})
	log.SetLevel(logrus.WarnLevel)
	if c.Bool("verbose") {
		log.SetLevel(logrus.DebugLevel)
	}
	return log
}

// logHook adds the flags of the place to commands in log messages.
type logHook struct{ u *ui }

// Levels is all of them.
func (logHook) Levels() []logrus.Level { return logrus.AllLevels }

// Fire changes a message before it is written.
func (h logHook) Fire(e *logrus.Entry) error {
	e.Message = h.u.Place.Complete(e.Message)
	return nil
}

// homeFolder is the home folder of this user. It may not exist yet.
func homeFolder(c *cli.Context) (string, error) {
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

// home is the home folder of this user. home creates it if it is missing.
func home(c *cli.Context) (string, error) {
	dir, err := homeFolder(c)
	var fault *disdel.Error
	if errors.As(err, &fault) {
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

// poolFlags describe the container pool of a platform.
func poolFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "pool-memory", EnvVars: []string{"DISDEL_POOL_MEMORY"},
			Usage: "memory `SIZE` of the container pool (default on the embedded platform: 3/4 of the free memory)",
		},
		&cli.IntFlag{
			Name: "gpus", EnvVars: []string{"DISDEL_GPUS"},
			Usage: "`NUMBER` of GPUs for train actions", DefaultText: "on the embedded platform, all of this machine",
		},
		&cli.StringFlag{
			Name: "gpu-memory", EnvVars: []string{"DISDEL_GPU_MEMORY"},
			Usage: "memory `SIZE` of each GPU for actions",
		},
	}
}

// readPool reads poolFlags. It returns Invalid for GPUs without memory, and for memory without GPUs.
func readPool(c *cli.Context, cfg *service.Config) (err error) {
	if text := c.String("pool-memory"); text != "" {
		if cfg.Pool, err = disdel.ParseBytes(text); err != nil {
			return err
		}
	}
	cfg.GPUs.Count = c.Int("gpus")
	text := c.String("gpu-memory")
	if cfg.GPUs.Count < 0 || (cfg.GPUs.Count == 0) != (text == "") {
		return &disdel.Error{
			Kind: disdel.Invalid, Msg: "--gpus and --gpu-memory go together, and at least one GPU is one",
			Hint: "--gpus 2 --gpu-memory 16GB",
		}
	}
	if text != "" {
		cfg.GPUs.Memory, err = disdel.ParseBytes(text)
	}
	return err
}

// readRedis reads the addresses of --redis. Each address without a password gets the one from the environment.
func readRedis(c *cli.Context, cfg *service.Config) (err error) {
	cfg.RedisPrefix = c.String("redis-prefix")
	for _, address := range addresses.RedisServers(c.String("redis")) {
		if address, err = addresses.WithPassword(address, "DISDEL_REDIS_PASSWORD"); err != nil {
			return err
		}
		cfg.Redis = append(cfg.Redis, address)
	}
	cfg.RedisAuthority, err = readAuthority(c.String("redis-ca"), cfg.Redis)
	return err
}

// readAuthority reads the file of --redis-ca. It returns Invalid for a file without a certificate, and if no address
// uses TLS.
func readAuthority(file string, servers []string) (string, error) {
	if file == "" {
		return "", nil
	}
	if !strings.Contains(strings.Join(servers, ","), "rediss") {
		return "", &disdel.Error{
			Kind: disdel.Invalid, Msg: "--redis-ca is for servers that speak TLS",
			Hint: "name them with --redis rediss://HOST:PORT/0",
		}
	}
	text, err := files.Read(file)
	if err != nil {
		return "", err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		return "", &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + file, Msg: "it has no certificate in PEM",
			Hint: "name the file of the authority that signed the server's certificate; it begins with -----BEGIN " +
				"CERTIFICATE-----",
		}
	}
	return string(text), nil
}
