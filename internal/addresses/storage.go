package addresses

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/disdel/disdel"
)

// Where the SDK of S3 finds a region and credentials without asking anybody.
var (
	regionVariables     = []string{"AWS_REGION", "AWS_DEFAULT_REGION"}
	credentialVariables = []string{
		"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI",
	}
)

// metadataVariable is the SDK's own: it asks the machine's metadata service, which a laptop has none of and a foreign
// network may play, unless this is true. Here it is asked only where the user says false.
const metadataVariable = "AWS_EC2_METADATA_DISABLED"

// CheckStorage refuses an address of --storage that is none, that signs in, or that no bucket could be opened with.
func CheckStorage(address string) error {
	const hint = "write file:///folder or s3://bucket?region=REGION"
	u, err := url.Parse(address)
	switch {
	case address == "":
		return nil
	case err != nil || u.Scheme == "" || u.Scheme != "file" && hasStrayUser(u):
		return noURL(address, hint)
	case u.User != nil:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read address",
			Msg:  fmt.Sprintf("%q signs in, and a bucket takes credentials", disdel.Redacted(address)),
			Hint: "put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
		}
	case u.Scheme != "s3":
		return nil
	}
	asks := os.Getenv(metadataVariable) == "false"
	if !asks {
		os.Setenv(metadataVariable, "true") //nolint:errcheck // the name is well-formed
	}
	shared := sharedSettings()
	switch {
	case !asks && !shared && u.Query().Get("region") == "" && !anySet(regionVariables):
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "open bucket", Msg: "nothing says in which region " + u.Host + " is",
			Hint: fmt.Sprintf("--storage 's3://%s%s?region=REGION', or AWS_REGION", u.Host, u.Path),
		}
	case !asks && !shared && !anySet(credentialVariables) && u.Query().Get("anonymous") != "true":
		return &disdel.Error{
			Kind: disdel.Denied, Op: "open bucket", Msg: "there are no credentials for " + u.Host,
			Hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE; " + metadataVariable +
				"=false asks the machine's metadata service",
		}
	}
	return nil
}

func anySet(variables []string) bool {
	for _, name := range variables {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// sharedSettings says whether there are files that the SDK reads.
func sharedSettings() bool {
	dir, _ := os.UserHomeDir() // without one there are none
	for variable, name := range map[string]string{
		"AWS_CONFIG_FILE":             "config",
		"AWS_SHARED_CREDENTIALS_FILE": "credentials",
	} {
		path := os.Getenv(variable)
		if path == "" {
			path = filepath.Join(dir, ".aws", name)
		}
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}
