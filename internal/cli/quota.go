package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// QuotaFlags say what the jobs of a tenant may have together.
var QuotaFlags = []cli.Flag{
	&cli.IntFlag{Name: "jobs", Usage: "`NUMBER` of jobs that the tenant may run at once"},
	&cli.StringFlag{Name: "memory", Usage: "memory `SIZE` of all running jobs of the tenant"},
	&cli.StringFlag{Name: "disk", Usage: "disk `SIZE` of the tenant's data sets, models, weights and checkpoints"},
	&cli.Float64Flag{Name: "cost", Usage: "total cost of the tenant's jobs, in `GB-S`"},
}

// Quota is what QuotaFlags say, nil where they say nothing.
func Quota(c *cli.Context) (*scheduler.Quota, error) {
	if !c.IsSet("jobs") && !c.IsSet("memory") && !c.IsSet("disk") && !c.IsSet("cost") {
		return nil, nil
	}
	q := &scheduler.Quota{Jobs: c.Int("jobs"), Cost: c.Float64("cost")}
	for name, into := range map[string]*disdel.Bytes{"memory": &q.Memory, "disk": &q.Disk} {
		if text := c.String(name); text != "" {
			size, err := disdel.ParseBytes(text)
			if err != nil {
				return nil, err
			}
			*into = size
		}
	}
	for name, negative := range map[string]bool{"jobs": q.Jobs < 0, "memory": q.Memory < 0, "cost": !(q.Cost >= 0)} {
		if negative {
			return nil, &disdel.Error{Kind: disdel.Invalid, Msg: fmt.Sprintf("--%s must be at least 0", name)}
		}
	}
	return q, nil
}
