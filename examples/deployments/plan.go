package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
)

//go:embed plan.jsonl
var planFile []byte

// deployment is what travels with a job.
type deployment struct {
	ID          string `json:"id"`
	Service     string `json:"service"`
	Version     string `json:"version"`
	Commit      string `json:"commit"`
	Environment string `json:"environment"`
	Millis      int    `json:"millis"`          // how long it takes
	Flaky       int    `json:"flaky,omitempty"` // attempts that fail before one succeeds
	Needs       string `json:"needs,omitempty"` // what the environment must have
}

// name is what people call it.
func (d deployment) name() string { return d.Service + " " + d.Version }

// readPlan reads the first n deployments of the plan.
func readPlan(n int) (plan []deployment, err error) {
	lines := json.NewDecoder(bytes.NewReader(planFile))
	for lines.More() && len(plan) < n {
		var d deployment
		if err := lines.Decode(&d); err != nil {
			return nil, fmt.Errorf("line %d of the plan: %w", len(plan)+1, err)
		}
		plan = append(plan, d)
	}
	return plan, nil
}

// environments are those of a plan, in order.
func environments(plan []deployment) (names []string) {
	for _, d := range plan {
		if !slices.Contains(names, d.Environment) {
			names = append(names, d.Environment)
		}
	}
	slices.Sort(names)
	return names
}

// limits are how many deployments an environment takes at once; 1 where
// nothing is said.
var limits = map[string]int{"production": 2}

func limitOf(environment string) int { return max(limits[environment], 1) }
