package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
)

// valueKind is what an operand or the value of a flag names.
type valueKind int

const (
	otherValue valueKind = iota // such as a file
	jobValue
	datasetValue
	recipeValue // a data set that disdel can fetch
	modelValue
	versionValue // of a model: NAME:vN
	networkValue // a network of disdel, or a model
	contextValue
	fieldValue    // PATH of explain
	settingValue  // PATH= of --set
	columnValue   // of jobs
	statusValue   // of jobs
	formatValue   // of -o
	shellValue    // of completion
	prunableValue // of prune
)

// flagKinds are the kinds of the values of flags.
var flagKinds = map[string]valueKind{
	"dataset": datasetValue, "model": networkValue, "context": contextValue, "set": settingValue, "columns": columnValue,
	"sort": columnValue, "status": statusValue, "output": formatValue,
}

func kindOfFlag(name string) valueKind { return flagKinds[name] }

// operandKinds are the kinds of operands: by the command and the first word of its operands, or by that word only.
var operandKinds = map[string]valueKind{
	"JOB": jobValue, "MODEL": modelValue, "NAME:vN": versionValue, "PATH": fieldValue, "KIND": prunableValue,
	"bash|zsh|fish|powershell": shellValue,
	"dataset add NAME":         recipeValue, "dataset show NAME": datasetValue, "dataset sample NAME": datasetValue,
	"dataset remove NAME": datasetValue, "model show NAME": networkValue, "model export NAME": modelValue,
	"context use NAME": contextValue, "context remove NAME": contextValue,
}

// kindOfOperand is the kind of the operands of a command.
func kindOfOperand(c document) valueKind {
	word, _, _ := strings.Cut(c.Operands, " ")
	word = strings.TrimSuffix(strings.Trim(word, "[]"), "...")
	word = strings.TrimSuffix(word, "]")
	_, path, _ := strings.Cut(c.Name, " ")
	return cmp.Or(operandKinds[path+" "+word], operandKinds[word])
}

// completionTime bounds how long a completion asks a server.
const completionTime = 3 * time.Second

// completedJobs is how many of the newest jobs completion knows.
const completedJobs = 50

// valuesHere lists the values of a kind at the place that the flags among the words choose. It lists none if that place
// does not answer.
func valuesHere(c *cli.Context, u *ui, words []string, kind valueKind) (out []candidate) {
	add := func(word, meaning string) { out = append(out, candidate{word, meaning}) }
	switch kind {
	case fieldValue:
		jobfile.SettableFields(add)
	case settingValue:
		jobfile.SettableFields(func(path, meaning string) { add(path+"=", meaning) })
	case columnValue:
		addAll(add, render.JobColumns())
	case statusValue:
		addAll(add, jobStates)
	case formatValue:
		addAll(add, []string{"table", "wide", "json", "jsonl", "yaml", "name"})
	case shellValue:
		addAll(add, shells)
	case recipeValue:
		addAll(add, dataset.Known())
	case prunableValue:
		addAll(add, strings.Split(kindNames(prunable), ", "))
	case contextValue:
		usePlaceOf(c, u, words)
		addContexts(c, add)
	case jobValue, datasetValue, modelValue, versionValue, networkValue:
		usePlaceOf(c, u, words)
		ctx, stop := context.WithTimeout(c.Context, completionTime)
		defer stop()
		c.Context = ctx
		withClient(c, u, storage|records, func(ctx context.Context, at client.Client) error { //nolint:errcheck // it has none
			addStored(ctx, at, kind, add)
			return nil
		})
	}
	return out
}

func addAll(add func(word, meaning string), words []string) {
	for _, word := range words {
		add(word, "")
	}
}

// usePlaceOf sets the global flags that a command line to be completed has.
func usePlaceOf(c *cli.Context, u *ui, words []string) {
	flags := splitArgs(c.App, append([]string{c.App.Name}, words...)).Globals
	for i := 0; i < len(flags); i++ {
		name, value, inline := strings.Cut(strings.TrimLeft(flags[i], "-"), "=")
		if takes := flagTable(c.App.Flags)[name]; takes && !inline && i+1 < len(flags) {
			i++
			value = flags[i]
		}
		if name != "output" && name != "o" && name != "jq" && value != "" {
			c.Set(name, value) //nolint:errcheck // a wrong value completes nothing
		}
	}
	if folder, err := homeFolder(c); err == nil {
		enterContext(c, u, folder) //nolint:errcheck // the same
	}
}

func addContexts(c *cli.Context, add func(word, meaning string)) {
	folder, err := homeFolder(c)
	if err != nil {
		return
	}
	known, err := client.ReadContexts(folder)
	if err != nil {
		return
	}
	for _, one := range known.List {
		add(one.Name, one.Server)
	}
	add(client.InProcess, "no server and no cluster")
}

// addStored adds jobs, data sets or models. What cannot be read is left out.
func addStored(ctx context.Context, at client.Client, kind valueKind, add func(word, meaning string)) {
	switch kind {
	case jobValue:
		add("@last", "the newest job")
		list, _ := at.Records.List(ctx, history.Query{Limit: completedJobs})
		for i := range list {
			add(list[i].Job.Metadata.Name, "the newest job of this name: "+list[i].Status.String())
		}
		for i := range list {
			r := &list[i]
			add(string(r.ID), fmt.Sprintf("%s, %s, %s ago", r.Job.Metadata.Name, r.Status,
				render.AgeText(time.Since(r.Created))))
		}
	case datasetValue:
		list, _ := at.Data.List(ctx)
		for i := range list {
			add(list[i].Name, list[i].Title)
		}
	default:
		if kind == networkValue {
			networks, _ := render.Networks()
			for i := range networks {
				add(networks[i].Name, networks[i].Title)
			}
		}
		list, _ := at.Models.List(ctx)
		for i := range list {
			if m := &list[i]; kind != versionValue {
				add(m.Name, "the newest version that learned")
			}
		}
		for i := range list {
			add(list[i].Ref(), list[i].Data.Name)
		}
	}
}
