module github.com/disdel/disdel/platform/clients/wskdeploy

go 1.26.0

tool github.com/apache/openwhisk-wskdeploy

require (
	github.com/apache/openwhisk-client-go v0.0.0-20220811044404-a6921af2f086 // indirect
	github.com/apache/openwhisk-wskdeploy v0.0.0-20241212232442-16acc805fe2c // indirect
	github.com/cloudfoundry/jibber_jabber v0.0.0-20151120183258-bcc4c8345a21 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/fatih/color v1.10.0 // indirect
	github.com/ghodss/yaml v1.0.1-0.20190212211648-25d852aebe32 // indirect
	github.com/google/go-querystring v1.0.0 // indirect
	github.com/hokaccha/go-prettyjson v0.0.0-20210113012101-fb4e108d2519 // indirect
	github.com/inconshreveable/mousetrap v1.0.0 // indirect
	github.com/mattn/go-colorable v0.1.8 // indirect
	github.com/mattn/go-isatty v0.0.12 // indirect
	github.com/nicksnyder/go-i18n v1.10.1 // indirect
	github.com/pelletier/go-toml v1.8.1 // indirect
	github.com/spf13/cobra v1.1.3 // indirect
	github.com/spf13/pflag v1.0.5 // indirect
	golang.org/x/sys v0.0.0-20210304203436-1243437a8ec7 // indirect
	gopkg.in/yaml.v2 v2.4.0 // indirect
)
