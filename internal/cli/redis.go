package cli

import (
	"crypto/x509"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/service"
)

// ReadRedis takes the addresses of --redis, each with the password of the environment where it has none of its own.
func ReadRedis(c *cli.Context, cfg *service.Config) (err error) {
	cfg.RedisPrefix = c.String("redis-prefix")
	for address := range strings.SplitSeq(c.String("redis"), ",") {
		address, err := addresses.WithPassword(strings.TrimSpace(address), "DISDEL_REDIS_PASSWORD")
		if err != nil {
			return err
		}
		if address != "" {
			cfg.Redis = append(cfg.Redis, address)
		}
	}
	cfg.RedisAuthority, err = readAuthority(c.String("redis-ca"), cfg.Redis)
	return err
}

// readAuthority is the text of --redis-ca. It returns Invalid for a file that cannot be read or has no certificate, and
// where no address would make use of it.
func readAuthority(file string, servers []string) (string, error) {
	if file == "" {
		return "", nil
	}
	if !strings.Contains(strings.Join(servers, ","), "rediss://") {
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
