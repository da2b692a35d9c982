package tablecheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A template is the part of a CloudFormation template that is used here.
// Anything else in it is an error.
type template struct {
	AWSTemplateFormatVersion string
	Description              string
	Parameters               map[string]struct {
		Type          string
		Default       string
		AllowedValues []string
	}
	Resources map[string]struct {
		Type       string
		Properties cfnTable
	}
	Outputs map[string]struct{ Value string }
}

type cfnTable struct {
	TableName               string
	BillingMode             string
	AttributeDefinitions    []struct{ AttributeName, AttributeType string }
	KeySchema               []struct{ AttributeName, KeyType string }
	TimeToLiveSpecification struct {
		AttributeName string
		Enabled       bool
	}
	PointInTimeRecoverySpecification struct{ PointInTimeRecoveryEnabled bool }
	DeletionProtectionEnabled        string // "true" or "false": it comes from a parameter
}

func parseCloudFormation(text string) (map[string]table, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return nil, err
	}
	refs, err := references(&root)
	if err != nil {
		return nil, err
	}
	plain, err := resolve(root.Content[0], refs)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(plain)
	if err != nil {
		return nil, err
	}
	var tpl template
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&tpl); err != nil {
		return nil, err
	}
	tables := map[string]table{}
	for id, r := range tpl.Resources {
		if r.Type != "AWS::DynamoDB::Table" {
			return nil, fmt.Errorf("resource %s has the type %s", id, r.Type)
		}
		tab, err := r.Properties.table()
		if err != nil {
			return nil, fmt.Errorf("resource %s: %w", id, err)
		}
		if _, ok := tpl.Outputs[id+"Arn"]; !ok {
			return nil, fmt.Errorf("resource %s has no output %sArn", id, id)
		}
		tables[tab.Name] = tab
	}
	return tables, nil
}

func (c cfnTable) table() (table, error) {
	t := table{Name: c.TableName, Billing: c.BillingMode, PITR: c.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled}
	if c.TimeToLiveSpecification.Enabled {
		t.TTL = c.TimeToLiveSpecification.AttributeName
	}
	t.Protected = c.DeletionProtectionEnabled == "true"
	kinds := map[string]string{}
	for _, a := range c.AttributeDefinitions {
		kinds[a.AttributeName] = a.AttributeType
	}
	for _, k := range c.KeySchema {
		attribute := key{k.AttributeName, kinds[k.AttributeName]}
		delete(kinds, k.AttributeName)
		switch k.KeyType {
		case "HASH":
			t.Partition = attribute
		case "RANGE":
			t.Sort = attribute
		default:
			return t, fmt.Errorf("key type %q", k.KeyType)
		}
	}
	if len(kinds) > 0 {
		return t, fmt.Errorf("attributes that are no keys: %v", sorted(kinds))
	}
	return t, nil
}

// references are the values of !Ref and !GetAtt with default parameters.
func references(root *yaml.Node) (map[string]string, error) {
	var ids struct {
		Parameters map[string]struct {
			Default string `yaml:"Default"`
		} `yaml:"Parameters"`
		Resources map[string]yaml.Node `yaml:"Resources"`
	}
	if err := root.Decode(&ids); err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for id, p := range ids.Parameters {
		refs["!Ref "+id] = p.Default
	}
	for id := range ids.Resources {
		refs["!Ref "+id] = id
		refs["!GetAtt "+id+".Arn"] = "arn:" + id
	}
	return refs, nil
}

// resolve turns a node into what it stands for. Tags that it does not know,
// dangling references and repeated names are errors.
func resolve(n *yaml.Node, refs map[string]string) (any, error) {
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		value, ok := refs[n.Tag+" "+n.Value]
		if !ok {
			return nil, fmt.Errorf("line %d: %s %s names nothing", n.Line, n.Tag, n.Value)
		}
		return value, nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if _, ok := m[name]; ok {
				return nil, fmt.Errorf("line %d: %s is there twice", n.Content[i].Line, name)
			}
			value, err := resolve(n.Content[i+1], refs)
			if err != nil {
				return nil, err
			}
			m[name] = value
		}
		return m, nil
	case yaml.SequenceNode:
		var all []any
		for _, c := range n.Content {
			value, err := resolve(c, refs)
			if err != nil {
				return nil, err
			}
			all = append(all, value)
		}
		return all, nil
	case yaml.ScalarNode:
		var value any
		err := n.Decode(&value)
		return value, err
	}
	return nil, fmt.Errorf("line %d: only mappings, lists and scalars are expected", n.Line)
}
