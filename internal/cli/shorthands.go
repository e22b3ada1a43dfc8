package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
)

// shorthand is a flag that sets one field of the job file, as --set does.
type shorthand struct {
	flag, path string
}

// shorthands are the flags for fields that people change often.
var shorthands = []shorthand{
	{"name", "metadata.name"},
	{"epochs", "training.epochs"},
	{"rate", "training.optimizer.learningRate"},
	{"backend", "training.backend"},
	{"data", "data.source"},
	{"loss", "training.loss"},
}

var backendFlag = &cli.StringFlag{
	Name:  "backend",
	Usage: "training `ENGINE`: native, gorgonia, python or auto; short for --set training.backend=ENGINE",
}

// shorthandFlags are the flags of shorthands, for commands that run or plan a job.
var shorthandFlags = []cli.Flag{
	&cli.StringFlag{Name: "name", Usage: "`NAME` of the job; short for --set metadata.name=NAME"},
	&cli.IntFlag{Name: "epochs", Usage: "`NUMBER` of epochs; short for --set training.epochs=NUMBER"},
	&cli.Float64Flag{
		Name: "rate", Aliases: []string{"lr"}, Usage: "learning `RATE` of the file's optimiser, or of adam",
	},
	backendFlag,
}

// overrides are the fields that flags set, shorthands last. Texts are quoted, so that YAML takes them as words.
func overrides(c *cli.Context) []string {
	sets := c.StringSlice("set")
	for _, s := range shorthands {
		if value, isSet := s.value(c); isSet {
			sets = append(sets, s.path+"="+value)
		}
	}
	return sets
}

// value is what the command line gives the field, as YAML.
func (s shorthand) value(c *cli.Context) (text string, isSet bool) {
	if !c.IsSet(s.flag) {
		return "", false
	}
	value := c.Value(s.flag)
	if name, ok := value.(string); ok && s.flag == "data" && !strings.Contains(name, "://") {
		value = "dataset://" + name
	}
	if word, ok := value.(string); ok {
		return strconv.Quote(word), true
	}
	return fmt.Sprint(value), true
}

// checkShorthands returns Invalid if a shorthand and a --set give the same field.
func checkShorthands(c *cli.Context) error {
	for _, set := range c.StringSlice("set") {
		path, _, _ := strings.Cut(set, "=")
		for _, s := range shorthands {
			if c.IsSet(s.flag) && s.sets(path) {
				return &disdel.Error{
					Kind: disdel.Invalid, Msg: fmt.Sprintf("--%s and --set %s set the same field", s.flag, path),
					Hint: "give one of them",
				}
			}
		}
	}
	return nil
}

// sets tells whether a path of --set is the shorthand's field. A rate is that of any optimiser.
func (s shorthand) sets(path string) bool {
	parent, name := s.path[:strings.LastIndexByte(s.path, '.')], s.path[strings.LastIndexByte(s.path, '.'):]
	return path == s.path || s.flag == "rate" && strings.HasPrefix(path, parent+".") && strings.HasSuffix(path, name)
}
