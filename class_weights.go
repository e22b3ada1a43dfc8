package disdel

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ClassWeights says how much the rows of each class count in the loss of a training step: BalancedWeights, or a text
// like "cat=2,dog=0.5". "#3" names the class with number 3. Classes that the text does not name have the weight 1. With
// "" all weights are 1.
type ClassWeights string

// BalancedWeights gives all classes the same sum of weights: rows / (classes x rows of the class).
const BalancedWeights ClassWeights = "balanced"

// Limits of class weights.
const (
	mostWeightedClasses = 1000 // the weights are in a job's record and in each request
	largestClassWeight  = 1e6
)

// classWeight is a part of a text of ClassWeights.
type classWeight struct {
	name   string
	weight float64
}

// parts reads the text. It returns one error for all faults.
func (w ClassWeights) parts() (out []classWeight, err error) {
	if w == "" || w == BalancedWeights {
		return nil, nil
	}
	var wrong []string
	seen := map[string]bool{}
	for part := range strings.SplitSeq(string(w), ",") {
		at := strings.LastIndexByte(part, '=')
		if at < 1 {
			wrong = append(wrong, fmt.Sprintf("%.40q gives no class a weight", part))
			continue
		}
		name := strings.TrimSpace(part[:at])
		weight, err := strconv.ParseFloat(strings.TrimSpace(part[at+1:]), 64)
		switch {
		case err != nil || !(weight > 0 && weight <= largestClassWeight):
			wrong = append(wrong, fmt.Sprintf("the weight of %.40q is %.40q, not a number above 0 and up to %.0f", name,
				part[at+1:], largestClassWeight))
		case seen[name]:
			wrong = append(wrong, fmt.Sprintf("%.40q has two weights", name))
		}
		seen[name] = true
		out = append(out, classWeight{name, weight})
	}
	return out, joined(wrong)
}

// joined is an error of all texts, nil without any.
func joined(texts []string) error {
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

// Check returns one error for all faults of the text. It does not know the classes.
func (w ClassWeights) Check() error {
	_, err := w.parts()
	return err
}

// For returns the same weights with one for each class, in the order of the classes. rows are the training rows of each
// class, and names are the names of the classes, if they have any. It returns an error that lists all unknown names.
func (w ClassWeights) For(names []string, rows []int) (ClassWeights, error) {
	parts, err := w.parts()
	if err != nil || w == "" {
		return "", err
	}
	if len(rows) > mostWeightedClasses {
		return "", fmt.Errorf("there are %d classes, and at most %d can have weights", len(rows), mostWeightedClasses)
	}
	weights := make([]float64, len(rows))
	all := 0
	for _, n := range rows {
		all += n
	}
	for k, n := range rows {
		if weights[k] = 1; w == BalancedWeights && n > 0 {
			weights[k] = float64(all) / (float64(len(rows)) * float64(n))
		}
	}
	var wrong []string
	given := map[int]bool{}
	for _, p := range parts {
		k := classNumber(p.name, names, len(rows))
		switch {
		case k < 0:
			wrong = append(wrong, fmt.Sprintf("there is no class %.40q", p.name))
			continue
		case given[k]:
			wrong = append(wrong, fmt.Sprintf("%.40q names a class that has a weight already", p.name))
		}
		given[k], weights[k] = true, p.weight
	}
	texts := make([]string, len(rows))
	for k, v := range weights {
		texts[k] = fmt.Sprintf("%s=%s", classKey(k, names), strconv.FormatFloat(v, 'g', -1, 32))
	}
	return ClassWeights(strings.Join(texts, ",")), joined(wrong)
}

// classNumber finds a class by # and its number, by its name, or by its number if no class has a name. -1 is none.
func classNumber(text string, names []string, classes int) int {
	digits, marked := strings.CutPrefix(text, "#")
	if !marked && len(names) > 0 {
		return slices.Index(names, text)
	}
	if k, err := strconv.Atoi(digits); err == nil && k >= 0 && k < classes {
		return k
	}
	return -1
}

// classKey names a class in a text of ClassWeights.
func classKey(k int, names []string) string {
	switch {
	case len(names) == 0:
		return strconv.Itoa(k)
	case k >= len(names) || names[k] == "" || names[k][0] == '#' || strings.ContainsAny(names[k], ",=") ||
		strings.TrimSpace(names[k]) != names[k]:
		return "#" + strconv.Itoa(k)
	default:
		return names[k]
	}
}

// Values returns the weights of a result of For, by class; nil for "". The loss of each row counts by the weight of its
// class, and the sum is divided by the sum of the weights of the batch.
func (w ClassWeights) Values() (out []float32) {
	parts, _ := w.parts() // For has written the text
	for _, p := range parts {
		out = append(out, float32(p.weight))
	}
	return out
}
