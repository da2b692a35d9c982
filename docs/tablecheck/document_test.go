package tablecheck

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A table is what a template says of a table, as far as the library cares.
type table struct {
	Name      string
	Partition key
	Sort      key // its name is empty where there is none
	Billing   string
	TTL       string // the attribute, "" if TTL is off
	PITR      bool
	Protected bool
}

type key struct{ Name, Type string }

// A document is docs/tables.md with the templates beside it, taken apart.
type document struct {
	cloudFormation, terraform, policy string
	schemas                           map[string]table // of the Markdown table: keys alone
}

func readDocument(t *testing.T) string {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	document := read("../tables.md")
	for _, part := range []struct{ language, file string }{
		{"yaml", "cloudformation.yaml"}, {"hcl", "tables.tf"}, {"json", "policy.json"},
	} {
		document += "\n```" + part.language + "\n" + read("../tables/"+part.file) + "```\n"
	}
	return document
}

func takeApart(text string) (d document, err error) {
	for _, part := range []struct {
		language string
		to       *string
	}{{"yaml", &d.cloudFormation}, {"hcl", &d.terraform}, {"json", &d.policy}} {
		fence := regexp.MustCompile("(?ms)^```" + part.language + "\n(.*?)^```$")
		found := fence.FindAllStringSubmatch(text, -1)
		if len(found) != 1 {
			return d, fmt.Errorf("%d fences of %s, one is expected", len(found), part.language)
		}
		*part.to = found[0][1]
	}
	d.schemas = schemas(text)
	return d, nil
}

// schemas reads the rows of the Markdown table, for example
//
//	| `semaphore` | what for | `pk` (S) | `sk` (S) |
func schemas(text string) map[string]table {
	all := map[string]table{}
	attribute := regexp.MustCompile("`(\\w+)` \\(([SNB])\\)")
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|([^|]*)\\|([^|]*)\\|([^|]*)\\|$")
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		var keys [2]key
		for i, cell := range m[3:] {
			if a := attribute.FindStringSubmatch(cell); a != nil {
				keys[i] = key{a[1], a[2]}
			} else if !strings.Contains(cell, "none") {
				keys[i] = key{Name: "unreadable: " + cell}
			}
		}
		all[m[1]] = table{Name: m[1], Partition: keys[0], Sort: keys[1]}
	}
	return all
}

var names = []string{"items", "mail", "mutex", "once", "semaphore", "ticket"}

// checkDocument compares what the Markdown table, the two templates and the
// policy say, and returns the tables.
func checkDocument(text string) (map[string]table, error) {
	d, err := takeApart(text)
	if err != nil {
		return nil, err
	}
	cfn, err := parseCloudFormation(d.cloudFormation)
	if err != nil {
		return nil, fmt.Errorf("CloudFormation: %w", err)
	}
	tf, err := parseTerraform(d.terraform)
	if err != nil {
		return nil, fmt.Errorf("terraform: %w", err)
	}
	for source, tables := range map[string]map[string]table{"the Markdown table": d.schemas, "CloudFormation": cfn, "Terraform": tf} {
		if got := sorted(tables); !slices.Equal(got, names) {
			return nil, fmt.Errorf("%s has the tables %v, not %v", source, got, names)
		}
	}
	for _, name := range names {
		want := d.schemas[name]
		want.Billing, want.TTL, want.PITR, want.Protected = "PAY_PER_REQUEST", "expiresAt", true, true
		if cfn[name] != want {
			return nil, fmt.Errorf("CloudFormation: table %s is %+v, not %+v", name, cfn[name], want)
		}
		if tf[name] != want {
			return nil, fmt.Errorf("terraform: table %s is %+v, not %+v", name, tf[name], want)
		}
	}
	if err := checkPolicy(d.policy); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return cfn, nil
}

func sorted[V any](m map[string]V) []string {
	var all []string
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestTemplatesAgree(t *testing.T) {
	if _, err := checkDocument(readDocument(t)); err != nil {
		t.Error(err)
	}
}
