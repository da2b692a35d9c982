package tablecheck

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A configuration is the part of Terraform's language that is used here.
// Anything else is an error, in blocks as well.
type configuration struct {
	Terraform struct {
		RequiredVersion   string `hcl:"required_version"`
		RequiredProviders struct {
			AWS struct {
				Source  string `cty:"source"`
				Version string `cty:"version"`
			} `hcl:"aws"`
		} `hcl:"required_providers,block"`
	} `hcl:"terraform,block"`
	Variables []struct {
		Name    string         `hcl:"name,label"`
		Type    hcl.Expression `hcl:"type"`
		Default cty.Value      `hcl:"default"`
	} `hcl:"variable,block"`
	Resources []struct {
		Type string   `hcl:"type,label"`
		Name string   `hcl:"name,label"`
		Body hcl.Body `hcl:",remain"`
	} `hcl:"resource,block"`
	Outputs []struct {
		Name  string         `hcl:"name,label"`
		Value hcl.Expression `hcl:"value"`
	} `hcl:"output,block"`
}

// tfTable has the arguments of aws_dynamodb_table that the file uses.
type tfTable struct {
	Name        string  `hcl:"name"`
	BillingMode string  `hcl:"billing_mode"`
	HashKey     string  `hcl:"hash_key"`
	RangeKey    *string `hcl:"range_key"`
	Protected   bool    `hcl:"deletion_protection_enabled"`
	Attributes  []struct {
		Name string `hcl:"name"`
		Type string `hcl:"type"`
	} `hcl:"attribute,block"`
	TTL struct {
		Attribute string `hcl:"attribute_name"`
		Enabled   bool   `hcl:"enabled"`
	} `hcl:"ttl,block"`
	PITR struct {
		Enabled bool `hcl:"enabled"`
	} `hcl:"point_in_time_recovery,block"`
}

func parseTerraform(text string) (map[string]table, error) {
	if formatted := hclwrite.Format([]byte(text)); string(formatted) != text {
		return nil, fmt.Errorf("not formatted as terraform fmt does")
	}
	file, diags := hclparse.NewParser().ParseHCL([]byte(text), "tables.tf")
	if diags.HasErrors() {
		return nil, all(diags)
	}
	var cfg configuration
	if diags := gohcl.DecodeBody(file.Body, nil, &cfg); diags.HasErrors() {
		return nil, all(diags)
	}
	vars := map[string]cty.Value{}
	for _, v := range cfg.Variables {
		kind, defaults, diags := typeexpr.TypeConstraintWithDefaults(v.Type)
		if diags.HasErrors() {
			return nil, all(diags)
		}
		value := v.Default
		if defaults != nil {
			value = defaults.Apply(value)
		}
		value, err := convert.Convert(value, kind)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", v.Name, err)
		}
		vars[v.Name] = value
	}
	scope := &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(vars)}}

	tables := map[string]table{}
	made := map[string]cty.Value{}
	for _, r := range cfg.Resources {
		if r.Type != "aws_dynamodb_table" {
			return nil, fmt.Errorf("resource %s has the type %s", r.Name, r.Type)
		}
		if _, ok := made[r.Name]; ok {
			return nil, fmt.Errorf("resource %s is there twice", r.Name)
		}
		var t tfTable
		if diags := gohcl.DecodeBody(r.Body, scope, &t); diags.HasErrors() {
			return nil, all(diags)
		}
		tab, err := t.table()
		if err != nil {
			return nil, fmt.Errorf("resource %s: %w", r.Name, err)
		}
		tables[tab.Name] = tab
		made[r.Name] = cty.ObjectVal(map[string]cty.Value{"arn": cty.StringVal("arn:" + r.Name)})
	}
	scope.Variables["aws_dynamodb_table"] = cty.ObjectVal(made)
	for _, o := range cfg.Outputs {
		value, diags := o.Value.Value(scope)
		if diags.HasErrors() {
			return nil, all(diags)
		}
		if value.LengthInt() != len(made) {
			return nil, fmt.Errorf("output %s has %d values for %d tables", o.Name, value.LengthInt(), len(made))
		}
	}
	return tables, nil
}

// all is every diagnostic; as an error they show the first alone.
func all(diags hcl.Diagnostics) error { return errors.Join(diags.Errs()...) }

func (c tfTable) table() (table, error) {
	t := table{Name: c.Name, Billing: c.BillingMode, PITR: c.PITR.Enabled, Protected: c.Protected}
	if c.TTL.Enabled {
		t.TTL = c.TTL.Attribute
	}
	kinds := map[string]string{}
	for _, a := range c.Attributes {
		kinds[a.Name] = a.Type
	}
	t.Partition = key{c.HashKey, kinds[c.HashKey]}
	delete(kinds, c.HashKey)
	if c.RangeKey != nil {
		t.Sort = key{*c.RangeKey, kinds[*c.RangeKey]}
		delete(kinds, *c.RangeKey)
	}
	if len(kinds) > 0 {
		return t, fmt.Errorf("attributes that are no keys: %v", sorted(kinds))
	}
	return t, nil
}
